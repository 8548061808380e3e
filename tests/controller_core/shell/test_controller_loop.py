"""The loop of one term: decide, write, apply, notify brokers; events of other partitions run at the same time.

Source: ARCHITECTURE.md.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from controller_core.decisions.topics import TopicCreation
from controller_core.model import Cluster
from controller_core.model.changes import Change
from controller_core.model.decision import Decision, SendLeaderAndIsr, SendMetadata
from controller_core.model.events import CreatePartitions, Event, NewPartitions, RepairPartitions
from controller_core.model.zookeeper_events import BrokersRead, TopicsRead
from controller_core.shell import controller as controller_module
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper.sessions import ZOOKEEPER_MODE
from kafka_zookeeper import paths
from kafka_zookeeper.writes import MultiResult, Operation
from tests.controller_core.shell.terms import Term, failing_decisions, isr_request, settled


async def test_the_reply_follows_the_write_and_the_requests_to_brokers(term: Term) -> None:
    """Changes are written, applied and sent to brokers; follow-up events are processed within the same event; then the reply is sent."""
    creation = await term.create("orders", (1, 2), (2, 3))

    assert isinstance(creation, TopicCreation)
    assert creation.failure is None
    assert term.state("orders-0") == (1, 0, (1, 2))
    assert term.state("orders-1") == (2, 0, (2, 3))
    kinds = [type(send) for send in term.channels.sent]
    assert kinds == [SendLeaderAndIsr, SendLeaderAndIsr, SendLeaderAndIsr, SendMetadata]


async def test_events_of_other_partitions_run_while_one_is_written(term: Term) -> None:
    """ZooKeeper's latency delays only overlapping events (`shell.scheduler`)."""
    await term.create("a", (1, 2))
    await term.create("b", (2, 1))
    order: list[str] = []
    held, released = term.session.multi, asyncio.Event()

    async def slow_for_a(operations: Sequence[Operation]) -> MultiResult:
        if any("/topics/a/" in operation.path for operation in operations):
            await released.wait()
        return await held(operations)

    term.session.multi = slow_for_a

    async def submit(partition: str) -> None:
        await term.controller.submit(isr_request(term, partition, (int(partition == "b-0") + 1,)))
        order.append(partition)

    first, second = (asyncio.create_task(submit(partition)) for partition in ("a-0", "b-0"))
    await second
    released.set()
    await first

    assert order == ["b-0", "a-0"]
    assert term.state("a-0") == (1, 0, (1,))
    assert term.state("b-0") == (2, 0, (2,))


async def test_the_store_gets_a_decision_in_the_step_that_made_it(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """`shell.store`: another task in between could apply a change of the state that was decided on (ADR 21)."""
    await term.create("orders", (1, 2))
    steps: list[str] = []
    commit = term.store.commit

    def decide(cluster: Cluster, event: Event) -> Decision[Any]:
        steps.append("decide")
        asyncio.get_running_loop().call_soon(steps.append, "another step")
        return ZOOKEEPER_MODE.decide(cluster, event)

    async def noted(cluster: Cluster, changes: Sequence[Change], event: Event) -> Outcome:
        steps.append("commit")
        return await commit(cluster, changes, event)

    term.decide_with(decide)
    monkeypatch.setattr(term.store, "commit", noted)
    await term.controller.submit(CreatePartitions((NewPartitions("orders", 2),)))

    assert steps[:3] == ["decide", "commit", "another step"]


async def test_external_state_is_read_while_no_event_runs(term: Term) -> None:
    """A list of topics that is read while a topic is being written could miss it; the topic would count as removed."""
    reading, read_on = asyncio.Event(), asyncio.Event()

    async def read() -> Event | None:
        reading.set()
        await read_on.wait()
        return TopicsRead((), ())

    creating = asyncio.create_task(term.create("first", (1,)))
    await asyncio.sleep(0)
    deciding = asyncio.create_task(term.controller.read_and_decide(read))
    later = asyncio.create_task(term.create("second", (1,)))
    await reading.wait()
    await settled()

    assert creating.done()
    assert list(term.cluster.topics) == ["first"]
    assert not later.done()
    read_on.set()
    await deciding
    assert (await later).failure is None


async def test_a_read_without_a_result_decides_nothing(term: Term) -> None:
    """A superfluous read changes nothing."""
    term.decide_with(failing_decisions(RepairPartitions))

    async def read() -> Event | None:
        return None

    await term.controller.read_and_decide(read)
    assert not term.controller.has_ended


async def test_every_tick_runs_all_checks_whatever_the_result_of_the_last(
    term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that is refused does not prevent the others."""
    monkeypatch.setattr(controller_module, "TICK_S", 0.0)
    await term.create("orders", (1, 2))
    term.server.put(paths.partition_state("orders", 0), b"garbage")
    await term.controller.submit(BrokersRead((term.broker(2), term.broker(3))))
    seen: list[str] = []
    enough = asyncio.Event()

    def decide_and_note(cluster: Cluster, event: Event) -> Decision[Any]:
        seen.append(type(event).__name__)
        if seen.count("AdvanceDeletions") == 3:
            enough.set()
        return ZOOKEEPER_MODE.decide(cluster, event)

    term.decide_with(decide_and_note)
    ticking = term.controller.spawn(term.controller.tick(), "tick")
    waiting = asyncio.create_task(enough.wait())
    await asyncio.wait([ticking, waiting], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()

    assert not ticking.done()
    assert seen[:3] == ["RepairPartitions", "AdvanceMoves", "AdvanceDeletions"]
