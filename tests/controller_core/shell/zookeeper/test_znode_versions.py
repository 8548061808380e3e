"""Versions of znodes in the store (ADR 21): noted when a change is applied, and only then."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from controller_core.model import NO_EPOCH, Cluster, Origin, events, zookeeper_events
from controller_core.model.changes import Change
from controller_core.model.decision import Decision
from controller_core.model.zookeeper_changes import PendingReassignmentRequestsChanged
from controller_core.shell.active import OverloadedError
from controller_core.shell.zookeeper.reading import read_topics
from controller_core.shell.zookeeper.store import Store
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import Term
from tests.controller_core.shell.zookeeper.vocabulary import read_change, tp
from tests.controller_core.shell.zookeeper.world import NO_READ, World

ORDERS = paths.topic("orders")
GROWN = '{"version":1,"partitions":{"0":[1,2],"1":[2,1]}}'


@pytest.fixture
async def world() -> World:
    """A store with a topic of one partition that it has created."""
    made = World()
    await made.do("written new orders 0=1,2")
    return made


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An active term with three brokers and a topic."""
    made = Term(monkeypatch, 1, 2, 3)
    await made.create("orders", (1, 2))
    yield made
    assert not made.controller.has_ended, await made.controller.ended()
    await made.controller.close()


async def test_a_version_is_noted_after_the_change_is_applied(world: World) -> None:
    """A decision on the state before the change must not be written over the change."""
    during: list[int] = []

    async def deliver(_committed: Sequence[Change]) -> None:
        during.append(world.store.versions.known("orders"))

    world.store.deliver_to(deliver)
    change = read_change(world.cluster, "partitions orders 1=2,1")
    await world.store.commit(world.cluster, [change], NO_READ)

    assert (during, world.store.versions.known("orders")) == ([0], 1)


async def test_a_refused_write_notes_nothing_and_the_next_read_notes_what_it_finds(world: World) -> None:
    """BADVERSION: another process has written. The event is decided again and written over the version that was found."""
    await world.do(f"znode {ORDERS} {GROWN}")
    await world.do(f"rewrite {ORDERS}")
    await world.do("commit partitions orders 1=1,2")
    refused = world.store.versions.known("orders")
    await world.do("reread")
    found = world.store.versions.known("orders")
    await world.do("commit partitions orders 2=1,2")

    assert (refused, found) == (0, 2)
    assert world.store.versions.known("orders") == world.server.at(ORDERS).version == 3


@pytest.mark.parametrize(("answer", "version"), [("done", 1), ("not done", 0)])
async def test_the_version_after_a_lost_result_is_read(world: World, answer: str, version: int) -> None:
    """Whether the write was committed is unknown until then."""
    await world.do(f"next {answer}")
    await world.do("commit move orders 0=3,2")
    lost = world.store.versions.known("orders")
    await world.do("reread")

    assert lost == 0
    assert world.store.versions.known("orders") == world.server.at(ORDERS).version == version


async def test_a_record_read_before_an_own_write_is_not_applied(world: World) -> None:
    """The store is asked last, whichever way the record took: nothing is delivered, and nothing has to be decided again."""
    stale = zookeeper_events.TopicsChanged(await read_topics(world.session, ["orders"]))
    await world.do("written partitions orders 1=2,1")
    (change,) = decide(world.cluster, stale).changes
    outcome = await world.store.commit(world.cluster, [change], stale)

    assert (outcome.committed, outcome.is_whole) == ([], True)


async def test_a_znode_that_was_read_and_not_applied_is_not_overwritten(term: Term) -> None:
    """The event failed after its read: the current state, and so the known version, is still that of before."""

    def overloaded(cluster: Cluster, event: events.Event) -> Decision[Any]:
        if isinstance(event, zookeeper_events.TopicsChanged):
            raise OverloadedError("no capacity")
        return decide(cluster, event)

    async def read() -> events.Event:
        return zookeeper_events.TopicsChanged(await read_topics(term.session, ["orders"]))

    term.decide_with(overloaded)
    term.server.put(ORDERS, GROWN.encode())
    with pytest.raises(OverloadedError):
        await term.controller.read_and_decide(read)
    await term.controller.submit(events.CreatePartitions((events.NewPartitions("orders", 3),)))

    assert term.cluster.columns.replicas_of(term.cluster.topics["orders"].rows[1]) == (2, 1)
    assert len(term.cluster.topics["orders"].rows) == 3


async def test_of_two_writes_of_a_list_that_were_decided_on_one_state_the_second_is_refused(world: World) -> None:
    """A request may supersede listed moves while another one does: the scopes are topics, not the list."""
    listed = {tp(f"orders-{number}"): (1, 3) for number in range(3)}
    world.server.put(paths.REASSIGN_PARTITIONS, b"{}")
    found = zookeeper_events.ReviewReassignmentRequests(zookeeper_events.ReassignmentRequestsRead(listed, 0))
    await world.store.commit(world.cluster, [PendingReassignmentRequestsChanged(listed, Origin.OBSERVED)], found)
    lists = [{name: listed[name] for name in listed if name != superseded} for superseded in list(listed)[:2]]
    outcomes = await asyncio.gather(
        *(
            world.store.commit(world.cluster, [PendingReassignmentRequestsChanged(left, Origin.REQUESTED)], NO_READ)
            for left in lists
        )
    )

    assert [len(outcome.committed) for outcome in outcomes] == [1, 0]
    assert world.store.versions.known(zookeeper_events.REASSIGNMENT_REQUESTS) == 1


async def test_the_store_of_a_new_term_knows_no_version(world: World) -> None:
    """Loading fills the table (golden scripts of loading): nothing of the last term is used."""
    next_store = Store(world.session, NO_EPOCH)

    assert next_store.versions.known("orders") == NO_ZNODE
    with pytest.raises(KeyError):
        await next_store.commit(world.cluster, [read_change(world.cluster, "partitions orders 1=2,1")], NO_READ)
