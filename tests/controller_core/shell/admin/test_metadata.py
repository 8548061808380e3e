"""Metadata (KIP-4, KIP-516, KafkaApis.handleTopicMetadataRequest, ZkMetadataCache)."""

from uuid import UUID, uuid4

import pytest

from controller_core.decisions.transition import apply
from controller_core.model.changes import Origin, TopicAdded
from controller_core.model.columns import pad
from controller_core.model.events import ControlledShutdown, DeleteTopics, LeaderAndIsrAnswered
from controller_core.model.ids import TopicPartition
from controller_core.shell.front.handler import RelayInstead
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from tests.controller_core.shell.admin.asking import active_with_topic, add_topic, ask, only, pick
from tests.controller_core.shell.admin.fake_active import CONTROLLER, active_with, broker
from tests.controller_core.states import column

NO_ID = UUID(int=0)


def asking(*names: str | None, create: bool = False) -> Body:
    """A request for topics by name."""
    return {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": create}


def topic_ids(*ids: UUID) -> Body:
    """A request for topics by id."""
    return {"topics": [{"name": None, "topic_id": one} for one in ids], "allow_auto_topic_creation": False}


async def test_the_controller_is_listed_as_a_broker_on_the_callers_listener() -> None:
    """Clients find the controller in the list of brokers, by the listener that they came in on (protocol notes, Z24)."""
    active = active_with(broker(1), broker(2))

    response = await ask(active, ApiKey.METADATA, asking(), listener="INTERNAL")

    assert response["controller_id"] == CONTROLLER
    assert [(node["node_id"], node["host"], node["port"]) for node in response["brokers"]] == [
        (1, "broker1", 9101),
        (2, "broker2", 9102),
        (CONTROLLER, "steward", 9991),
    ]


async def test_the_cluster_id_is_told() -> None:
    """KIP-78."""
    response = await ask(active_with(), ApiKey.METADATA, asking())

    assert response["cluster_id"] == "cluster-of-tests"


async def test_a_broker_without_the_callers_listener_is_not_listed() -> None:
    """ZkMetadataCache.getAliveBrokerNodes: no address on another listener is given away."""
    active = active_with(broker(1), broker(2, listeners=["INTERNAL"]))

    response = await ask(active, ApiKey.METADATA, asking())

    assert [node["node_id"] for node in response["brokers"]] == [1, CONTROLLER]


async def test_where_brokers_have_racks_the_controller_has_one() -> None:
    """Tools refuse to place replicas where some broker has no rack (protocol notes, Z23)."""
    active = active_with(broker(1, "north"), broker(2, "south"))

    response = await ask(active, ApiKey.METADATA, asking())

    assert [node["rack"] for node in response["brokers"]] == ["north", "south", "north"]


async def test_a_topic_by_name() -> None:
    """MetadataResponseTopic: name, id, and its partitions with leader, replicas and ISR."""
    active = await active_with_topic("a", {0: (2, 3), 1: (3, 1)})

    topic = only(await ask(active, ApiKey.METADATA, asking("a")), "topics")

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
async def test_all_topics_are_asked_for_by_none(version: int, topics: list[Body] | None) -> None:
    """Version 0 says "all" by an empty list, later ones by null (MetadataRequest.isAllTopics)."""
    active = await active_with_topic("a", {0: (1,)})
    await add_topic(active, "b", {0: (2,)})

    response = await ask(active, ApiKey.METADATA, {"topics": topics}, version)

    assert [topic["name"] for topic in response["topics"]] == ["a", "b"]


async def test_an_empty_list_asks_for_no_topic() -> None:
    """From version 1 on (MetadataRequest.isAllTopics)."""
    active = await active_with_topic("a", {0: (1,)})

    response = await ask(active, ApiKey.METADATA, {"topics": []}, 1)

    assert response["topics"] == []


async def test_a_topic_by_id() -> None:
    """KIP-516: from version 12 on."""
    active = await active_with_topic("a", {0: (1,)})
    topic_id = active.cluster.topics["a"].topic_id
    assert topic_id is not None

    topic = only(await ask(active, ApiKey.METADATA, topic_ids(topic_id)), "topics")

    assert (ErrorCode.NONE, "a", topic_id) == (topic["error_code"], topic["name"], topic["topic_id"])


async def test_an_unknown_id_is_answered_without_a_name() -> None:
    """UNKNOWN_TOPIC_ID, with the id that was asked for (KIP-516)."""
    unknown = uuid4()

    topic = only(await ask(active_with(), ApiKey.METADATA, topic_ids(unknown)), "topics")

    assert (ErrorCode.UNKNOWN_TOPIC_ID, None, unknown) == (topic["error_code"], topic["name"], topic["topic_id"])


@pytest.mark.parametrize(
    ("version", "topic"),
    [(10, {"name": "a", "topic_id": UUID(int=5)}), (11, {"name": None}), (12, {"name": None})],
)
async def test_a_topic_that_is_named_in_no_legal_way_is_refused(version: int, topic: Body) -> None:
    """Versions 10 and 11 have the field for ids and do not take it; no version takes a topic without both."""
    response = await ask(active_with(), ApiKey.METADATA, {"topics": [topic]}, version)

    assert (ErrorCode.INVALID_REQUEST, topic["name"] or "") == (
        only(response, "topics")["error_code"],
        only(response, "topics")["name"],
    )


@pytest.mark.parametrize(
    ("name", "code"),
    [("unknown", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
async def test_a_name_that_no_topic_has(name: str, code: ErrorCode) -> None:
    """KafkaApis.getTopicMetadata: unknown, or never possible."""
    topic = only(await ask(active_with(), ApiKey.METADATA, asking(name)), "topics")

    assert (code, name, NO_ID, []) == (topic["error_code"], topic["name"], topic["topic_id"], topic["partitions"])


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
async def test_internal_topics_are_marked(name: str) -> None:
    """Topic.isInternal: consumers leave these out of patterns."""
    active = await active_with_topic(name, {0: (1,)})

    assert only(await ask(active, ApiKey.METADATA, asking(name)), "topics")["is_internal"]


async def test_an_unknown_topic_that_may_be_created_is_a_brokers_business() -> None:
    """Auto-creation: brokers know their own settings and write the topic themselves (protocol notes, Z70)."""
    active = await active_with_topic("a", {0: (1,)})

    with pytest.raises(RelayInstead):
        await ask(active, ApiKey.METADATA, asking("a", "unknown", create=True))


@pytest.mark.parametrize(("name", "expected"), [("a", 0), ("bad/name", ErrorCode.INVALID_TOPIC_EXCEPTION)])
async def test_what_is_known_or_impossible_is_not_relayed(name: str, expected: int) -> None:
    """Nothing is to be created, so no broker needs to be asked (AutoTopicCreationManager.filterCreatableTopics)."""
    active = await active_with_topic("a", {0: (1,)})

    assert only(await ask(active, ApiKey.METADATA, asking(name, create=True)), "topics")["error_code"] == expected


async def test_with_no_broker_to_create_it_a_topic_is_unknown() -> None:
    """A relay would have nobody to go to."""
    active = active_with(broker(1, listeners=["INTERNAL"]))

    topic = only(await ask(active, ApiKey.METADATA, asking("unknown", create=True)), "topics")

    assert topic["error_code"] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_that_is_being_deleted_is_unknown() -> None:
    """Brokers forget a topic when they are told leader -2, and so do we (LeaderAndIsr.LeaderDuringDelete)."""
    active = await active_with_topic("a", {0: (1,)}, silent=True)
    topic_id = active.cluster.topics["a"].topic_id
    assert topic_id is not None
    active.run(DeleteTopics(("a",)))

    by_name = only(await ask(active, ApiKey.METADATA, asking("a")), "topics")
    by_id = only(await ask(active, ApiKey.METADATA, topic_ids(topic_id)), "topics")
    everything = await ask(active, ApiKey.METADATA, {"topics": None})

    assert (
        by_name["error_code"],
        by_id["error_code"],
        everything["topics"],
    ) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, [])


async def test_a_topic_whose_deletion_has_to_wait_is_still_known() -> None:
    """Brokers have not been told yet: its data is served until they are (TopicDeletionManager)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(1))
    active.run(DeleteTopics(("a",)))

    assert only(await ask(active, ApiKey.METADATA, asking("a")), "topics")["error_code"] == ErrorCode.NONE


async def test_a_partition_without_a_leader() -> None:
    """LEADER_NOT_AVAILABLE, leader -1, and the replicas that are away (ZkMetadataCache.getPartitionMetadata)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(2))

    partition = only(await ask(active, ApiKey.METADATA, asking("a")), "topics", "partitions")

    assert pick(partition, "error_code", "leader_id", "replica_nodes", "offline_replicas") == {
        "error_code": ErrorCode.LEADER_NOT_AVAILABLE,
        "leader_id": -1,
        "replica_nodes": [1, 2],
        "offline_replicas": [1],
    }


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)])
async def test_a_leader_without_the_callers_listener(version: int, code: ErrorCode) -> None:
    """LISTENER_NOT_FOUND tells of a wrong configuration, from version 6 on (KIP-226)."""
    active = await active_with_topic("a", {0: (1,)}, broker(1, listeners=["INTERNAL"]), broker(2))

    partition = only(await ask(active, ApiKey.METADATA, asking("a"), version), "topics", "partitions")

    assert (code, -1, []) == (partition["error_code"], partition["leader_id"], partition["offline_replicas"])


