"""Metadata (KIP-4, KIP-516, KafkaApis.handleTopicMetadataRequest, ZkMetadataCache)."""

from uuid import UUID, uuid4

import pytest

from controller_core.model import Origin, TopicPartition
from controller_core.model.changes import TopicAdded
from controller_core.model.columns import pad
from controller_core.model.events import DeleteTopics
from controller_core.model.zookeeper_events import ControlledShutdown, LeaderAndIsrAnswered
from controller_core.shell.front.handler import RelayInstead
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body, ErrorCode
from tests.controller_core.shell.admin.api_calls import active_with_topic, add_topic, call, only, pick
from tests.controller_core.shell.admin.fake_active import CONTROLLER, active_with, broker
from tests.controller_core.states import column

NO_ID = UUID(int=0)


def request(*names: str | None, create: bool = False) -> Body:
    """Return a request for topics by name."""
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": create}


def topic_ids(*ids: UUID) -> Body:
    """Return a request for topics by id."""
    return {"topics": [{"name": None, "topic_id": topic_id} for topic_id in ids], "allow_auto_topic_creation": False}


async def test_controller_is_listed_on_the_listener_of_the_request() -> None:
    """Clients find the controller in the list of brokers, by the listener of their connection (protocol notes, Z24)."""
    active = active_with(broker(1), broker(2))

    response = await call(active, ApiKey.METADATA, request(), listener="INTERNAL")

    assert response["controller_id"] == CONTROLLER
    assert [(node["node_id"], node["host"], node["port"]) for node in response["brokers"]] == [
        (1, "broker1", 9101),
        (2, "broker2", 9102),
        (CONTROLLER, "steward", 9991),
    ]


async def test_cluster_id_is_returned() -> None:
    """KIP-78."""
    response = await call(active_with(), ApiKey.METADATA, request())

    assert response["cluster_id"] == "cluster-of-tests"


async def test_broker_without_the_listener_is_not_listed() -> None:
    """ZkMetadataCache.getAliveBrokerNodes: addresses of other listeners are not returned."""
    active = active_with(broker(1), broker(2, listeners=["INTERNAL"]))

    response = await call(active, ApiKey.METADATA, request())

    assert [node["node_id"] for node in response["brokers"]] == [1, CONTROLLER]


async def test_controller_has_a_rack_if_brokers_have_racks() -> None:
    """Tools refuse to place replicas if a broker has no rack (protocol notes, Z23)."""
    active = active_with(broker(1, "north"), broker(2, "south"))

    response = await call(active, ApiKey.METADATA, request())

    assert [node["rack"] for node in response["brokers"]] == ["north", "south", "north"]


async def test_topic_is_described_by_name() -> None:
    """MetadataResponseTopic: name, id, and its partitions with leader, replicas and ISR."""
    active = await active_with_topic("a", {0: (2, 3), 1: (3, 1)})

    topic = only(await call(active, ApiKey.METADATA, request("a")), "topics")

    assert pick(topic, "error_code", "name", "topic_id", "is_internal") == {
        "error_code": 0,
        "name": "a",
        "topic_id": active.cluster.topics["a"].topic_id,
        "is_internal": False,
    }
    assert [
        {
            "error_code": 0,
            "partition_index": number,
            "leader_id": leader,
            "leader_epoch": 0,
            "replica_nodes": replicas,
            "isr_nodes": replicas,
            "offline_replicas": [],
        }
        for number, leader, replicas in [(0, 2, [2, 3]), (1, 3, [3, 1])]
    ] == topic["partitions"]


@pytest.mark.parametrize(("version", "topics"), [(0, []), (1, None), (12, None)])
async def test_null_list_means_all_topics(version: int, topics: list[Body] | None) -> None:
    """In version 0 an empty list means all (MetadataRequest.isAllTopics)."""
    active = await active_with_topic("a", {0: (1,)})
    await add_topic(active, "b", {0: (2,)})

    response = await call(active, ApiKey.METADATA, {"topics": topics}, version)

    assert [topic["name"] for topic in response["topics"]] == ["a", "b"]


async def test_empty_list_means_no_topic() -> None:
    """From version 1 on (MetadataRequest.isAllTopics)."""
    active = await active_with_topic("a", {0: (1,)})

    response = await call(active, ApiKey.METADATA, {"topics": []}, 1)

    assert response["topics"] == []


