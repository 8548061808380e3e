"""The ZooKeeper store delivers committed changes as `shell.store` requires: in the decision's order, and only those."""

import asyncio
from collections.abc import Sequence

import pytest

from controller_core.model.changes import Change, TopicAdded
from controller_core.model.zookeeper_changes import StatesObserved
from controller_core.shell.store import Outcome, Reread, StoreError
from kafka_zookeeper import paths
from kafka_zookeeper.errors import SessionLostError
from kafka_zookeeper.writes import MultiResult, Operation
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.shell.zookeeper.world import NO_READ, World

STATE = '{"controller_epoch":9,"leader":2,"version":1,"leader_epoch":0,"isr":[2]}'


def delivered(world: World) -> list[Change]:
    """Collect what the store delivers from now on."""
    changes: list[Change] = []

    async def deliver(committed: Sequence[Change]) -> None:
        changes.extend(committed)

    world.store.deliver_to(deliver)
    return changes


async def test_changes_written_out_of_order_are_delivered_in_the_decisions_order() -> None:
    """Every controller that applies them reaches the same state."""
    world = World()
    changes = delivered(world)
    multi, second_is_written = world.session.multi, asyncio.Event()
    written: list[str] = []

    async def first_waits(operations: Sequence[Operation]) -> MultiResult:
        topic = "first" if any("/topics/first" in operation.path for operation in operations) else "second"
        if topic == "first":
            await second_is_written.wait()
        result = await multi(operations)
        written.append(topic)
        second_is_written.set()
        return result

    world.session.multi = first_waits
    decision = [read_change(world.cluster, f"new {name} 0=1") for name in ("first", "second")]
    await world.store.commit(world.cluster, decision, NO_READ)

    assert (written[0], changes) == ("second", decision)


async def test_a_refused_change_is_not_delivered() -> None:
    """Only what is committed is applied."""
    world = World()
    changes = delivered(world)
    world.server.put(paths.topic("first"), b"{}")
    decision = [read_change(world.cluster, f"new {name} 0=1") for name in ("first", "second")]
    outcome = await world.store.commit(world.cluster, decision, NO_READ)

    assert outcome.stale_topics == ["first"]
    assert [change.name for change in changes if isinstance(change, TopicAdded)] == ["second"]


async def test_changes_found_by_a_reread_are_delivered() -> None:
    """Another process created the topic's states: they are applied the same way."""
    world = World()
    await world.do("written new orders 0=1,2")
    changes = delivered(world)
    await world.do("znode /brokers/topics/orders/partitions/0/state " + STATE)
    outcome = await world.store.commit(world.cluster, [read_change(world.cluster, "states orders-0=1/0/1,2")], NO_READ)
    reread = await world.store.reread(world.cluster, outcome)

    assert outcome.committed == []
    assert reread == Reread(changed=True)
    assert [type(change) for change in changes] == [StatesObserved]


async def test_an_end_of_the_session_is_a_store_error() -> None:
    """The controller's loop knows no error of ZooKeeper."""
    world = World()
    world.session.expire()
    with pytest.raises(StoreError) as raised:
        await world.store.reread(world.cluster, Outcome(stale_producer_ids=True))

    assert type(raised.value.__cause__) is SessionLostError
