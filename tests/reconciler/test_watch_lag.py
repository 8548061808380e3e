"""Lag of the watch."""

from __future__ import annotations

import pytest

from kafka_operator import kinds
from reconciler.engine.watch_lag import WatchLag
from reconciler.names import Key

A, B = (Key(kinds.TOPIC, "shop", name) for name in "ab")
CLUSTER = Key(kinds.CLUSTER, "shop", "main")


class Clock:
    """A clock that is set."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.mark.shows("F37")
def test_the_watch_lags_while_it_has_not_delivered_what_a_list_contained() -> None:
    """Otherwise a stalled watch cannot be distinguished from one without events."""
    clock = Clock()
    lag = WatchLag(clock)
    lag.delivered(A, "5")
    lag.listed(kinds.TOPIC, [(A, "5"), (B, "6")])
    clock.now_s = 10
    lag.listed(kinds.TOPIC, [(A, "9"), (B, "8")])
    clock.now_s = 15

    assert pytest.approx(15) == lag.lag_s
    lag.delivered(B, "8")
    assert pytest.approx(5) == lag.lag_s
    lag.delivered(A, "12")
    assert pytest.approx(0) == lag.lag_s


def test_an_older_version_pays_no_debt() -> None:
    """It must bring what the list showed, or what came after."""
    clock = Clock()
    lag = WatchLag(clock)
    lag.listed(kinds.TOPIC, [(A, "9")])
    lag.delivered(A, "7")
    clock.now_s = 3

    assert pytest.approx(3) == lag.lag_s


def test_what_is_gone_is_not_owed() -> None:
    """Deleted, or no longer listed; other kinds are not concerned."""
    clock = Clock()
    lag = WatchLag(clock)
    lag.listed(kinds.TOPIC, [(A, "1"), (B, "1")])
    lag.listed(kinds.CLUSTER, [(CLUSTER, "1")])
    clock.now_s = 2
    lag.deleted(A)
    lag.listed(kinds.TOPIC, [])
    assert pytest.approx(2) == lag.lag_s
    lag.delivered(CLUSTER, "1")
    assert pytest.approx(0) == lag.lag_s
