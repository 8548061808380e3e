"""AssignmentPoller of known topics are looked at in turn: what somebody else wrote is seen, and our own work is no news."""

import logging
from collections.abc import AsyncIterator

import pytest

from controller_core.model.cluster import Deletion
from controller_core.model.events import CreatePartitions, NewPartitions
from controller_core.shell.zookeeper import assignments as assignments_module
from controller_core.shell.zookeeper.assignments import AssignmentPoller
from kafka_zookeeper import paths
from kafka_zookeeper.formats.topics import TopicAssignment, encode_topic
from tests.controller_core.shell.tenures import Tenure, settled


@pytest.fixture
async def tenure(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Tenure]:
    """A tenure over brokers 1, 2 and 3 that looks without a pause."""
    monkeypatch.setattr(assignments_module, "PAUSE_S", 0.0)
    tenure = Tenure(monkeypatch, 1, 2, 3)
    tenure.controller.spawn(
        AssignmentPoller(tenure.controller, tenure.session, tenure.store.unreadable).follow(), "assignments"
    )
    await settled()
    yield tenure
    assert not tenure.controller.has_ended, await tenure.controller.ended()
    await tenure.controller.close()


def write(tenure: Tenure, topic: str, **partitions: str) -> None:
    """Somebody writes a topic's assignment by hand: `p1="2,3"`. The topic's id is kept."""
    replicas = {int(name[1:]): tuple(map(int, ids.split(","))) for name, ids in partitions.items()}
    topic_id = tenure.cluster.topics[topic].topic_id
    tenure.server.put(paths.topic(topic), encode_topic(TopicAssignment(replicas, topic_id=topic_id)))


async def test_a_partition_that_somebody_adds_by_hand_gets_a_leader(tenure: Tenure) -> None:
    """KafkaController.processPartitionModifications; no request tells of it, and no write of ours is refused."""
    await tenure.create("orders", (1, 2))
    write(tenure, "orders", p0="1,2", p1="3,1")
    await settled()

    assert tenure.state("orders-1") == (3, 0, (3, 1))


async def test_what_is_added_to_a_topic_that_waits_for_its_deletion_is_undone(tenure: Tenure) -> None:
    """restorePartitionReplicaAssignment: nothing is left behind by a deletion that has counted its replicas."""
    await tenure.create("orders", (1, 2))
    before = tenure.server.at(paths.topic("orders")).data
    tenure.server.put(paths.delete_topic("orders"))
    tenure.cluster.deletions["orders"] = Deletion(blocked="a broker is away")
    write(tenure, "orders", p0="1,2", p1="3,1")
    await settled()

    assert before == tenure.server.at(paths.topic("orders")).data
    assert tenure.server.at(paths.topic("orders")).version == tenure.cluster.topics["orders"].version
    assert tenure.cluster.row_of("orders", 1) is None


async def test_our_own_work_is_no_news(tenure: Tenure) -> None:
    """A look may fall between a write and its application; it is only a suspicion then."""
    await tenure.create("orders", (1, 2))
    for count in range(2, 12):
        await tenure.controller.submit(CreatePartitions((NewPartitions("orders", count),)))
    await settled()

    assert len(tenure.cluster.topics["orders"].rows) == 11
    assert tenure.server.at(paths.topic("orders")).version == tenure.cluster.topics["orders"].version


async def test_an_assignment_that_cannot_be_read_is_named_once_and_changes_nothing(
    tenure: Tenure, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad input: the topic goes on as it was known, and is taken in when somebody has put it right."""
    await tenure.create("orders", (1, 2))
    good = tenure.server.at(paths.topic("orders")).data
    tenure.server.put(paths.topic("orders"), b"garbage")
    await settled(400)

    assert tenure.state("orders-0") == (1, 0, (1, 2))
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 1

    tenure.server.put(paths.topic("orders"), good)
    await settled()
    assert tenure.cluster.topics["orders"].version == 2


async def test_topics_are_looked_at_a_share_at_a_time(tenure: Tenure, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on everything: however many there are, a lap has POLLING_CYCLE_S shares at most."""
    monkeypatch.setattr(assignments_module, "MIN_TOPICS_PER_POLL", 2)
    for number in range(11):
        await tenure.create(f"t{number}", (1, 2))
    await settled(300)
    tenure.server.lines.clear()
    await settled(300)

    reads = [line.split()[1:] for line in tenure.server.lines if line.startswith("get /brokers/topics/t")]
    assert set(map(len, reads[1:-1])) == {3, 2}
    assert {paths.topic(f"t{number}") for number in range(11)} == {path for read in reads for path in read}
