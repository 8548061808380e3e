"""APIs of groups and offsets in all of their versions. Source: KafkaApis of Kafka 4.3.1."""

import asyncio
from pathlib import Path
from uuid import UUID

import pytest

from kafka_node.authorization.acl import Entry, Operation, Pattern, PatternType, Permission, ResourceType
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_wire import ApiKey, Body, ErrorCode
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC
from light_broker.shell.apis.find_coordinator import NO_TRANSACTIONS
from light_broker.shell.apis.table import APIS
from light_broker.shell.broker import Broker
from light_broker.shell.dispatch import needs
from light_broker.shell.known_users import CurrentAcls
from tests.cases import case
from tests.light_broker.fixed_control import FixedControl, partition_view, topic_view, view_of
from tests.light_broker.shell.apis.calls import broker_with, call
from tests.light_broker.shell.groups.group_calls import ask, commit, committed, coordinating, join, settled, sync

GROUP_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_DELETE,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS,
    ApiKey.DELETE_GROUPS,
)


def versions(key: ApiKey) -> range:
    """Return the versions that the broker serves."""
    lowest, highest = APIS[key].versions
    return range(lowest, highest + 1)


def test_versions_are_those_of_kafka() -> None:
    """Kafka 4.3.1 (ApiKeys)."""
    served = {key.name: APIS[key].versions for key in GROUP_APIS}

    assert served == {
        "FIND_COORDINATOR": (0, 6),
        "JOIN_GROUP": (0, 9),
        "SYNC_GROUP": (0, 5),
        "HEARTBEAT": (0, 4),
        "LEAVE_GROUP": (0, 5),
        "OFFSET_COMMIT": (2, 10),
        "OFFSET_FETCH": (1, 10),
        "OFFSET_DELETE": (0, 0),
        "DESCRIBE_GROUPS": (0, 6),
        "LIST_GROUPS": (0, 5),
        "DELETE_GROUPS": (0, 2),
    }


# FindCoordinator


async def test_coordinator_is_the_leader_of_the_groups_partition(tmp_path: Path) -> None:
    """All versions, several groups at once from version 4 (KIP-699)."""
    async with coordinating(tmp_path) as broker:
        for version in versions(ApiKey.FIND_COORDINATOR):
            with case("version", version):
                body: Body = {"coordinator_keys": ["g", "h"]} if version >= 4 else {"key": "g"}
                answer = await ask(broker, ApiKey.FIND_COORDINATOR, body, version=version)
                found = answer["coordinators"] if version >= 4 else [answer]

                assert [(result["error_code"], result["node_id"], result["port"]) for result in found] == [
                    (ErrorCode.NONE, 1, 9001)
                ] * len(body.get("coordinator_keys", ["g"]))


async def test_the_first_client_creates_the_topic_of_the_groups() -> None:
    """Once, with the broker's settings; until it is there, COORDINATOR_NOT_AVAILABLE."""
    broker = broker_with(view_of(), {"offsets.topic.num.partitions": "3"})
    control = broker.control
    assert isinstance(control, FixedControl)
    control.answers[ApiKey.CREATE_TOPICS] = {"topics": [{"name": OFFSETS_TOPIC, "error_code": 0}]}

    for _ in range(3):
        answer = await ask(broker, ApiKey.FIND_COORDINATOR, {"coordinator_keys": ["g"]})
        assert answer["coordinators"][0]["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
        await settled()

    ((_, _, request),) = control.requests
    (topic,) = request["topics"]
    assert (topic["name"], topic["num_partitions"]) == (OFFSETS_TOPIC, 3)
    assert {config["name"]: config["value"] for config in topic["configs"]} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    await broker.groups.close()


async def test_coordinator_without_a_leader_is_not_available() -> None:
    """The client tries again."""
    broker = broker_with(view_of(topic_view(OFFSETS_TOPIC, partition_view(leader=-1))))

    answer = await ask(broker, ApiKey.FIND_COORDINATOR, {"key": "g"}, version=3)

    assert (answer["error_code"], answer["node_id"]) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("key_type", [1, 2, 9])
async def test_coordinators_of_transactions_and_share_groups_are_refused(key_type: int) -> None:
    """They are not served: a retriable error would keep clients asking."""
    answer = await ask(
        broker_with(view_of()), ApiKey.FIND_COORDINATOR, {"coordinator_keys": ["t"], "key_type": key_type}
    )

    assert answer["coordinators"][0]["error_code"] == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "expected"),
    [(2, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED), (6, ErrorCode.INVALID_REQUEST)],
)
async def test_the_refusal_of_a_transaction_is_final_for_the_clients_of_each_version(
    version: int, expected: ErrorCode
) -> None:
    """With what to do: librdkafka ends only for the first error (rd_kafka_txn_handle_FindCoordinator), Java shows the message of the second."""
    keys = {"key": "t"} if version < 4 else {"coordinator_keys": ["t"]}
    body = {**keys, "key_type": 1}

    answer = await ask(broker_with(view_of()), ApiKey.FIND_COORDINATOR, body, version=version)

    found = answer if version < 4 else answer["coordinators"][0]
    assert (found["error_code"], found["error_message"], found["node_id"]) == (expected, NO_TRANSACTIONS, -1)