async def test_version_0_leaves_out_replicas_that_cannot_be_reached() -> None:
    """REPLICA_NOT_AVAILABLE says that some are left out (errorUnavailableEndpoints)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.brokers_are(broker(1))

    partition = only(await ask(active, ApiKey.METADATA, {"topics": [{"name": "a"}]}, 0), "topics", "partitions")

    assert (
        partition["error_code"],
        partition["leader_id"],
        partition["replica_nodes"],
        partition["isr_nodes"],
    ) == (ErrorCode.REPLICA_NOT_AVAILABLE, 1, [1], [1])


async def test_replicas_on_a_broker_that_shuts_down_are_offline() -> None:
    """ControllerContext.isReplicaOnline leaves out brokers that shut down; they stay in the list of brokers."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.run(ControlledShutdown(2))

    response = await ask(active, ApiKey.METADATA, asking("a"))

    assert only(response, "topics", "partitions")["offline_replicas"] == [2]
    assert 2 in [node["node_id"] for node in response["brokers"]]


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.DESCRIBE_TOPIC_PARTITIONS])
async def test_replicas_in_a_failed_log_directory_are_offline(key: ApiKey) -> None:
    """ControllerContext.isReplicaOnline (KIP-112): their broker lives, and holds other replicas."""
    active = await active_with_topic("a", {0: (1, 2), 1: (2, 3)})
    active.run(LeaderAndIsrAnswered(2, active.cluster.brokers[2].epoch, (TopicPartition("a", 0),), ()))

    topic = only(await ask(active, key, {"topics": [{"name": "a"}]}), "topics")

    assert {each["partition_index"]: each["offline_replicas"] for each in topic["partitions"]} == {0: [2], 1: []}


