"""The loop of one tenure: decide, write, apply, tell; other events go on meanwhile, looks have turns of their own.

Source: ARCHITECTURE.md (the one idea, how a tenure lives).
"""

import asyncio
from collections.abc import Sequence

import pytest

from controller_core.decisions.topics import TopicCreation
from controller_core.model.cluster import Cluster
from controller_core.model.events import (
    BrokersRead,
    Event,
    RepairPartitions,
    TopicsRead,
)
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata
from controller_core.shell import controller as controller_module
from kafka_zookeeper import paths
from kafka_zookeeper.writes import MultiResult, Operation
from tests.controller_core.shell.tenures import Tenure, failing_decisions, isr_wish, settled


async def test_the_reply_comes_after_the_write_and_after_brokers_are_told(tenure: Tenure) -> None:
    """Decision: changes are persisted, applied, announced; what follows is decided in the same turn; then the reply leaves."""
    creation = await tenure.create("orders", (1, 2), (2, 3))

    assert isinstance(creation, TopicCreation)
    assert creation.failure is None
    assert tenure.state("orders-0") == (1, 0, (1, 2))
    assert tenure.state("orders-1") == (2, 0, (2, 3))
    kinds = [type(send) for send in tenure.channels.sent]
    assert kinds == [SendLeaderAndIsr, SendLeaderAndIsr, SendLeaderAndIsr, SendMetadata]


async def test_events_of_other_partitions_go_on_while_one_is_written(tenure: Tenure) -> None:
    """The loop never waits for ZooKeeper with everything (`shell.scheduler`)."""
    await tenure.create("a", (1, 2))
    await tenure.create("b", (2, 1))
    order: list[str] = []
    held, goes_on = tenure.session.multi, asyncio.Event()

    async def slow_for_a(operations: Sequence[Operation]) -> MultiResult:
        if any("/topics/a/" in operation.path for operation in operations):
            await goes_on.wait()
        return await held(operations)

    tenure.session.multi = slow_for_a  # type: ignore[method-assign]

    async def submit(partition: str) -> None:
        await tenure.controller.submit(isr_wish(tenure, partition, (int(partition == "b-0") + 1,)))
        order.append(partition)

    first, second = (asyncio.create_task(submit(partition)) for partition in ("a-0", "b-0"))
    await second
    goes_on.set()
    await first

    assert order == ["b-0", "a-0"]
    assert tenure.state("a-0") == (1, 0, (1,))
    assert tenure.state("b-0") == (2, 0, (2,))


async def test_a_look_reads_within_its_turn(tenure: Tenure) -> None:
    """Read outside it, a list of topics could miss one that is just being written, and take it for removed."""
    reading, read_on = asyncio.Event(), asyncio.Event()

    async def read() -> Event | None:
        reading.set()
        await read_on.wait()
        return TopicsRead((), ())

    creating = asyncio.create_task(tenure.create("first", (1,)))
    await asyncio.sleep(0)
    look = asyncio.create_task(tenure.controller.look(read))
    later = asyncio.create_task(tenure.create("second", (1,)))
    await reading.wait()
    await settled()

    assert creating.done()
    assert list(tenure.cluster.topics) == ["first"]
    assert not later.done()
    read_on.set()
    await look
    assert (await later).failure is None


async def test_a_look_that_finds_nothing_decides_nothing(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look too many changes nothing."""
    monkeypatch.setattr(controller_module, "decide", failing_decisions(RepairPartitions))

    async def read() -> Event | None:
        return None

    await tenure.controller.look(read)
    assert not tenure.controller.has_ended


async def test_every_tick_looks_at_everything_whatever_became_of_the_last(
    tenure: Tenure, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A safety net must not tear: one look that is refused keeps none of the others from being taken."""
    monkeypatch.setattr(controller_module, "TICK_S", 0.0)
    await tenure.create("orders", (1, 2))
    tenure.server.put(paths.partition_state("orders", 0), b"garbage")
    await tenure.controller.submit(BrokersRead((tenure.broker(2), tenure.broker(3))))
    seen: list[str] = []
    enough = asyncio.Event()
    decide = controller_module.decide

    def decide_and_note(cluster: Cluster, event: Event) -> object:
        seen.append(type(event).__name__)
        if seen.count("AdvanceDeletions") == 3:
            enough.set()
        return decide(cluster, event)

    monkeypatch.setattr(controller_module, "decide", decide_and_note)
    ticking = tenure.controller.spawn(tenure.controller.tick(), "tick")
    waiting = asyncio.create_task(enough.wait())
    await asyncio.wait([ticking, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()

    assert not ticking.done()
    assert seen[:3] == ["RepairPartitions", "AdvanceMoves", "AdvanceDeletions"]
