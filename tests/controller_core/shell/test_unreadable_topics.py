"""Topics whose znode cannot be decoded, and assignments written by hand that share no replica with the ISR."""

import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.model import MoveStage
from controller_core.model.events import AlterReassignments
from controller_core.model.zookeeper_events import BrokersRead, TopicsChanged
from controller_core.shell.active import OverloadedError
from controller_core.shell.zookeeper.assignments import AssignmentPoller
from controller_core.shell.zookeeper.controller_election import Controllership
from controller_core.shell.zookeeper.loading import load_cluster
from controller_core.shell.zookeeper.reading import read_topics
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import paths
from tests.controller_core.shell.terms import CONTROLLER, Term, isr_request, settled
from tests.controller_core.shell.zookeeper.vocabulary import tp

P0 = tp("orders-0")


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """Six brokers and a topic on the first three."""
    term = Term(monkeypatch, *range(1, 7))
    await term.create("orders", (1, 2, 3))
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def edit(term: Term, old: bytes, new: bytes) -> None:
    """Write the topic's znode as a user would by hand."""
    data = term.server.at(paths.topic("orders")).data
    assert data is not None
    assert old in data
    term.server.put(paths.topic("orders"), data.replace(old, new))


async def test_a_topic_that_cannot_be_decoded_keeps_its_state_and_fails_over(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """Only a missing znode is a removed topic. Requests that need the znode are refused; the failure is logged once."""
    edit(term, b"[1,2,3]", b"[1,2,2]")

    for _ in range(3):
        with pytest.raises(OverloadedError, match="cannot be read"):
            await term.controller.submit(AlterReassignments({P0: (2, 3, 4)}))

    assert list(term.cluster.topics) == ["orders"]
    assert len(term.store.unreadable) == 1
    assert [vars(record)["topic"] for record in caplog.records if record.levelno == logging.ERROR] == ["orders"]
    await term.controller.submit(BrokersRead(tuple(term.broker(broker) for broker in range(2, 7))))
    assert term.state("orders-0") == (2, 1, (2, 3))


async def test_a_corrected_topic_is_read_again(term: Term) -> None:
    """Also a topic that was never known before."""
    term.server.put(paths.topic("new"), b"garbage")
    edit(term, b"[1,2,3]", b"[1,2,2]")
    assignments = AssignmentPoller(term.controller, term.session, term.store.versions, term.store.unreadable)
    await assignments._read_changed(["new", "orders"])
    assert term.store.unreadable.names() == ["new", "orders"]

    term.server.put(paths.topic("new"), b'{"version":1,"partitions":{"0":[4]}}')
    edit(term, b"[1,2,2]", b"[1,3,2]")
    for _ in range(2):
        event = await assignments._read_changed(await assignments._changed_names(assignments._next_share()))
        assert event is not None
        await term.controller.submit(event)

    assert term.store.unreadable.names() == []
    assert term.state("new-0") == (4, 0, (4,))
    assert term.cluster.columns.replicas_of(term.cluster.row_of(*P0) or 0) == (1, 3, 2)


@pytest.mark.shows("C2")
async def test_an_assignment_by_hand_outside_the_isr_becomes_a_move(term: Term) -> None:
    """C2, C9: the old replicas are removed when all new ones are in sync; other topics are not affected."""
    edit(term, b"[1,2,3]", b"[4,5,6]")

    await term.controller.submit(TopicsChanged(await read_topics(term.session, ["orders"])))

    row = term.cluster.row_of(*P0)
    assert row is not None
    move = term.cluster.moves[row]
    assert (move.replicas, move.adding, move.removing) == ((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert term.state("orders-0")[::2] == (1, (1, 2, 3))
    assert term.channels.deletions() == []

    await term.controller.submit(isr_request(term, "orders-0", (1, 2, 3, 4, 5, 6)))
    await settled()
    term.channels.answer_deletions()
    await settled()

    assert term.cluster.moves == {}
    assert term.state("orders-0")[::2] == (4, (4, 5, 6))
    assert b'"0":[4,5,6]' in (term.server.at(paths.topic("orders")).data or b"")


async def test_a_move_that_an_edit_caused_can_be_cancelled(term: Term) -> None:
    """The edit was a mistake, or its brokers do not exist: the partition returns, and the znode is corrected."""
    edit(term, b"[1,2,3]", b"[77,78]")
    await term.controller.submit(TopicsChanged(await read_topics(term.session, ["orders"])))

    results = await term.controller.submit(AlterReassignments({P0: None}))
    await settled()
    term.channels.answer_deletions()
    await settled()

    assert results == {P0: None}
    assert term.cluster.moves == {}
    assert b'"0":[1,2,3]' in (term.server.at(paths.topic("orders")).data or b"")


async def test_an_assignment_by_hand_without_replicas_changes_nothing(term: Term) -> None:
    """There is no target."""
    edit(term, b"[1,2,3]", b"[]")

    await term.controller.submit(TopicsChanged(await read_topics(term.session, ["orders"])))

    assert term.cluster.moves == {}
    assert term.cluster.columns.replicas_of(term.cluster.row_of(*P0) or 0) == (1, 2, 3)


async def test_an_assignment_by_hand_that_a_refused_write_finds_becomes_a_move(term: Term) -> None:
    """No poll has read it yet: the request finds it, and is decided on it."""
    edit(term, b"[1,2,3]", b"[4,5,6]")

    await term.controller.submit(AlterReassignments({P0: (1, 2, 4)}))
    await settled()

    row = term.cluster.row_of(*P0)
    assert row is not None
    assert term.cluster.moves[row].target == (1, 2, 4)
    assert term.state("orders-0")[::2] == (1, (1, 2, 3))


async def test_an_assignment_by_hand_is_a_move_at_a_take_over_too(term: Term) -> None:
    """Written while no controller was active: the ISR has the records."""
    edit(term, b"[1,2,3]", b"[4]")

    cluster = await load_cluster(term.session, ZnodeVersions(), CONTROLLER, Controllership(9, 0, -1), "INTERNAL")

    row = cluster.row_of(*P0)
    assert row is not None
    move = cluster.moves[row]
    assert (move.replicas, move.adding, move.removing) == ((4, 1, 2, 3), (4,), (1, 2, 3))
    assert move.stage is MoveStage.PLANNED
    assert (cluster.columns.leader[row], cluster.columns.isr_of(row)) == (1, (1, 2, 3))
