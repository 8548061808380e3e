"""Topic ids for topics without one (KIP-516, KafkaController.processTopicIds, KafkaZkClient.setTopicIds)."""

from dataclasses import replace
from uuid import UUID

import numpy as np

from controller_core.model import zookeeper_events
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata
from controller_core.model.zookeeper_changes import TopicIdAssigned
from controller_core.zookeeper_mode.observed_topics import topics_without_id
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata

ID, OTHER_ID = UUID(int=77), UUID(int=78)


def cluster_with_old_topic(*assignment: list[int]) -> Driver:
    """Brokers 1, 2 and 3, and a topic without an id, found at a takeover."""
    driver = cluster_with([1, 2, 3])
    driver.write_topic("old", assignment)
    driver.written.topics["old"] = replace(driver.written.topics["old"], topic_id=None)
    driver.take_over()
    driver.forget()
    return driver


def test_a_topic_without_an_id_gets_the_generated_one() -> None:
    """Compare-and-set on the topic's znode; the assignment stays as it is."""
    driver = cluster_with_old_topic([1, 2], [2, 3])
    before = driver.written.topics["old"]

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"] == replace(before, topic_id=ID, version=before.version + 1)
    assert driver.cluster.topics["old"].topic_id == ID
    assert driver.cluster.topic_name(ID) == "old"
    assert list(topics_without_id(driver.cluster)) == []


def test_brokers_get_the_id_with_the_leader_epoch_that_they_know() -> None:
    """ReplicaManager.becomeLeaderOrFollower accepts an id for a log without one from a LeaderAndIsr with the same leader epoch."""
    driver = cluster_with_old_topic([1, 2])
    state = driver.state("old-0")

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert driver.state("old-0") == state
    assert [message.partitions[tp("old-0")].leader_epoch for message in driver.sent(LeaderAndIsr)] == [0, 0]
    assert [len(driver.sent(UpdateMetadata, broker_id=broker)) for broker in (1, 2, 3)] == [1, 1, 1]


def test_an_id_is_never_replaced() -> None:
    """A written id stays; the event may be decided again after a refused write."""
    driver = cluster_with_old_topic([1, 2])
    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))
    driver.forget()

    driver.submit(zookeeper_events.AssignTopicIds({"old": OTHER_ID, "never": OTHER_ID}))

    assert driver.changes == []
    assert driver.messages == []


def test_an_id_written_by_another_process_is_used_and_sent() -> None:
    """The version does not match: the written id is read and used."""
    driver = cluster_with_old_topic([1, 2])
    current = driver.written.topics["old"]

    def write_id() -> None:
        driver.written.topics["old"] = replace(current, topic_id=OTHER_ID, version=current.version + 1)

    driver.intrude(write_id)
    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"].topic_id == OTHER_ID
    assert driver.cluster.topics["old"].topic_id == OTHER_ID
    assert len(driver.sent(LeaderAndIsr)) == 2


def test_an_id_whose_write_result_was_lost_is_used_and_sent() -> None:
    """The connection was lost: the id is found written, and brokers get it."""
    driver = cluster_with_old_topic([1, 2])
    driver.lose_answer()

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"].topic_id == ID
    assert driver.cluster.topics["old"].topic_id == ID
    assert len(driver.sent(LeaderAndIsr)) == 2


def test_a_running_move_keeps_its_lists_when_the_topic_gets_an_id() -> None:
    """KafkaZkClient.setTopicIds writes the assignment with its adding and removing replicas."""
    driver = cluster_with_old_topic([1, 2])
    driver.reassign({"old-0": [1, 3]})
    moving = driver.written.topics["old"]
    assert moving.adding == {0: (3,)}

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"] == replace(moving, topic_id=ID, version=moving.version + 1)


def test_a_topic_queued_for_deletion_gets_no_id() -> None:
    """Its deletion waits for a dead replica; its znode is not written again (C10)."""
    driver = cluster_with_old_topic([1, 2])
    driver.kill(2)
    driver.delete("old")
    driver.forget()

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    assert [change for change in driver.changes if isinstance(change, TopicIdAssigned)] == []


def test_a_topic_that_appears_without_an_id_has_one_before_its_partitions_come_online() -> None:
    """KafkaController.processTopicChange assigns ids before onNewPartitionCreation: logs are created with the id."""
    driver = cluster_with([1, 2])
    driver.write_topic("late", [[1, 2]])
    driver.written.topics["late"] = replace(driver.written.topics["late"], topic_id=None)

    driver.submit(zookeeper_events.TopicsRead((replace(driver.written.record("late"), new_id=ID),), ()))

    assert driver.written.topics["late"].topic_id == ID
    assert driver.cluster.topics["late"].topic_id == ID
    assert driver.state("late-0") == State(1, 0, (1, 2))
    assert len(driver.sent(LeaderAndIsr)) == 2


def test_requests_contain_the_assigned_id() -> None:
    """The sent rows are the topic's; the id is read when the request is built."""
    driver = cluster_with_old_topic([1, 2])
    sends = []
    driver._send = sends.extend

    driver.submit(zookeeper_events.AssignTopicIds({"old": ID}))

    rows = driver.cluster.topics["old"].rows
    assert [type(send) for send in sends] == [SendLeaderAndIsr, SendLeaderAndIsr, SendMetadata]
    assert all(np.array_equal(send.rows, rows) for send in sends)