async def test_topic_is_described_by_id() -> None:
    """KIP-516: from version 12 on."""
    active = await active_with_topic("a", {0: (1,)})
    topic_id = active.cluster.topics["a"].topic_id
    assert topic_id is not None

    topic = only(await call(active, ApiKey.METADATA, topic_ids(topic_id)), "topics")

    assert (ErrorCode.NONE, "a", topic_id) == (topic["error_code"], topic["name"], topic["topic_id"])


async def test_an_unknown_id_is_answered_without_a_name() -> None:
    """UNKNOWN_TOPIC_ID with the requested id (KIP-516)."""
    unknown = uuid4()

    topic = only(await call(active_with(), ApiKey.METADATA, topic_ids(unknown)), "topics")

    assert (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown) == (topic["error_code"], topic["name"], topic["topic_id"])


@pytest.mark.parametrize(
    ("version", "topic"),
    [(10, {"name": "a", "topic_id": UUID(int=5)}), (11, {"name": None}), (12, {"name": None})],
)
async def test_invalid_identification_of_a_topic_is_refused(version: int, topic: Body) -> None:
    """Versions 10 and 11 have a field for ids but do not support it; a name or an id is required in every version."""
    response = await call(active_with(), ApiKey.METADATA, {"topics": [topic]}, version)

    assert (ErrorCode.INVALID_REQUEST, topic["name"] or "") == (
        only(response, "topics")["error_code"],
        only(response, "topics")["name"],
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_unknown_and_invalid_names_are_errors(name: str, code: ErrorCode) -> None:
    """KafkaApis.getTopicMetadata."""
    topic = only(await call(active_with(), ApiKey.METADATA, request(name)), "topics")

    assert (code, name, NO_ID, []) == (topic["error_code"], topic["name"], topic["topic_id"], topic["partitions"])


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
async def test_internal_topics_are_marked(name: str) -> None:
    """Topic.isInternal: consumers exclude them from patterns."""
    active = await active_with_topic(name, {0: (1,)})

    assert only(await call(active, ApiKey.METADATA, request(name)), "topics")["is_internal"]


async def test_request_with_creatable_topic_is_relayed() -> None:
    """Automatic creation: brokers have the settings and write the topic (protocol notes, Z70)."""
    active = await active_with_topic("a", {0: (1,)})

    with pytest.raises(RelayInstead):
        await call(active, ApiKey.METADATA, request("a", "unknown", create=True))


@pytest.mark.parametrize(("name", "expected"), [("a", 0), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)])
async def test_request_without_creatable_topic_is_not_relayed(name: str, expected: int) -> None:
    """Known topics and invalid names (AutoTopicCreationManager.filterCreatableTopics)."""
    active = await active_with_topic("a", {0: (1,)})

    assert only(await call(active, ApiKey.METADATA, request(name, create=True)), "topics")["error_code"] == expected


async def test_creatable_topic_is_unknown_without_a_reachable_broker() -> None:
    """There is no broker to relay the request to."""
    active = active_with(broker(1, listeners=["INTERNAL"]))

    topic = only(await call(active, ApiKey.METADATA, request("unknown", create=True)), "topics")

    assert topic["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_topic_in_deletion_is_unknown() -> None:
    """Brokers drop a topic when they receive leader -2 (LeaderAndIsr.LeaderDuringDelete)."""
    active = await active_with_topic("a", {0: (1,)}, silent=True)
    topic_id = active.cluster.topics["a"].topic_id
    assert topic_id is not None
    active.run(DeleteTopics(("a",)))

    by_name = only(await call(active, ApiKey.METADATA, request("a")), "topics")
    by_id = only(await call(active, ApiKey.METADATA, topic_ids(topic_id)), "topics")
    everything = await call(active, ApiKey.METADATA, {"topics": None})

    assert (
        by_name["error_code"],
        by_id["error_code"],
        everything["topics"],
    ) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, [])


async def test_topic_with_pending_deletion_is_known() -> None:
    """Brokers serve its data until they are notified (TopicDeletionManager)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(1))
    active.run(DeleteTopics(("a",)))

    assert only(await call(active, ApiKey.METADATA, request("a")), "topics")["error_code"] == ErrorCode.NONE


async def test_partition_without_a_leader_is_an_error() -> None:
    """LEADER_NOT_AVAILABLE, leader -1, and the offline replicas (ZkMetadataCache.getPartitionMetadata)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(2))

    partition = only(await call(active, ApiKey.METADATA, request("a")), "topics", "partitions")

    assert pick(partition, "error_code", "leader_id", "replica_nodes", "offline_replicas") == {
        "error_code": ErrorCode.LEADER_NOT_AVAILABLE,
        "leader_id": -1,
        "replica_nodes": [1, 2],
        "offline_replicas": [1],
    }


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_leader_without_the_listener_is_an_error(version: int, code: ErrorCode) -> None:
    """LISTENER_NOT_FOUND reports a wrong configuration, from version 6 on (KIP-226)."""
    active = await active_with_topic("a", {0: (1,)}, broker(1, listeners=["INTERNAL"]), broker(2))

    partition = only(await call(active, ApiKey.METADATA, request("a"), version), "topics", "partitions")

    assert (code, -1, []) == (partition["error_code"], partition["leader_id"], partition["offline_replicas"])


