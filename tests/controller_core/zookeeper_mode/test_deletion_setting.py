"""`delete.topic.enable` and names queued for deletion by other processes (TopicDeletionManager.init, processTopicDeletion; C10)."""

import pytest

from controller_core.model import NO_LEADER, zookeeper_events
from controller_core.model.settings import TopicDeletion
from kafka_wire import ErrorCode
from tests.controller_core.decisions.driver import CONTROLLER, Driver, cluster_with, tp
from tests.controller_core.decisions.messages import LeaderAndIsr, StopReplica

THREE = [1, 2, 3]


@pytest.fixture
def driver() -> Driver:
    """Three brokers and a topic on brokers 1 and 2, with records; answers are held."""
    driver = cluster_with(THREE, {"orders": [[1, 2]]})
    for broker_id in (1, 2):
        driver.brokers[broker_id].logs[tp("orders-0")] = 7
    driver.holds_answers = True
    return driver


def take_over_with_unknown_setting(driver: Driver) -> None:
    """Let another controller take over before brokers have been queried."""
    setting, driver.written.topic_deletion = driver.written.topic_deletion, TopicDeletion.UNKNOWN
    driver.take_over()
    driver.written.topic_deletion = setting
    driver.forget()


def assert_in_service(driver: Driver) -> None:
    """Check that the topic is in service with all its records, and nothing is queued."""
    assert driver.sent(StopReplica) == []
    assert driver.written.deletions == []
    assert driver.cluster.deletions == {}
    assert driver.state("orders-0").leader != NO_LEADER
    assert [driver.brokers[broker_id].logs[tp("orders-0")] for broker_id in (1, 2)] == [7, 7]


@pytest.mark.shows("C10")
def test_a_manually_queued_name_is_removed_and_nothing_is_deleted(driver: Driver) -> None:
    """C10, KafkaController.processTopicDeletion: with delete.topic.enable=false names are removed from the queue."""
    driver.report_topic_deletion(TopicDeletion.DISABLED)

    driver.queue_deletion("orders", "ghost")

    assert_in_service(driver)


@pytest.mark.shows("C10")
def test_a_name_found_at_a_takeover_waits_for_the_setting(driver: Driver) -> None:
    """C10: before a broker has reported the setting, nothing is sent and the name stays queued."""
    driver.written.deletions.append("orders")
    take_over_with_unknown_setting(driver)

    driver.submit(zookeeper_events.AdvanceDeletions(retry=True))

    assert driver.sent(StopReplica) == []
    assert driver.written.deletions == ["orders"]
    assert driver.cluster.deletions["orders"].blocked == "no broker has reported delete.topic.enable"


def test_a_name_found_at_a_takeover_is_removed_when_brokers_report_false(driver: Driver) -> None:
    """TopicDeletionManager.init: the entries in /admin/delete_topics are removed, and the topic is in service."""
    driver.written.deletions.append("orders")
    take_over_with_unknown_setting(driver)

    driver.report_topic_deletion(TopicDeletion.DISABLED)

    assert_in_service(driver)


def test_a_name_found_at_a_takeover_is_deleted_when_brokers_report_true(driver: Driver) -> None:
    """C10: the deletion starts as soon as the setting is known."""
    driver.written.deletions.append("orders")
    take_over_with_unknown_setting(driver)

    driver.report_topic_deletion(TopicDeletion.ENABLED)
    driver.answer()

    assert driver.written.topics == {}
    assert driver.written.deletions == []


def test_a_topic_whose_deletion_waits_is_in_service_while_no_broker_reports_the_setting(driver: Driver) -> None:
    """The setting may stay unknown for long (brokers that refuse DescribeConfigs): leaders are elected nevertheless."""
    driver.written.deletions.append("orders")
    take_over_with_unknown_setting(driver)
    driver.report_topic_deletion(TopicDeletion.NOT_REPORTED)

    driver.kill(1)

    assert driver.state("orders-0").leader == 2
    assert driver.sent(StopReplica) == []
    assert driver.written.deletions == ["orders"]
    driver.start(1)
    driver.report_topic_deletion(TopicDeletion.ENABLED)
    driver.answer()
    assert driver.written.topics == {}


