"""Periodic balance of leaders: Kafka's settings and timer."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.model import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import AlterPartition, BalanceLeaders, Event, IsrChange
from controller_core.model.zookeeper_events import BrokersRead
from controller_core.shell import periodic_tasks
from controller_core.shell.active import OverloadedError
from controller_core.shell.periodic_tasks import balance_leaders
from controller_core.shell.settings import LeaderBalance
from tests.controller_core.shell.terms import Term, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

EVERY_SECOND = LeaderBalance(check_interval_seconds=1)


async def refused(_event: object) -> None:
    """Fail like an event whose writes are refused each time."""
    raise OverloadedError("others write the same znodes")


class Pauses:
    """Replaces `asyncio.sleep` in the timer: records each pause, which ends when the test ends it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[float] = []
        self._end = asyncio.Event()
        monkeypatch.setattr(periodic_tasks, "asyncio", self)
        self.wait = asyncio.wait

    async def sleep(self, pause_s: float) -> None:
        """Record the pause and wait for its end."""
        self.taken.append(pause_s)
        self._end.clear()
        await self._end.wait()

    async def end(self) -> None:
        """End the current pause, and let all runnable tasks run."""
        self._end.set()
        await settled()


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """A term over brokers 1 and 2."""
    term = Term(monkeypatch, 1, 2)
    yield term
    await term.controller.close()


async def test_the_first_check_follows_after_5_seconds_and_then_one_each_interval(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KafkaController.onControllerFailover: 5 s; then `leader.imbalance.check.interval.seconds`, 300 by default."""
    pauses = Pauses(monkeypatch)
    term.controller.spawn(balance_leaders(term.controller, LeaderBalance()), "balance")
    await settled()
    await pauses.end()
    await pauses.end()

    assert pauses.taken == [5.0, 300, 300]


async def test_a_check_moves_leaders_back_to_preferred_replicas(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """C14, through the loop: written, and brokers are notified."""
    pauses = Pauses(monkeypatch)
    await term.create("orders", (1, 2))
    await term.controller.submit(BrokersRead((term.broker(2),)))
    await term.controller.submit(BrokersRead((term.broker(1), term.broker(2))))
    isr_change = IsrChange(tp("orders-0"), leader_epoch=1, isr=(2, 1), partition_epoch=1)
    await term.controller.submit(AlterPartition(2, term.cluster.brokers[2].epoch, (isr_change,)))
    term.channels.sent.clear()
    term.controller.spawn(balance_leaders(term.controller, EVERY_SECOND), "balance")
    await settled()
    assert term.state("orders-0") == (2, 1, (2, 1))
    await pauses.end()

    assert term.state("orders-0") == (1, 2, (2, 1))
    assert term.channels.sent


async def test_the_configured_percentage_is_used(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """`leader.imbalance.per.broker.percentage`."""
    pauses, seen = Pauses(monkeypatch), []

    def note(_cluster: Cluster, event: Event) -> Decision[None]:
        seen.append(event)
        return decision()

    term.decide_with(note)
    term.controller.spawn(balance_leaders(term.controller, LeaderBalance(percentage=25)), "balance")
    await settled()
    await pauses.end()

    assert seen == [BalanceLeaders(25)]


async def test_nothing_is_checked_if_it_is_disabled(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto.leader.rebalance.enable` false."""
    pauses = Pauses(monkeypatch)
    task = term.controller.spawn(balance_leaders(term.controller, LeaderBalance(is_enabled=False)), "balance")
    await settled()

    assert pauses.taken == []
    assert task.done()


async def test_a_failed_check_is_repeated_after_the_interval(
    term: Term, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Other processes write the same znodes: the failure is logged."""
    pauses = Pauses(monkeypatch)
    task = term.controller.spawn(balance_leaders(term.controller, EVERY_SECOND), "balance")
    await settled()
    with pytest.MonkeyPatch.context() as overloaded:
        overloaded.setattr(term.controller, "_process", refused)
        await pauses.end()

    assert pauses.taken == [5.0, 1]
    assert not task.done()
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == [
        "Event deferred until the next periodic check"
    ]


@pytest.mark.parametrize("percentage", [-1, 0, 10, 100, 150, -(2**31), 2**31 - 1])
def test_every_percentage_that_kafka_accepts_is_accepted(percentage: int) -> None:
    """ReplicationConfigs defines an INT without a validator."""
    assert percentage == LeaderBalance(percentage=percentage).percentage


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"check_interval_seconds": 0},
            "Invalid value 0 for configuration leader.imbalance.check.interval.seconds: Value must be at least 1",
        ),
        ({"check_interval_seconds": -300}, "Invalid value -300 for .*: Value must be at least 1"),
        ({"check_interval_seconds": 2**63}, "Value must be no more than 9223372036854775807"),
        ({"percentage": 2**31}, "for configuration leader.imbalance.per.broker.percentage: Value must be no more than"),
        ({"percentage": -(2**31) - 1}, "Value must be at least -2147483648"),
    ],
)
def test_an_invalid_interval_is_refused_with_kafkas_message(settings: dict[str, int], message: str) -> None:
    """ReplicationConfigs: `leader.imbalance.check.interval.seconds` is at least 1."""
    with pytest.raises(ValueError, match=message):
        LeaderBalance(**settings)
