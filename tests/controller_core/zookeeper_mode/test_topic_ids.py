"""Topics without an id get one (KIP-516, KafkaController.processTopicIds, KafkaZkClient.setTopicIds)."""

from dataclasses import replace
from uuid import UUID

import numpy as np

from controller_core.model import events
from controller_core.model.changes import TopicIdAssigned
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata
from controller_core.zookeeper_mode.observed_topics import topics_without_id
from tests.controller_core.decisions.driver import Driver, State, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, UpdateMetadata

ID, OTHER_ID = UUID(int=77), UUID(int=78)


def cluster_with_old_topic(*assignment: list[int]) -> Driver:
    """Brokers 1, 2 and 3, and a topic that was written without an id, found at a take-over."""
    driver = cluster_with([1, 2, 3])
    driver.write_topic("old", assignment)
    driver.written.topics["old"] = replace(driver.written.topics["old"], topic_id=None)
    driver.take_over()
    driver.forget()
    return driver


def test_a_topic_without_an_id_gets_the_one_that_was_drawn() -> None:
    """Compare-and-set on the topic's znode; the assignment stays as it is."""
    driver = cluster_with_old_topic([1, 2], [2, 3])
    before = driver.written.topics["old"]

    driver.submit(events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"] == replace(before, topic_id=ID, version=before.version + 1)
    assert driver.cluster.topics["old"].topic_id == ID
    assert driver.cluster.topic_name(ID) == "old"
    assert list(topics_without_id(driver.cluster)) == []


def test_brokers_get_the_id_under_the_leader_epoch_that_they_know() -> None:
    """ReplicaManager.becomeLeaderOrFollower takes an id for a log without one from a LeaderAndIsr of the same leader epoch."""
    driver = cluster_with_old_topic([1, 2])
    state = driver.state("old-0")

    driver.submit(events.AssignTopicIds({"old": ID}))

    assert driver.state("old-0") == state
    assert [message.partitions[tp("old-0")].leader_epoch for message in driver.told(LeaderAndIsr)] == [0, 0]
    assert [len(driver.told(UpdateMetadata, broker_id=broker)) for broker in (1, 2, 3)] == [1, 1, 1]


def test_an_id_is_never_replaced() -> None:
    """An id that is written stays; the event may be decided again after a refused write."""
    driver = cluster_with_old_topic([1, 2])
    driver.submit(events.AssignTopicIds({"old": ID}))
    driver.forget()

    driver.submit(events.AssignTopicIds({"old": OTHER_ID, "never": OTHER_ID}))

    assert driver.changes == []
    assert driver.messages == []


def test_an_id_that_somebody_else_wrote_in_between_is_taken_and_sent() -> None:
    """The version does not match: what is written is read again and counts."""
    driver = cluster_with_old_topic([1, 2])
    present = driver.written.topics["old"]

    def write_id() -> None:
        driver.written.topics["old"] = replace(present, topic_id=OTHER_ID, version=present.version + 1)

    driver.intrude(write_id)
    driver.submit(events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"].topic_id == OTHER_ID
    assert driver.cluster.topics["old"].topic_id == OTHER_ID
    assert len(driver.told(LeaderAndIsr)) == 2


def test_an_id_whose_write_was_done_and_not_answered_is_taken_and_sent() -> None:
    """The connection went: the id is found written, and the brokers get it."""
    driver = cluster_with_old_topic([1, 2])
    driver.lose_answer()

    driver.submit(events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"].topic_id == ID
    assert driver.cluster.topics["old"].topic_id == ID
    assert len(driver.told(LeaderAndIsr)) == 2


def test_a_running_move_keeps_its_lists_when_the_topic_gets_an_id() -> None:
    """KafkaZkClient.setTopicIds writes the assignment with what is added and removed."""
    driver = cluster_with_old_topic([1, 2])
    driver.reassign({"old-0": [1, 3]})
    moving = driver.written.topics["old"]
    assert moving.adding == {0: (3,)}

    driver.submit(events.AssignTopicIds({"old": ID}))

    assert driver.written.topics["old"] == replace(moving, topic_id=ID, version=moving.version + 1)


def test_a_topic_that_is_to_be_deleted_gets_no_id() -> None:
    """Its deletion waits for a dead replica; nothing of it is written again (C10)."""
    driver = cluster_with_old_topic([1, 2])
    driver.kill(2)
    driver.delete("old")
    driver.forget()

    driver.submit(events.AssignTopicIds({"old": ID}))

    assert [change for change in driver.changes if isinstance(change, TopicIdAssigned)] == []


def test_a_topic_that_appears_without_an_id_has_one_before_its_partitions_come_online() -> None:
    """KafkaController.processTopicChange assigns ids before onNewPartitionCreation: logs are made with the id."""
    driver = cluster_with([1, 2])
    driver.write_topic("late", [[1, 2]])
    driver.written.topics["late"] = replace(driver.written.topics["late"], topic_id=None)

    driver.submit(events.TopicsRead((replace(driver.written.record("late"), new_id=ID),), ()))

    assert driver.written.topics["late"].topic_id == ID
    assert driver.cluster.topics["late"].topic_id == ID
    assert driver.state("late-0") == State(1, 0, (1, 2))
    assert len(driver.told(LeaderAndIsr)) == 2


def test_requests_carry_the_id_that_was_assigned() -> None:
    """The rows that are sent are the topic's; the id is looked up when the request is built."""
    driver = cluster_with_old_topic([1, 2])
    sends = []
    driver._send = sends.extend  # type: ignore[method-assign]

    driver.submit(events.AssignTopicIds({"old": ID}))

    rows = driver.cluster.topics["old"].rows
    assert [type(send) for send in sends] == [SendLeaderAndIsr, SendLeaderAndIsr, SendMetadata]
    assert all(np.array_equal(send.rows, rows) for send in sends)
