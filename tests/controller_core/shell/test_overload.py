"""Full queues: events of the controller and of brokers are accepted however many requests of clients wait.

Kafka's controller queues its own events without a limit (ControllerEventManager). Here each source has its own limit.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from controller_core.decisions.broker_requests import PartitionAnswer
from controller_core.model import events, zookeeper_events
from controller_core.model.events import Event
from controller_core.model.scope import ALL
from controller_core.shell import scheduler
from controller_core.shell.active import OverloadedError
from controller_core.shell.scheduler import CLIENT, OWN, Source, SourceKind, source_of
from tests.controller_core.shell.terms import Term, isr_request, names, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

CLIENT_LIMIT = 20


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """Three brokers and a topic; a low limit for events of clients."""
    monkeypatch.setattr(scheduler, "MAX_CLIENT_WAITING", CLIENT_LIMIT)
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2, 3))
    yield term
    await term.controller.close()


@asynccontextmanager
async def flooded(term: Term) -> AsyncIterator[Callable[[], None]]:
    """An event over everything runs and the queue of clients is full; yields a function that ends the event."""
    end = asyncio.Event()

    async def run_long() -> None:
        async with term.controller.scheduler.run_exclusively(ALL):
            await end.wait()

    running = asyncio.create_task(run_long())
    await settled()
    callers: list[asyncio.Task[Any]] = [
        asyncio.create_task(term.controller.submit(events.ElectLeaders(names("orders-0")))) for _ in range(CLIENT_LIMIT)
    ]
    await settled()
    with pytest.raises(OverloadedError):
        await term.controller.submit(events.ElectLeaders(names("orders-0")))
    yield end.set
    end.set()
    await running
    await asyncio.gather(*callers)
    await settled()


async def test_an_answered_deletion_is_accepted(term: Term) -> None:
    """C10: the topic is removed once its brokers have answered; no later poll asks for these answers again."""
    await term.controller.submit(events.DeleteTopics(("orders",)))
    async with flooded(term):
        term.channels.answer_deletions()
        await settled()

    assert term.cluster.topics == {}


async def test_a_failed_log_directory_is_accepted(term: Term) -> None:
    """KIP-112: only the answer to LeaderAndIsr reports it."""
    async with flooded(term):
        epoch = term.cluster.brokers[1].epoch
        term.channels.answered(zookeeper_events.LeaderAndIsrAnswered(1, epoch, names("orders-0"), ()))
        await settled()

    leader, _, isr = term.state("orders-0")
    assert (leader, isr) == (2, (2, 3))


async def test_an_alter_partition_is_accepted_and_passes_clients(term: Term) -> None:
    """KIP-497: a leader whose request is refused cannot advance its high watermark."""
    async with flooded(term) as end:
        request = asyncio.create_task(term.controller.submit(isr_request(term, "orders-0", (1, 2))))
        await settled()
        end()
        answers = await request
        assert term.controller.scheduler.waiting > 0, "the broker waited for clients that came before it"

    assert isinstance(answers[tp("orders-0")], PartitionAnswer)


async def test_timers_and_watches_are_accepted(term: Term) -> None:
    """The failure of a broker is detected and repaired."""
    async with flooded(term) as end:
        seen = term.controller.post(zookeeper_events.BrokersRead(tuple(term.broker(broker) for broker in (2, 3))))
        await settled()
        end()
        await seen
        assert term.cluster.brokers.keys() == {2, 3}

    assert term.state("orders-0")[0] == 2


@pytest.mark.parametrize(
    ("event", "source"),
    [
        (events.AlterPartition(1, 5, ()), Source(SourceKind.BROKER, 1)),
        (zookeeper_events.ControlledShutdown(2), Source(SourceKind.BROKER, 2)),
        (events.AllocateProducerIds(2, 5), Source(SourceKind.BROKER, 2)),
        (events.AlterPartition(77, 5, ()), CLIENT),
        (events.DeleteTopics(()), CLIENT),
        (events.ElectLeaders(None), CLIENT),
        (events.RepairPartitions(), OWN),
        (zookeeper_events.StopReplicaAnswered(1, ()), OWN),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sources(event: Event, source: Source) -> None:
    """Only registered brokers get the capacity of brokers: other ids may be invented."""
    assert source_of(event, {1, 2}) == source


async def test_2000_clients_behind_one_long_event_cost_little_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrivals and ends of events check overlapping claims and never all waiting ones (the benchmark measures the time)."""
    term = Term(monkeypatch, 1, 2, 3)
    checks = 0
    is_free = term.controller.scheduler._locks.is_free

    def counted(claim: Any) -> bool:
        nonlocal checks
        checks += 1
        return is_free(claim)

    monkeypatch.setattr(term.controller.scheduler._locks, "is_free", counted)
    await term.create("orders", (1, 2, 3))
    end = asyncio.Event()

    async def take(scope: Any) -> None:
        async with term.controller.scheduler.run_exclusively(scope, CLIENT):
            await end.wait()

    scope = events.ElectLeaders(names("orders-0")).scope
    clients = [
        asyncio.create_task(take(waited_scope)) for waited_scope in (ALL, *[scope] * scheduler.MAX_CLIENT_WAITING)
    ]
    await settled()
    assert term.controller.scheduler.waiting == scheduler.MAX_CLIENT_WAITING
    end.set()
    await asyncio.gather(*clients)

    assert checks < 5 * scheduler.MAX_CLIENT_WAITING
    await term.controller.close()


async def test_refused_requests_of_clients_write_no_log(term: Term, caplog: pytest.LogCaptureFixture) -> None:
    """Their callers get the error; a flood of requests must not become a flood of lines."""
    async with flooded(term):
        pass

    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == []
