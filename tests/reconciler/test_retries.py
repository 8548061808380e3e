"""When a resource is tried again."""

from __future__ import annotations

import random

import pytest

from kafka_operator import kinds
from reconciler.decide.steps import Retry
from reconciler.engine.retries import JITTER, Retries
from reconciler.names import Key

A, B = (Key(kinds.TOPIC, "shop", name) for name in "ab")


def test_delays_double_up_to_a_cap_and_vary() -> None:
    """Back-off with jitter, from a random source that is given."""
    retries = Retries(lambda: 0.0, random.Random(7))

    delays = [retries.delay_s(A, Retry(1.0, 8.0)) for _ in range(6)]

    for expected, delay in zip([1, 2, 4, 8, 8, 8], delays, strict=True):
        assert expected * (1 - JITTER) <= delay <= expected * (1 + JITTER)
    assert len(set(delays)) == len(delays)
    assert retries.delay_s(B, Retry(1.0, 8.0)) <= 1 + JITTER


def test_the_wait_counts_from_the_first_try_in_vain_until_a_success() -> None:
    """The patience of decisions is measured on our own clock."""
    now_s = 100.0
    retries = Retries(lambda: now_s, random.Random(7))
    assert pytest.approx(0.0) == retries.waited_s(A)
    retries.delay_s(A, Retry())
    now_s = 105.0
    retries.delay_s(A, Retry())
    assert pytest.approx(5.0) == retries.waited_s(A)
    retries.forget(A)
    assert pytest.approx(0.0) == retries.waited_s(A)


def test_many_tries_overflow_nothing() -> None:
    """A cluster that is down for a week."""
    retries = Retries(lambda: 0.0, random.Random(7))

    assert all(retries.delay_s(A, Retry(0.1, 60.0)) <= 60 * (1 + JITTER) for _ in range(5000))