# Members


async def test_members_of_every_version_join_and_leave(tmp_path: Path) -> None:
    """JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
    async with coordinating(tmp_path) as broker:
        for version in versions(ApiKey.JOIN_GROUP):
            with case("version", version):
                group_id = f"g{version}"
                joined = await join(broker, group_id, version=version)
                synced = await sync(broker, joined, group_id, version=min(version, 5))
                beat = {
                    "group_id": group_id,
                    "generation_id": joined["generation_id"],
                    "member_id": joined["member_id"],
                }
                beaten = await ask(broker, ApiKey.HEARTBEAT, beat, version=min(version, 4))
                leaver = {"member_id": joined["member_id"]}
                leaving: Body = {"group_id": group_id, **({"members": [leaver]} if version >= 3 else leaver)}
                left = await ask(broker, ApiKey.LEAVE_GROUP, leaving, version=min(version, 5))

                assert (joined["error_code"], joined["generation_id"], joined["protocol_name"]) == (0, 1, "range")
                assert (synced["error_code"], synced["assignment"]) == (0, b"mine")
                assert beaten["error_code"] == 0
                assert left["error_code"] == 0


async def test_requests_without_a_group_id_are_refused(tmp_path: Path) -> None:
    """INVALID_GROUP_ID; only offsets may have the empty group, for old clients."""
    async with coordinating(tmp_path) as broker:
        for key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.OFFSET_DELETE):
            body = {"protocol_type": "consumer", "protocol_name": "range"} if key is ApiKey.SYNC_GROUP else {}
            answer = await ask(broker, key, {"group_id": "", **body})

            assert answer["error_code"] == ErrorCode.INVALID_GROUP_ID, key

        assert await commit(broker, 7, group_id="") == ErrorCode.NONE
        assert await committed(broker, "") == (7, ErrorCode.NONE)


async def test_sync_without_protocols_is_refused(tmp_path: Path) -> None:
    """They are mandatory from version 5 (KIP-559)."""
    async with coordinating(tmp_path) as broker:
        answer = await ask(broker, ApiKey.SYNC_GROUP, {"group_id": "g"}, version=5)

        assert answer["error_code"] == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


async def test_leaving_an_unknown_group_is_an_error_of_each_member(tmp_path: Path) -> None:
    """And the error of the only member in versions 0 to 2."""
    async with coordinating(tmp_path) as broker:
        several = await ask(broker, ApiKey.LEAVE_GROUP, {"group_id": "no", "members": [{"member_id": "a"}]})
        one = await ask(broker, ApiKey.LEAVE_GROUP, {"group_id": "no", "member_id": "a"}, version=2)

        assert (several["error_code"], several["members"][0]["error_code"]) == (0, ErrorCode.UNKNOWN_MEMBER_ID)
        assert one["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID


# Offsets


async def test_offsets_of_every_version_are_committed_and_read(tmp_path: Path) -> None:
    """OffsetCommit 2 to 10, OffsetFetch 1 to 10; with topic ids from version 10."""
    async with coordinating(tmp_path) as broker:
        for offset, version in enumerate(versions(ApiKey.OFFSET_COMMIT)):
            with case("commit", version):
                assert await commit(broker, offset, version=version) == ErrorCode.NONE
                assert await committed(broker) == (offset, ErrorCode.NONE)
        for version in versions(ApiKey.OFFSET_FETCH):
            with case("fetch", version):
                assert await committed(broker, version=version) == (8, ErrorCode.NONE)


async def test_all_offsets_of_a_group_are_read_at_once(tmp_path: Path) -> None:
    """A null array of topics; several groups in one request (KIP-709)."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7, group_id="a")
        await commit(broker, 8, group_id="b")
        topics = broker.view.topics

        old = await ask(broker, ApiKey.OFFSET_FETCH, {"group_id": "a", "topics": None}, version=5)
        body = {"groups": [{"group_id": group_id, "topics": None} for group_id in ("a", "b", "none")]}
        new = await ask(broker, ApiKey.OFFSET_FETCH, body, version=10)

        assert [topic["name"] for topic in old["topics"]] == ["orders"]
        assert [
            [
                (topic["topic_id"], partition["committed_offset"])
                for topic in group["topics"]
                for partition in topic["partitions"]
            ]
            for group in new["groups"]
        ] == [[(topics["orders"].id, 7)], [(topics["orders"].id, 8)], []]


