"""CreateTopics: each topic independently, with Kafka's error messages (ZkAdminManager.createTopics)."""

from typing import Any

import pytest

from controller_core.decisions.topics import MAX_PARTITIONS_PER_REQUEST, TopicCreation
from controller_core.model import events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.decisions.driver import Driver, State, cluster_with

THREE = [1, 2, 3]


def refused(code: ErrorCode, message: str) -> Failure:
    """Return the expected error."""
    return Failure(code, message)


def create(driver: Driver, *topics: events.NewTopic, **request: Any) -> dict[str, TopicCreation]:
    """Send one request for several topics."""
    results: dict[str, TopicCreation] = driver.submit(events.CreateTopics(topics, **request))
    return results


def new(driver: Driver, name: str, **wish: Any) -> events.NewTopic:
    """One topic of a request."""
    return events.NewTopic(name, driver.new_topic_id(), **wish)


def test_a_topic_is_placed_and_online_in_one_event() -> None:
    """KafkaController.onNewPartitionCreation: from New to Online; the response contains what was created."""
    driver = cluster_with(THREE)
    made = driver.create("orders", partitions=3, replication_factor=2)

    assert (made.failure, made.partitions, made.replication_factor) == (None, 3, 2)
    assert [driver.replicas(f"orders-{partition}") for partition in range(3)] == [(1, 2), (2, 3), (3, 1)]
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_topic_without_counts_gets_the_clusters_defaults() -> None:
    """KIP-464: -1 partitions, -1 replicas."""
    driver = cluster_with(THREE)
    results = create(driver, new(driver, "orders"), default_partitions=4, default_replication_factor=3)

    assert (results["orders"].partitions, results["orders"].replication_factor) == (4, 3)


def test_a_given_assignment_is_used() -> None:
    """CreateTopics with assignments."""
    driver = cluster_with(THREE)
    made = driver.create("orders", [[3, 1], [2, 3]])

    assert (made.failure, made.partitions, made.replication_factor) == (None, 2, 2)
    assert driver.replicas("orders-0") == (3, 1)


def test_configs_are_written_with_the_topic() -> None:
    """TopicAdded contains them, and the response returns them."""
    driver = cluster_with(THREE)
    made = driver.create("orders", [[1]], configs={"retention.ms": "60000"})

    assert {"retention.ms": "60000"} == made.configs == driver.written.topics["orders"].configs


def test_the_unclean_election_setting_of_a_new_topic_is_known_at_once() -> None:
    """C7; Kafka parses booleans regardless of case."""
    driver = cluster_with(THREE)
    driver.create("logs", [[1]], configs={"unclean.leader.election.enable": "True"})

    assert driver.cluster.unclean_topics == {"logs": True}