@pytest.mark.parametrize("version", [7, 8, 10, 11, 12])
async def test_what_a_caller_may_do_is_everything_where_nobody_judges(version: int) -> None:
    """KIP-430, AuthHelper.authorizedOperations; the cluster's moved to DescribeCluster with version 11 (KIP-700)."""
    active = await active_with_topic("a", {0: (1,)})
    asked = asking("a")
    if version >= 8:
        asked |= {"include_topic_authorized_operations": True}
    if 8 <= version <= 10:
        asked |= {"include_cluster_authorized_operations": True}

    response = await ask(active, ApiKey.METADATA, asked, version)

    not_asked = -(2**31)
    topic = only(response, "topics")
    assert (0xDF8 if version >= 8 else not_asked) == topic["topic_authorized_operations"]
    assert (0x1FA0 if 8 <= version <= 10 else not_asked) == response["cluster_authorized_operations"]
    assert not_asked == only(await ask(active, ApiKey.METADATA, asking("a")), "topics")["topic_authorized_operations"]


async def test_a_partition_that_never_had_a_leader() -> None:
    """A topic that a broker wrote is there from the first moment; its leader follows (NewPartition)."""
    active = active_with()
    added = TopicAdded("a", None, column([0]), pad([(1, 2)]), Origin.OBSERVED)
    apply(active.cluster, added)

    topic = only(await ask(active, ApiKey.METADATA, asking("a", create=True)), "topics")

    assert (
        topic["topic_id"],
        only(topic, "partitions")["error_code"],
        only(topic, "partitions")["leader_epoch"],
        only(topic, "partitions")["isr_nodes"],
    ) == (NO_ID, ErrorCode.LEADER_NOT_AVAILABLE, -1, [])


async def test_a_shrunk_isr_is_told() -> None:
    """AlterPartition changes what clients hear (KIP-497)."""
    active = await active_with_topic("a", {0: (1, 2)})
    active.sync(TopicPartition("a", 0), (1,))

    assert only(await ask(active, ApiKey.METADATA, asking("a")), "topics", "partitions")["isr_nodes"] == [1]


async def test_a_name_that_stands_twice_is_answered_once() -> None:
    """KafkaApis takes the names as a set."""
    active = await active_with_topic("a", {0: (1,)})

    assert len((await ask(active, ApiKey.METADATA, asking("a", "a")))["topics"]) == 1


async def test_without_a_tenure_no_node_is_told() -> None:
    """Clients pass over an answer without nodes and ask another (NetworkClient)."""
    response = await ask(None, ApiKey.METADATA, asking("a"))

    assert (response["brokers"], response["controller_id"]) == ([], -1)