async def test_offsets_of_missing_topics_and_partitions_are_refused(tmp_path: Path) -> None:
    """UNKNOWN_TOPIC_OR_PARTITION, or UNKNOWN_TOPIC_ID with ids; the others are committed."""
    async with coordinating(tmp_path) as broker:

        def topic(name: str, *partitions: int) -> Body:
            offsets = [
                {"partition_index": partition, "committed_offset": 5, "committed_metadata": ""}
                for partition in partitions
            ]
            return {"name": name, "partitions": offsets}

        named = await ask(
            broker,
            ApiKey.OFFSET_COMMIT,
            {"group_id": "g", "topics": [topic("orders", 0, 9), topic("none", 0)]},
            version=9,
        )
        strange = {key: value for key, value in topic("", 0).items() if key != "name"} | {"topic_id": UUID(int=77)}
        by_id = await ask(broker, ApiKey.OFFSET_COMMIT, {"group_id": "g", "topics": [strange]}, version=10)

        missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert [[partition["error_code"] for partition in topic["partitions"]] for topic in named["topics"]] == [
            [0, missing],
            [missing],
        ]
        assert by_id["topics"][0]["partitions"][0]["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID
        assert await committed(broker) == (5, ErrorCode.NONE)


async def test_long_metadata_are_refused(tmp_path: Path) -> None:
    """offset.metadata.max.bytes counts UTF-16 units, as Java does."""
    async with coordinating(tmp_path) as broker:
        assert await commit(broker, 1, metadata="\N{GRINNING FACE}" * 2048) == ErrorCode.NONE
        assert await commit(broker, 2, metadata="\N{GRINNING FACE}" * 2049) == ErrorCode.OFFSET_METADATA_TOO_LARGE


async def test_a_member_of_no_group_cannot_commit(tmp_path: Path) -> None:
    """GROUP_ID_NOT_FOUND from version 9, ILLEGAL_GENERATION before."""
    async with coordinating(tmp_path) as broker:
        member = {"member_id": "a", "generation_id": 3}

        assert await commit(broker, 1, "none", joined=member, version=9) == ErrorCode.GROUP_ID_NOT_FOUND
        assert await commit(broker, 1, "none", joined=member, version=8) == ErrorCode.ILLEGAL_GENERATION


async def test_a_client_without_membership_cannot_commit_for_a_group_with_members(tmp_path: Path) -> None:
    """UNKNOWN_MEMBER_ID: kafka-consumer-groups --reset-offsets works on inactive groups only."""
    async with coordinating(tmp_path) as broker:
        await sync(broker, await join(broker))

        assert await commit(broker, 1) == ErrorCode.UNKNOWN_MEMBER_ID


async def test_an_offset_of_a_deleted_topic_of_the_same_name_is_not_read(tmp_path: Path) -> None:
    """KIP-848: offsets have the id of their topic."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7)
        view = broker.view
        topic = topic_view("orders", partition_view(), number=77)
        others = {name: topic for name, topic in view.topics.items() if name != "orders"}
        broker.view = view_of(topic, *others.values())

        assert await committed(broker, version=10) == (-1, ErrorCode.NONE)


async def test_offsets_of_topics_in_use_are_not_deleted(tmp_path: Path) -> None:
    """OffsetDelete (KIP-496): GROUP_SUBSCRIBED_TO_TOPIC."""

    async def delete(broker: Broker, group_id: str = "g", topic: str = "orders") -> tuple[int, list[int]]:
        body = {"group_id": group_id, "topics": [{"name": topic, "partitions": [{"partition_index": 0}]}]}
        answer = await ask(broker, ApiKey.OFFSET_DELETE, body)
        return answer["error_code"], [
            partition["error_code"] for topic in answer["topics"] for partition in topic["partitions"]
        ]

    async with coordinating(tmp_path) as broker:
        await commit(broker, 7, group_id="idle")
        joined = await join(broker)
        await sync(broker, joined)
        await commit(broker, 7, joined=joined)

        assert await delete(broker) == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
        assert await delete(broker, "idle") == (0, [0])
        assert await delete(broker, "none") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
        assert await delete(broker, "idle", "none") == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
        assert await committed(broker) == (7, ErrorCode.NONE)
        assert await committed(broker, "idle") == (-1, ErrorCode.NONE)


# Administration


async def test_groups_are_described_in_every_version(tmp_path: Path) -> None:
    """With the metadata of a stable group's members; a missing group is Dead, and an error from version 6."""
    async with coordinating(tmp_path) as broker:
        joined = await join(broker, instance_id="one")
        await sync(broker, joined)
        for version in versions(ApiKey.DESCRIBE_GROUPS):
            with case("version", version):
                body: Body = {"groups": ["g", "none"]}
                if version >= 3:
                    body["include_authorized_operations"] = True
                answer = await ask(broker, ApiKey.DESCRIBE_GROUPS, body, version=version)
                group, missing = answer["groups"]
                (member,) = group["members"]

                assert (group["group_state"], group["protocol_type"], group["protocol_data"]) == (
                    "Stable",
                    "consumer",
                    "range",
                )
                assert (member["client_id"], member["client_host"]) == ("test", "/127.0.0.1")
                assert member["member_assignment"] == b"mine"
                assert member["group_instance_id"] == ("one" if version >= 4 else None)
                assert (missing["group_state"], missing["error_code"]) == (
                    "Dead",
                    ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0,
                )


async def test_groups_are_listed_by_state_and_type(tmp_path: Path) -> None:
    """KIP-518, KIP-848."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7, group_id="simple")
        await sync(broker, await join(broker))

        async def listed(version: int = 5, **filters: list[str]) -> list[tuple[str, str]]:
            answer = await ask(broker, ApiKey.LIST_GROUPS, filters, version=version)
            return [(group["group_id"], group["group_state"]) for group in answer["groups"]]

        assert await listed() == [("simple", "Empty"), ("g", "Stable")]
        assert await listed(0) == [("simple", ""), ("g", "")]
        assert await listed(states_filter=["stable"]) == [("g", "Stable")]
        assert await listed(types_filter=["Classic"]) == await listed()
        assert await listed(types_filter=["consumer"]) == []


async def test_only_empty_groups_are_deleted(tmp_path: Path) -> None:
    """With their offsets, also after a restart."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7, group_id="simple")
        await sync(broker, await join(broker))

        answer = await ask(broker, ApiKey.DELETE_GROUPS, {"groups_names": ["simple", "g", "none", "simple"]})

        assert {result["group_id"]: result["error_code"] for result in answer["results"]} == {
            "simple": ErrorCode.NONE,
            "g": ErrorCode.NON_EMPTY_GROUP,
            "none": ErrorCode.GROUP_ID_NOT_FOUND,
        }
    async with coordinating(tmp_path) as broker:
        assert await committed(broker, "simple") == (-1, ErrorCode.NONE)
        answer = await ask(broker, ApiKey.LIST_GROUPS, {})
        assert [group["group_id"] for group in answer["groups"]] == ["g"]


# Authorization


def guarded(*allowed: tuple[ResourceType, str, Operation]) -> Guard:
    """Return an authorizer that allows User:ANONYMOUS these operations."""
    entries: dict[Pattern, set[Entry]] = {}
    for kind, name, operation in allowed:
        entry = Entry("User:ANONYMOUS", "*", operation, Permission.ALLOW)
        entries.setdefault(Pattern(kind, name, PatternType.LITERAL), set()).add(entry)
    acls = CurrentAcls()
    acls.replace(Acls(entries))
    return Guard(acls, Rules(), lambda _: None, needs(APIS, {}))


async def test_each_group_and_topic_needs_its_right(tmp_path: Path) -> None:
    """KafkaApis: READ on the group to commit, DESCRIBE to read; READ and DESCRIBE on each topic; DELETE to delete."""
    group, topic = ResourceType.GROUP, ResourceType.TOPIC
    guard = guarded(
        (group, "mine", Operation.READ),
        (group, "mine", Operation.DELETE),
        (group, "blind", Operation.READ),
        (topic, "orders", Operation.READ),
    )
    async with coordinating(tmp_path, guard=guard) as broker:
        assert await commit(broker, 7, "mine") == ErrorCode.NONE
        assert await commit(broker, 7, "other") == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert await committed(broker, "mine") == (7, ErrorCode.NONE)
        assert await committed(broker, "other") == (-1, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for version in (1, 7):
            assert (await committed(broker, "other", version=version))[1] == ErrorCode.GROUP_AUTHORIZATION_FAILED

        secret = {"name": OFFSETS_TOPIC, "partitions": [{"partition_index": 0, "committed_offset": 1}]}
        refused = await ask(broker, ApiKey.OFFSET_COMMIT, {"group_id": "mine", "topics": [secret]}, version=9)
        assert refused["topics"][0]["partitions"][0]["error_code"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED

        listed = await ask(broker, ApiKey.LIST_GROUPS, {})
        assert [group["group_id"] for group in listed["groups"]] == ["mine"]
        described = await ask(broker, ApiKey.DESCRIBE_GROUPS, {"groups": ["mine", "other"]})
        assert {group["group_id"]: group["error_code"] for group in described["groups"]} == {
            "mine": ErrorCode.NONE,
            "other": ErrorCode.GROUP_AUTHORIZATION_FAILED,
        }
        found = await ask(broker, ApiKey.FIND_COORDINATOR, {"coordinator_keys": ["mine", "other"]})
        assert [coordinator["error_code"] for coordinator in found["coordinators"]] == [
            0,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ]
        deleted = await ask(broker, ApiKey.DELETE_GROUPS, {"groups_names": ["other", "mine"]})
        assert [result["error_code"] for result in deleted["results"]] == [ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]


async def test_requests_of_members_need_read_on_the_group(tmp_path: Path) -> None:
    """The guard refuses them before their handlers."""
    guard = guarded()
    for key in (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP):
        assert needs(APIS, {})[key] != (), key
    async with coordinating(tmp_path, guard=guard) as broker:
        answer = await call(broker, ApiKey.OFFSET_DELETE, {"group_id": "g"})
        assert answer is not None
        assert answer["error_code"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
        await asyncio.sleep(0)