def test_the_last_reported_value_remains_in_force(driver: Driver) -> None:
    """A poll without responses changes nothing."""
    driver.report_topic_deletion(TopicDeletion.DISABLED)

    driver.submit(zookeeper_events.TopicDeletionRead(TopicDeletion.NOT_REPORTED))

    assert driver.cluster.topic_deletion is TopicDeletion.DISABLED


def test_a_waiting_deletion_is_withdrawn_when_the_setting_becomes_false(driver: Driver) -> None:
    """Brokers restarted with another file. With Kafka, another broker then becomes the controller and empties the queue."""
    driver.kill(2)
    driver.delete("orders")
    assert driver.cluster.deletions["orders"].blocked == "brokers [2] are offline"

    driver.report_topic_deletion(TopicDeletion.DISABLED)

    assert_in_service(driver)


def test_a_started_deletion_ends_when_the_setting_becomes_false(driver: Driver) -> None:
    """Every live broker was sent a request to delete its log: no replica can be kept."""
    driver.delete("orders")

    driver.report_topic_deletion(TopicDeletion.DISABLED)
    driver.answer()

    assert driver.written.topics == {}
    assert driver.written.deletions == []


def test_a_started_and_blocked_deletion_is_withdrawn_and_brokers_serve_the_topic_again(driver: Driver) -> None:
    """Brokers that were sent a stop accept the partition again only with a higher leader epoch."""
    driver.delete("orders")
    driver.report_topic_deletion(TopicDeletion.DISABLED)
    epoch = driver.state("orders-0").leader_epoch

    driver.kill(2)

    assert driver.written.deletions == []
    assert driver.state("orders-0").leader_epoch > epoch
    driver.start(2)
    assert [driver.brokers[broker_id].states[tp("orders-0")].leader_epoch for broker_id in (1, 2)] == [
        driver.state("orders-0").leader_epoch
    ] * 2


def test_a_topic_resumes_with_a_higher_leader_epoch(driver: Driver) -> None:
    """An earlier controller may have sent StopReplica: brokers ignore a LeaderAndIsr with an epoch that they know."""
    driver.written.deletions.append("orders")
    epoch = driver.state("orders-0").leader_epoch
    take_over_with_unknown_setting(driver)

    driver.report_topic_deletion(TopicDeletion.DISABLED)

    assert {sent.partitions[tp("orders-0")].leader_epoch for sent in driver.sent(LeaderAndIsr)} == {epoch + 1}


def test_a_request_accepted_before_the_setting_changed_is_refused(driver: Driver) -> None:
    """TOPIC_DELETION_DISABLED, as the front returns for later requests."""
    driver.report_topic_deletion(TopicDeletion.DISABLED)

    failure = driver.delete("orders")["orders"]

    assert failure.code is ErrorCode.TOPIC_DELETION_DISABLED
    assert_in_service(driver)


def test_the_controllers_id_is_removed_from_the_assignment_of_a_topic_that_resumes(driver: Driver) -> None:
    """Assignments are not repaired while a topic is being deleted; this one returns to service."""
    driver.queue_deletion("orders")
    driver.write_partition("orders", 1, [CONTROLLER])
    take_over_with_unknown_setting(driver)

    driver.report_topic_deletion(TopicDeletion.DISABLED)

    assert CONTROLLER not in driver.replicas("orders-1")
    assert driver.state("orders-1").leader != NO_LEADER


def test_a_broker_that_restarted_gets_a_topic_that_resumes_without_a_leader(driver: Driver) -> None:
    """C12: brokers get no topics that are being deleted; after the deletion is withdrawn they get them, with or without a leader."""
    driver.create("single", [[1]])
    driver.kill(1)
    driver.queue_deletion("single")
    driver.bounce(2)
    assert tp("single-0") not in driver.brokers[2].metadata

    driver.report_topic_deletion(TopicDeletion.DISABLED)

    assert driver.brokers[2].metadata[tp("single-0")] == driver.state("single-0")[:2]