async def test_version_0_omits_unreachable_replicas() -> None:
    """REPLICA_NOT_AVAILABLE reports the omission (errorUnavailableEndpoints)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(1))

    partition = only(await call(active, ApiKey.METADATA, {"topics": [{"name": "a"}]}, 0), "topics", "partitions")

    assert (
        partition["error_code"],
        partition["leader_id"],
        partition["replica_nodes"],
        partition["isr_nodes"],
    ) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1], [1])


async def test_replicas_on_a_broker_in_controlled_shutdown_are_offline() -> None:
    """ControllerContext.isReplicaOnline; the broker is still listed."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.run(ControlledShutdown(2))

    response = await call(active, ApiKey.METADATA, request("a"))

    assert only(response, "topics", "partitions")["offline_replicas"] == [2]
    assert 2 in [node["node_id"] for node in response["brokers"]]


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS])
async def test_replicas_in_a_failed_log_directory_are_offline(key: ApiKey) -> None:
    """ControllerContext.isReplicaOnline (KIP-112): the broker is live and has other replicas."""
    active = await active_with_topic("a", {0: (1, 2), 1: (2, 3)})
    active.run(LeaderAndIsrAnswered(2, active.cluster.brokers[2].epoch, (TopicPartition("a", 0),), ()))

    topic = only(await call(active, key, {"topics": [{"name": "a"}]}), "topics")

    assert {partition["partition_index"]: partition["offline_replicas"] for partition in topic["partitions"]} == {
        0: [2],
        1: [],
    }


@pytest.mark.parametrize("version", [7, 8, 10, 11, 12])
async def test_all_operations_are_authorized_without_an_authorizer(version: int) -> None:
    """KIP-430, AuthHelper.authorizedOperations; those on the cluster moved to DescribeCluster with version 11 (KIP-700)."""
    active = await active_with_topic("a", {0: (1,)})
    requested = request("a")
    if version >= 8:
        requested |= {"include_topic_authorized_operations": True}
    if 8 <= version <= 10:
        requested |= {"include_cluster_authorized_operations": True}

    response = await call(active, ApiKey.METADATA, requested, version)

    not_asked = -(2**31)
    topic = only(response, "topics")
    assert (0xDF8 if version >= 8 else not_asked) == topic["topic_authorized_operations"]
    assert (0x1FA0 if 8 <= version <= 10 else not_asked) == response["cluster_authorized_operations"]
    assert not_asked == only(await call(active, ApiKey.METADATA, request("a")), "topics")["topic_authorized_operations"]


async def test_new_partition_is_described_without_a_leader() -> None:
    """A topic written by a broker is listed at once, before its leaders are elected (NewPartition)."""
    active = active_with()
    added = TopicAdded("a", None, column([0]), pad([(1, 2)]), Origin.OBSERVED)
    apply(active.cluster, added)

    topic = only(await call(active, ApiKey.METADATA, request("a", create=True)), "topics")

    assert (
        topic["topic_id"],
        only(topic, "partitions")["error_code"],
        only(topic, "partitions")["leader_epoch"],
        only(topic, "partitions")["isr_nodes"],
    ) == (NO_ID, ErrorCode.LEADER_NOT_AVAILABLE, -1, [])


async def test_changed_isr_is_returned() -> None:
    """After AlterPartition (KIP-497)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.sync(TopicPartition("a", 0), (1,))

    assert only(await call(active, ApiKey.METADATA, request("a")), "topics", "partitions")["isr_nodes"] == [1]


async def test_duplicate_name_is_answered_once() -> None:
    """KafkaApis collects names in a set."""
    active = await active_with_topic("a", {0: (1,)})

    assert len((await call(active, ApiKey.METADATA, request("a", "a")))["topics"]) == 1


async def test_standby_returns_no_nodes() -> None:
    """Clients ignore an answer without nodes and use another node (NetworkClient)."""
    response = await call(None, ApiKey.METADATA, request("a"))

    assert (response["brokers"], response["controller_id"]) == ([], -1)
