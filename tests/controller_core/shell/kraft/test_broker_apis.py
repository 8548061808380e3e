"""Requests of brokers and controllers in their wire form, at an active controller and at a standby. Source: ControllerApis of Kafka 4.3."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_core.shell.kraft.broker_apis import SERVED, broker_handlers
from kafka_metadata.metadata_versions import METADATA_VERSION
from kafka_metadata.records import FeatureLevelRecord, RegisterControllerRecord
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.peer import Peer
from tests.controller_core.quorum_mode.driver import directory
from tests.controller_core.shell.kraft.memory_quorum import CLUSTER_ID, SETTINGS, Member, SharedLog, new_topic
from tests.waiting import until

REQUESTS: dict[ApiKey, dict[str, Any]] = {
    ApiKey.ALTER_PARTITION: {"broker_id": 1, "broker_epoch": 1, "topics": []},
    ApiKey.UNREGISTER_BROKER: {"broker_id": 1},
    ApiKey.ALLOCATE_PRODUCER_IDS: {"broker_id": 1, "broker_epoch": 1},
    ApiKey.BROKER_REGISTRATION: {"broker_id": 1, "cluster_id": CLUSTER_ID, "listeners": [], "features": []},
    ApiKey.BROKER_HEARTBEAT: {"broker_id": 1, "broker_epoch": 1, "current_metadata_offset": 1},
    ApiKey.CONTROLLER_REGISTRATION: {"controller_id": 102, "listeners": [], "features": []},
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: {"broker_id": 1, "broker_epoch": 1, "directories": []},
}


async def ask(
    member: Member, key: ApiKey, body: dict[str, Any], version: int | None = None, connection: Peer | None = None
) -> Body:
    """Return the response, encoded and decoded again as on the wire."""
    version = SERVED[key].highest if version is None else version
    asked = codec.decode(f"{key.message}Request", version, codec.encode(f"{key.message}Request", version, body))
    context = RequestContext("CONTROLLER", None, "127.0.0.1", 1, version, connection=connection)
    answer = await broker_handlers(member.controller)[key](context, asked)
    assert isinstance(answer, dict)
    return codec.decode(f"{key.message}Response", version, codec.encode(f"{key.message}Response", version, answer))


def registration_of(broker: int, **changed: Any) -> dict[str, Any]:
    """Return a request to register a broker."""
    request = {
        "broker_id": broker,
        "cluster_id": CLUSTER_ID,
        "incarnation_id": UUID(int=broker),
        "listeners": [{"name": "PLAINTEXT", "host": "host", "port": 9092, "security_protocol": 0}],
        "features": [
            {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 30},
            {"name": "eligible.leader.replicas.version", "min_supported_version": 0, "max_supported_version": 1},
        ],
        "rack": "a",
        "log_dirs": [directory(broker), directory(broker + 10)],
    }
    return {**request, **changed}


async def registered(member: Member, broker: int) -> int:
    """Register a broker, bring it into service, and return its epoch."""
    epoch: int = (await ask(member, ApiKey.BROKER_REGISTRATION, registration_of(broker)))["broker_epoch"]
    beat = {"broker_id": broker, "broker_epoch": epoch, "current_metadata_offset": member.end_offset}
    assert not (await ask(member, ApiKey.BROKER_HEARTBEAT, beat))["is_fenced"]
    return epoch


@pytest.mark.parametrize(
    ("key", "version"), [(key, version) for key, at in SERVED.items() for version in {at.lowest, at.highest}]
)
async def test_a_standby_refuses_each_request_with_not_controller(key: ApiKey, version: int) -> None:
    """The sender then finds the active controller."""
    standby = SharedLog().add(102)

    assert (await ask(standby, key, REQUESTS[key], version))["error_code"] == ErrorCode.NOT_CONTROLLER


@pytest.mark.shows("C16")
async def test_a_broker_registers_and_its_first_heartbeat_that_has_read_the_log_unfences_it(active: Member) -> None:
    """KIP-631."""
    epoch = (await ask(active, ApiKey.BROKER_REGISTRATION, registration_of(1)))["broker_epoch"]
    beat = {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": epoch - 1}
    early = await ask(active, ApiKey.BROKER_HEARTBEAT, beat)
    late = await ask(active, ApiKey.BROKER_HEARTBEAT, {**beat, "current_metadata_offset": epoch})

    assert epoch == active.controller.cluster.brokers[1].epoch
    assert (early["is_caught_up"], early["is_fenced"]) == (False, True)
    assert (late["is_caught_up"], late["is_fenced"], late["should_shut_down"]) == (True, False, False)
    known = active.controller.committed_image.brokers[1]
    assert (known.rack, known.end_points[0].port, known.log_dirs) == ("a", 9092, (directory(1), directory(11)))


def connection() -> Peer:
    """Return a connection."""
    return Peer("127.0.0.1", 9, lambda _: None, lambda _: None)


async def test_the_end_of_the_connection_of_heartbeats_is_reported(active: Member) -> None:
    """ADR 57: the broker is suspected until its next heartbeat, and not fenced."""
    epoch, first = await registered(active, 1), connection()
    beat = {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": active.end_offset}
    await ask(active, ApiKey.BROKER_HEARTBEAT, beat, connection=first)
    cluster = active.controller.cluster

    first.mark_closed()
    await until(lambda: cluster.suspected == {1})
    assert not cluster.brokers[1].fenced
    await ask(active, ApiKey.BROKER_HEARTBEAT, beat, connection=connection())
    assert cluster.suspected == set()


@pytest.mark.shows("F65")
async def test_a_broker_that_does_not_connect_again_has_less_time_for_its_next_heartbeat(active: Member) -> None:
    """ADR 57: its process has probably ended."""
    epoch, first = await registered(active, 1), connection()
    beat = {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": active.end_offset}
    await ask(active, ApiKey.BROKER_HEARTBEAT, beat, connection=first)
    first.mark_closed()
    timeout_ms = SETTINGS.disconnected_session_timeout_ms

    assert active.controller.sessions.expired(active.now_ms + timeout_ms) == []
    assert active.controller.sessions.expired(active.now_ms + timeout_ms + 1) == [(1, epoch)]


async def test_the_end_of_a_connection_that_a_broker_has_replaced_is_not_reported(active: Member) -> None:
    """A broker that connects again has not died."""
    epoch, first = await registered(active, 1), connection()
    beat = {"broker_id": 1, "broker_epoch": epoch, "current_metadata_offset": active.end_offset}
    await ask(active, ApiKey.BROKER_HEARTBEAT, beat, connection=first)
    await ask(active, ApiKey.BROKER_HEARTBEAT, beat, connection=connection())

    first.mark_closed()
    await asyncio.sleep(0)

    assert active.controller.cluster.suspected == set()
    assert active.controller.sessions.expired(active.now_ms + SETTINGS.broker_session_timeout_ms) == []


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"broker_id": 101}, ErrorCode.DUPLICATE_BROKER_REGISTRATION),
        (
            {"incarnation_id": UUID(int=9), "log_dirs": [directory(5)]},
            ErrorCode.DUPLICATE_BROKER_REGISTRATION,
        ),
        ({"log_dirs": []}, ErrorCode.INVALID_REGISTRATION),
        ({"features": []}, ErrorCode.UNSUPPORTED_VERSION),
        (
            {"listeners": [{"name": "A", "host": "host", "port": 1, "security_protocol": 9}]},
            ErrorCode.INVALID_REGISTRATION,
        ),
        ({"is_migrating_zk_broker": True}, ErrorCode.BROKER_ID_NOT_REGISTERED),
    ],
)
async def test_an_invalid_registration_is_refused(active: Member, changed: dict[str, Any], error: ErrorCode) -> None:
    """The registered broker keeps its place and its session."""
    epoch = await registered(active, 1)
    answer = await ask(active, ApiKey.BROKER_REGISTRATION, registration_of(1, **changed))

    assert (answer["error_code"], answer["broker_epoch"]) == (error, -1)
    assert active.controller.cluster.brokers[1].epoch == epoch
    assert active.controller.sessions.is_valid(1, epoch, active.now_ms)


async def test_a_broker_that_does_not_support_the_quorums_kraft_version_is_refused(active: Member) -> None:
    """QuorumController.registerBroker: the level is in control records, not among the features of the metadata."""
    active.log.kraft_version = 1
    features = registration_of(1)["features"]
    kraft_version = {"name": "kraft.version", "min_supported_version": 0, "max_supported_version": 1}
    answers = [
        await ask(active, ApiKey.BROKER_REGISTRATION, registration_of(1, features=shown))
        for shown in (features, [*features, kraft_version])
    ]

    assert [answer["error_code"] for answer in answers] == [ErrorCode.UNSUPPORTED_VERSION, ErrorCode.NONE]


async def test_a_heartbeat_of_another_epoch_is_refused_and_keeps_no_session(active: Member) -> None:
    """STALE_BROKER_EPOCH: a replaced process learns that it is out."""
    epoch = await registered(active, 1)
    active.log.now_ms += 9_001
    beat = {"broker_id": 1, "broker_epoch": epoch - 1, "current_metadata_offset": epoch}
    answer = await ask(active, ApiKey.BROKER_HEARTBEAT, beat)

    assert answer["error_code"] == ErrorCode.STALE_BROKER_EPOCH
    assert active.controller.sessions.expired(active.now_ms) == [(1, epoch)]


@pytest.mark.shows("C19")
async def test_blocks_of_producer_ids_are_disjoint(active: Member) -> None:
    """KIP-730."""
    asked = {"broker_id": 1, "broker_epoch": await registered(active, 1)}
    blocks = [await ask(active, ApiKey.ALLOCATE_PRODUCER_IDS, asked) for _ in range(2)]

    assert [(block["producer_id_start"], block["producer_id_len"]) for block in blocks] == [(0, 1000), (1000, 1000)]


async def test_a_leader_changes_the_isr_and_replicas_are_assigned_to_directories(active: Member) -> None:
    """AlterPartition 3 and AssignReplicasToDirs 0; unknown topics have their own error."""
    epoch = await registered(active, 1)
    other = await registered(active, 2)
    await active.controller.submit(new_topic("orders", (1, 2)))
    topic_id = active.controller.cluster.topics["orders"].topic_id
    wish = {
        "partition_index": 0,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "new_isr_with_epochs": [{"broker_id": 1, "broker_epoch": epoch}],
    }
    topics = [{"topic_id": one, "partitions": [wish]} for one in (topic_id, UUID(int=5))]
    altered = await ask(active, ApiKey.ALTER_PARTITION, {"broker_id": 1, "broker_epoch": epoch, "topics": topics})
    places = [{"topic_id": one, "partitions": [{"partition_index": 0}]} for one in (topic_id, UUID(int=5))]
    assigned = await ask(
        active,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        {"broker_id": 2, "broker_epoch": other, "directories": [{"id": directory(12), "topics": places}]},
    )

    results = [topic["partitions"][0] for topic in altered["topics"]]
    assert [result["error_code"] for result in results] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert results[0]["isr"] == [1]
    noted = assigned["directories"][0]["topics"]
    assert [topic["partitions"][0]["error_code"] for topic in noted] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_ID]
    assert active.controller.cluster.directories_of(0)[1] == directory(12)


async def test_controllers_and_directories_need_a_later_metadata_version() -> None:
    """3.7-IV0 and 3.7-IV2: no record of earlier versions could contain it."""
    log = SharedLog()
    old = log.add(101, bootstrap=(FeatureLevelRecord(METADATA_VERSION, 7),))
    log.elect(101)
    features = registration_of(1)["features"]
    controller = {"controller_id": 102, "incarnation_id": uuid4(), "listeners": [], "features": features}
    epoch = await registered(old, 1)
    assignment = {"broker_id": 1, "broker_epoch": epoch, "directories": []}
    answers = [
        await ask(old, ApiKey.CONTROLLER_REGISTRATION, controller),
        await ask(old, ApiKey.ASSIGN_REPLICAS_TO_DIRS, assignment),
    ]

    assert [answer["error_code"] for answer in answers] == [ErrorCode.UNSUPPORTED_VERSION] * 2


async def test_a_broker_is_unregistered_once(active: Member) -> None:
    """BROKER_ID_NOT_REGISTERED the second time."""
    await registered(active, 1)
    answers = [await ask(active, ApiKey.UNREGISTER_BROKER, {"broker_id": 1}) for _ in range(2)]

    assert [answer["error_code"] for answer in answers] == [ErrorCode.NONE, ErrorCode.BROKER_ID_NOT_REGISTERED]


async def test_a_controller_registers_unless_it_lacks_a_feature_of_the_cluster(active: Member) -> None:
    """KIP-919: otherwise it could not apply the metadata."""
    features = registration_of(1)["features"]
    request = {"controller_id": 102, "incarnation_id": uuid4(), "listeners": [], "features": features}
    refused = await ask(active, ApiKey.CONTROLLER_REGISTRATION, {**request, "features": features[:1]})
    admitted = await ask(active, ApiKey.CONTROLLER_REGISTRATION, request)

    assert refused["error_code"] == ErrorCode.UNSUPPORTED_VERSION
    assert "eligible.leader.replicas.version" in refused["error_message"]
    assert admitted["error_code"] == ErrorCode.NONE
    record = active.controller.committed_image.controllers[102]
    assert isinstance(record, RegisterControllerRecord)
    assert record.incarnation_id == request["incarnation_id"]