BOTH_SET = (
    "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
)
REFUSALS: list[tuple[dict[str, Any], ErrorCode, str]] = [
    ({"partitions": 0}, ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."),
    (
        {"partitions": 1, "replication_factor": 0},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0.",
    ),
    (
        {"partitions": 1, "replication_factor": 4},
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor: 4 larger than available brokers: 3.",
    ),
    (
        {"configs": {"retentionms": "1"}},
        ErrorCode.INVALID_CONFIG,
        "Unknown topic config name: retentionms",
    ),
    (
        {"configs": {"retention.ms": "soon"}},
        ErrorCode.INVALID_CONFIG,
        "Invalid value soon for configuration retention.ms: Not a number of type LONG",
    ),
    (
        {"configs": {"retention.ms": None}},
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: retention.ms",
    ),
    (
        {"partitions": 1, "assignment": {0: (1,)}},
        ErrorCode.INVALID_REQUEST,
        BOTH_SET,
    ),
    (
        {"assignment": {0: (1,), 2: (2,)}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        {"assignment": {0: (1,), 1: (2, 3)}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "All partitions should have the same number of replicas",
    ),
    (
        {"assignment": {0: (1, 1)}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Duplicate replica assignment found: [1, 1]",
    ),
    (
        {"assignment": {0: (1, 9)}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Unknown broker(s) in replica assignment: 9.",
    ),
    (
        {"assignment": {0: ()}},
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        "Cannot have replication factor of 0 for any partition.",
    ),
    (
        {"partitions": MAX_PARTITIONS_PER_REQUEST + 1, "replication_factor": 1},
        ErrorCode.POLICY_VIOLATION,
        "Unable to create more than 10000 partitions in one request.",
    ),
]


@pytest.mark.parametrize(("wish", "code", "message"), REFUSALS)
def test_an_invalid_topic_is_refused_with_kafkas_message(wish: dict[str, Any], code: ErrorCode, message: str) -> None:
    """Nothing is written."""
    driver = cluster_with(THREE)
    made = create(driver, new(driver, "orders", **wish))["orders"]

    assert refused(code, message) == made.failure
    assert (driver.written.topics, driver.changes) == ({}, [])


def test_an_existing_topic_is_refused() -> None:
    """TOPIC_ALREADY_EXISTS."""
    driver = cluster_with(THREE, {"orders": [[1]]})

    assert driver.create("orders").failure == refused(ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 'orders' already exists.")


def test_a_topic_that_is_being_deleted_still_exists() -> None:
    """AdminZkClient: its znode exists until all replicas have answered."""
    driver = cluster_with(THREE, {"orders": [[1]]})
    driver.holds_answers = True
    driver.delete("orders")

    assert driver.create("orders").failure.code == ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_with_the_same_metric_name_collide() -> None:
    """AdminZkClient.validateTopicCreate; also within one request, where the first is created."""
    driver = cluster_with(THREE)
    results = create(driver, *(new(driver, name, assignment={0: (1,)}) for name in ("a.b", "a_b")))

    assert results["a.b"].failure is None
    assert (
        refused(ErrorCode.INVALID_TOPIC_EXCEPTION, "Topic 'a_b' collides with existing topics: a.b")
        == results["a_b"].failure
    )


def test_topics_of_a_request_are_independent() -> None:
    """An error for one does not affect the others."""
    driver = cluster_with(THREE)
    topics = {"good": {0: (1,)}, "bad": {0: (9,)}, "better": {0: (2,)}}
    results = create(driver, *(new(driver, name, assignment=given) for name, given in topics.items()))

    assert [result.failure and result.failure.code for result in results.values()] == [
        None,
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        None,
    ]
    assert driver.written.topics.keys() == {"good", "better"}


def test_the_total_number_of_partitions_of_a_request_is_limited() -> None:
    """One request must not occupy the controller for long."""
    driver = cluster_with(THREE)
    half = MAX_PARTITIONS_PER_REQUEST // 2 + 1
    topics = [new(driver, name, partitions=half, replication_factor=1) for name in ("first", "second")]
    results = create(driver, *topics, validate_only=True)

    assert [result.failure and result.failure.code for result in results.values()] == [None, ErrorCode.POLICY_VIOLATION]


def test_validation_writes_nothing() -> None:
    """validate_only: the same checks and messages, and no topic."""
    driver = cluster_with(THREE)
    made = driver.create("orders", partitions=2, replication_factor=2, validate_only=True)

    assert (made.failure, made.partitions, made.replication_factor) == (None, 2, 2)
    assert (driver.written.topics, driver.changes, driver.messages) == ({}, [], [])


def test_a_broker_that_shuts_down_gets_no_new_replica() -> None:
    """KafkaController's live brokers exclude those that shut down."""
    driver = cluster_with(THREE)
    driver.shut_down(3)
    made = driver.create("orders", partitions=1, replication_factor=3)

    assert made.failure.code == ErrorCode.INVALID_REPLICATION_FACTOR


def test_the_controllers_id_gets_no_replica() -> None:
    """Protocol notes, Z22: the controller's id is registered like a broker's."""
    driver = cluster_with(THREE)

    assert driver.create("orders", [[1000]]).failure.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a_topic_created_by_another_process_exists() -> None:
    """The write is refused, the topic is found and becomes online, and the caller gets the error."""
    driver = cluster_with(THREE)
    driver.intrude(lambda: driver.write_topic("orders", [[2, 3]]))
    made = driver.create("orders", [[1, 2]])

    assert made.failure.code == ErrorCode.TOPIC_ALREADY_EXISTS
    assert driver.state("orders-0") == State(2, 0, (2, 3))


def test_a_topic_whose_write_result_was_lost_is_created() -> None:
    """The connection was lost after the write: the topic's id shows that this request created it."""
    driver = cluster_with(THREE)
    wish = new(driver, "orders", assignment={0: (1, 2)})
    driver.intrude(lambda: driver.write_topic("orders", [[1, 2]], wish.topic_id))

    assert create(driver, wish)["orders"] == TopicCreation(None, wish.topic_id, 1, 2)
    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_a_topic_written_before_another_of_the_request_was_refused_is_created() -> None:
    """The decision is made again from the state only, and must recognise its own writes."""
    driver = cluster_with(THREE)
    driver.intrude(lambda: driver.write_topic("theirs", [[2, 3]]))
    results = create(driver, *(new(driver, name, assignment={0: (1,)}) for name in ("ours", "theirs")))

    assert [result.failure and result.failure.code for result in results.values()] == [
        None,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]


def test_a_controller_failure_between_the_topic_and_its_states_loses_nothing() -> None:
    """A topic found without states becomes online like one that a broker created."""
    driver = cluster_with(THREE)
    driver.die_at(commits=0, after=True)
    driver.crashing(lambda: driver.create("orders", [[1, 2]]))

    assert driver.written.states == {}

    driver.take_over()

    assert driver.state("orders-0") == State(1, 0, (1, 2))


def test_an_offline_broker_may_be_assigned() -> None:
    """ZkAdminManager.createTopics does not require live brokers; live replicas lead and are in sync."""
    driver = cluster_with(THREE, {"old": [[1, 2, 3]]})
    driver.kill(3)
    made = driver.create("orders", [[3, 1], [2, 3]])

    assert made.failure is None
    assert driver.replicas("orders-0") == (3, 1)
    assert (driver.state("orders-0"), driver.state("orders-1")) == (State(1, 0, (1,)), State(2, 0, (2,)))


def test_an_unknown_broker_is_refused() -> None:
    """Unlike in Kafka: an id that is neither registered nor has replicas is a mistake."""
    driver = cluster_with(THREE, {"old": [[1, 2]]})
    driver.kill(3)
    made = driver.create("orders", [[3, 1]])

    assert made.failure == refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "Unknown broker(s) in replica assignment: 3.")


def test_an_assignment_to_the_controller_is_refused_with_a_clear_message() -> None:
    """It is listed as a broker, so kafka-reassign-partitions --generate may plan with its id."""
    driver = cluster_with(THREE)
    own = driver.cluster.controller_id
    made = driver.create("orders", [[own, 1]])

    assert made.failure == refused(
        ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        f"Node {own} is the controller and holds no data: it cannot have a replica.",
    )
