"""Topics whose znode cannot be decoded, and assignments written by hand that share nothing with the ISR."""

import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.model.events import AlterReassignments, BrokersRead, TopicsChanged
from controller_core.model.move import Stage
from controller_core.shell.active import OverloadedError
from controller_core.shell.zookeeper.assignments import AssignmentPoller
from controller_core.shell.zookeeper.controller_election import Controllership
from controller_core.shell.zookeeper.loading import load_cluster
from controller_core.shell.zookeeper.reading import read_topics
from kafka_zookeeper import paths
from tests.controller_core.shell.tenures import CONTROLLER, Tenure, isr_wish, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

P0 = tp("orders-0")


@pytest.fixture
async def tenure(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """Six brokers and a topic on the first three."""
    tenure = Tenure(monkeypatch, *range(1, 7))
    await tenure.create("orders", (1, 2, 3))
    yield tenure
    assert not tenure.controller.has_ended, await tenure.controller.ended()
    await tenure.controller.close()


def edit(tenure: Tenure, old: bytes, new: bytes) -> None:
    """Somebody edits the topic's znode."""
    data = tenure.server.at(paths.topic("orders")).data
    assert data is not None
    assert old in data
    tenure.server.put(paths.topic("orders"), data.replace(old, new))


async def test_a_topic_that_cannot_be_decoded_keeps_its_state_and_fails_over(
    tenure: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a znode that is not there is a removed topic. What needs the znode is refused, and said once."""
    edit(tenure, b"[1,2,3]", b"[1,2,2]")

    for _ in range(3):
        with pytest.raises(OverloadedError, match="cannot be read"):
            await tenure.controller.submit(AlterReassignments({P0: (2, 3, 4)}))

    assert list(tenure.cluster.topics) == ["orders"]
    assert len(tenure.store.unreadable) == 1
    assert [record.topic for record in caplog.records if record.levelno == logging.ERROR] == ["orders"]
    await tenure.controller.submit(BrokersRead(tuple(tenure.broker(broker) for broker in range(2, 7))))
    assert tenure.state("orders-0") == (2, 1, (2, 3))


async def test_a_topic_that_is_corrected_is_taken_in_again(tenure: Tenure) -> None:
    """Both one that was known and one that never was."""
    tenure.server.put(paths.topic("new"), b"garbage")
    edit(tenure, b"[1,2,3]", b"[1,2,2]")
    assignments = AssignmentPoller(tenure.controller, tenure.session, tenure.store.unreadable)
    await assignments._read_changed(["new", "orders"])
    assert tenure.store.unreadable.names() == ["new", "orders"]

    tenure.server.put(paths.topic("new"), b'{"version":1,"partitions":{"0":[4]}}')
    edit(tenure, b"[1,2,2]", b"[1,3,2]")
    for _ in range(2):
        event = await assignments._read_changed(await assignments._changed_names(assignments._next_share()))
        assert event is not None
        await tenure.controller.submit(event)

    assert tenure.store.unreadable.names() == []
    assert tenure.state("new-0") == (4, 0, (4,))
    assert tenure.cluster.columns.replicas_of(tenure.cluster.row_of(*P0) or 0) == (1, 3, 2)


@pytest.mark.shows("C2")
async def test_an_assignment_by_hand_outside_the_isr_becomes_a_move(tenure: Tenure) -> None:
    """C2, C9: the old replicas go when all of the new ones are in sync; the other topics do not notice."""
    edit(tenure, b"[1,2,3]", b"[4,5,6]")

    await tenure.controller.submit(TopicsChanged(await read_topics(tenure.session, ["orders"])))

    row = tenure.cluster.row_of(*P0)
    assert row is not None
    move = tenure.cluster.moves[row]
    assert (move.replicas, move.adding, move.removing) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert tenure.state("orders-0")[::2] == (1, (1, 2, 3))
    assert tenure.channels.deletions() == []

    await tenure.controller.submit(isr_wish(tenure, "orders-0", (1, 2, 3, 4, 5, 6)))
    await settled()
    tenure.channels.answer_deletions()
    await settled()

    assert tenure.cluster.moves == {}
    assert tenure.state("orders-0")[::2] == (4, (4, 5, 6))
    assert b'"0":[4,5,6]' in (tenure.server.at(paths.topic("orders")).data or b"")


async def test_a_move_that_came_of_an_edit_can_be_cancelled(tenure: Tenure) -> None:
    """The edit was a slip, or its brokers do not exist: the partition returns, and the znode is corrected."""
    edit(tenure, b"[1,2,3]", b"[77,78]")
    await tenure.controller.submit(TopicsChanged(await read_topics(tenure.session, ["orders"])))

    results = await tenure.controller.submit(AlterReassignments({P0: None}))
    await settled()
    tenure.channels.answer_deletions()
    await settled()

    assert results == {P0: None}
    assert tenure.cluster.moves == {}
    assert b'"0":[1,2,3]' in (tenure.server.at(paths.topic("orders")).data or b"")


async def test_an_assignment_by_hand_without_replicas_changes_nothing(tenure: Tenure) -> None:
    """There is nothing to move to."""
    edit(tenure, b"[1,2,3]", b"[]")

    await tenure.controller.submit(TopicsChanged(await read_topics(tenure.session, ["orders"])))

    assert tenure.cluster.moves == {}
    assert tenure.cluster.columns.replicas_of(tenure.cluster.row_of(*P0) or 0) == (1, 2, 3)


async def test_an_assignment_by_hand_that_a_refused_write_finds_becomes_a_move(tenure: Tenure) -> None:
    """No poll has seen it yet: the request finds it, and is decided on it."""
    edit(tenure, b"[1,2,3]", b"[4,5,6]")

    await tenure.controller.submit(AlterReassignments({P0: (1, 2, 4)}))
    await settled()

    row = tenure.cluster.row_of(*P0)
    assert row is not None
    assert tenure.cluster.moves[row].target == (1, 2, 4)
    assert tenure.state("orders-0")[::2] == (1, (1, 2, 3))


async def test_an_assignment_by_hand_is_a_move_at_a_take_over_too(tenure: Tenure) -> None:
    """Written while no controller was there to see it: the ISR is what has the records."""
    edit(tenure, b"[1,2,3]", b"[4]")

    cluster = await load_cluster(tenure.session, CONTROLLER, Controllership(9, 0, -1), "INTERNAL")

    row = cluster.row_of(*P0)
    assert row is not None
    move = cluster.moves[row]
    assert (move.replicas, move.adding, move.removing) == ((4, 1, 2, 3), (4,), (1, 2, 3))
    assert move.stage is Stage.PLANNED
    assert (cluster.columns.leader[row], cluster.columns.isr_of(row)) == (1, (1, 2, 3))
