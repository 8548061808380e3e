"""Polling of known topics' assignments: changes by other processes are found, the controller's own writes are not events."""

import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.model import Deletion
from controller_core.model.events import CreatePartitions, NewPartitions
from controller_core.shell.zookeeper import assignments as assignments_module
from controller_core.shell.zookeeper.assignments import AssignmentPoller
from kafka_zookeeper import paths
from kafka_zookeeper.formats.topics import TopicAssignment, encode_topic
from tests.controller_core.shell.terms import Term, settled


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """An active term with brokers 1, 2 and 3 that polls without a pause."""
    monkeypatch.setattr(assignments_module, "PAUSE_S", 0.0)
    term = Term(monkeypatch, 1, 2, 3)
    term.controller.spawn(
        AssignmentPoller(term.controller, term.session, term.store.versions, term.store.unreadable).follow(),
        "assignments",
    )
    await settled()
    yield term
    assert not term.controller.has_ended, await term.controller.ended()
    await term.controller.close()


def write(term: Term, topic: str, **partitions: str) -> None:
    """Another process writes a topic's assignment: `p1="2,3"`. The topic's id is kept."""
    replicas = {int(name[1:]): tuple(map(int, ids.split(","))) for name, ids in partitions.items()}
    topic_id = term.cluster.topics[topic].topic_id
    term.server.put(paths.topic(topic), encode_topic(TopicAssignment(replicas, topic_id=topic_id)))


async def test_a_partition_added_in_zookeeper_gets_a_leader(term: Term) -> None:
    """KafkaController.processPartitionModifications; neither a request nor a refused write reports it."""
    await term.create("orders", (1, 2))
    write(term, "orders", p0="1,2", p1="3,1")
    await settled()

    assert term.state("orders-1") == (3, 0, (3, 1))


async def test_partitions_added_to_a_topic_under_deletion_are_removed_again(term: Term) -> None:
    """restorePartitionReplicaAssignment: the deletion has counted its replicas already and would leave the new ones behind."""
    await term.create("orders", (1, 2))
    before = term.server.at(paths.topic("orders")).data
    term.server.put(paths.delete_topic("orders"))
    term.cluster.deletions["orders"] = Deletion(blocked="a broker is away")
    write(term, "orders", p0="1,2", p1="3,1")
    await settled()

    assert term.server.at(paths.topic("orders")).data == before
    assert term.server.at(paths.topic("orders")).version == term.store.versions.known("orders")
    assert term.cluster.row_of("orders", 1) is None


async def test_writes_of_the_controller_are_no_event(term: Term) -> None:
    """A poll may run between a write and its application; the second read then finds no change."""
    await term.create("orders", (1, 2))
    for count in range(2, 12):
        await term.controller.submit(CreatePartitions((NewPartitions("orders", count),)))
    await settled()

    assert len(term.cluster.topics["orders"].rows) == 11
    assert term.server.at(paths.topic("orders")).version == term.store.versions.known("orders")


async def test_an_assignment_that_cannot_be_decoded_is_logged_once_and_changes_nothing(
    term: Term, caplog: pytest.LogCaptureFixture
) -> None:
    """The topic keeps its known state until an administrator corrects the znode."""
    await term.create("orders", (1, 2))
    good = term.server.at(paths.topic("orders")).data
    term.server.put(paths.topic("orders"), b"garbage")
    await settled(400)

    assert term.state("orders-0") == (1, 0, (1, 2))
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1

    term.server.put(paths.topic("orders"), good)
    await settled()
    assert term.store.versions.known("orders") == 2


async def test_topics_are_polled_in_shares(term: Term, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many topics there are, a polling cycle has at most POLLING_CYCLE_S shares."""
    monkeypatch.setattr(assignments_module, "MIN_TOPICS_PER_POLL", 2)
    for number in range(11):
        await term.create(f"t{number}", (1, 2))
    await settled(300)
    term.server.lines.clear()
    await settled(300)

    reads = [line.split()[1:] for line in term.server.lines if line.startswith("get /brokers/topics/t")]
    assert set(map(len, reads[1:-1])) == {3, 2}
    assert {paths.topic(f"t{number}") for number in range(11)} == {path for read in reads for path in read}
