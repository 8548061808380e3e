"""Records of `__consumer_offsets`: committed offsets, and groups with their assignments.

A key starts with the type of the record, a value with its version (int16). Versions are those that Kafka 4.3.1 writes. Source: Kafka's
GroupCoordinatorRecordSerde, GroupCoordinatorRecordHelpers and CoordinatorRecordType.
"""

import struct
from dataclasses import dataclass
from uuid import UUID

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire.codec import CodecError, decode, encode
from light_broker.core.groups.states import Group

LEGACY_OFFSET_COMMIT = 0
"""Type of an offset that Kafka 0.8 wrote; its fields are those of the current type."""
OFFSET_COMMIT = 1
GROUP_METADATA = 2

GROUP_VALUE_VERSION = 3
OFFSET_VALUE_VERSION = 4
OFFSET_VALUE_VERSION_WITH_EXPIRY = 1
"""The only version with a time of expiry, which OffsetCommit 2 to 4 can set."""

_NUMBER = struct.Struct(">h")


class MalformedRecordError(Exception):
    """A record of `__consumer_offsets` that cannot be read."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """An offset of a group for a partition."""

    offset: int
    leader_epoch: int = -1
    """Epoch of the last consumed record; -1: unknown."""
    metadata: str = ""
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
    """Time at which it expires; -1: by the broker's retention."""
    topic_id: UUID = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """An offset that was committed; without `value` it was deleted."""

    group_id: str
    topic: str
    partition: int
    value: CommittedOffset | None


@dataclass(frozen=True, slots=True)
class StoredMember:
    """A member in the record of its group, with its metadata of the group's protocol only."""

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """A generation of a group."""

    protocol_type: str
    """Empty: none yet."""
    generation: int
    protocol: str | None
    leader: str | None
    state_since_ms: int
    """-1: unknown."""
    members: tuple[StoredMember, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group; without `value` it was deleted."""

    group_id: str
    value: StoredGroup | None


@dataclass(frozen=True, slots=True)
class UnknownRecord:
    """A record of another type: of consumer, share or streams groups (KIP-848, KIP-932, KIP-1071)."""

    type: int


CoordinatorRecord = OffsetRecord | GroupRecord


def empty_group(group: Group) -> GroupRecord:
    """Return the record of a new group, which has no generation yet."""
    return GroupRecord(group.id, StoredGroup("", 0, None, None, _time(group)))


def generation_of(group: Group, assignments: dict[str, bytes]) -> GroupRecord:
    """Return the record of the current generation with assignments by member id."""
    members = tuple(
        StoredMember(
            member.id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout_ms,
            member.session_timeout_ms,
            member.metadata(group.protocol or ""),
            assignments.get(member.id, b""),
        )
        for member in group.members.values()
    )
    value = StoredGroup(
        group.protocol_type or "", group.generation, group.protocol, group.leader, _time(group), members
    )
    return GroupRecord(group.id, value)


def _time(group: Group) -> int:
    return -1 if group.state_since_ms is None else group.state_since_ms


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Return key and value of a record; raises CodecError for a string that is too long."""
    if isinstance(record, GroupRecord):
        key = _NUMBER.pack(GROUP_METADATA) + encode("GroupMetadataKey", 0, {"group": record.group_id})
        return key, None if record.value is None else _encode_group(record.value)
    named = {"group": record.group_id, "topic": record.topic, "partition": record.partition}
    key = _NUMBER.pack(OFFSET_COMMIT) + encode("OffsetCommitKey", 0, named)
    return key, None if record.value is None else _encode_offset(record.value)


def _encode_group(group: StoredGroup) -> bytes:
    body = {
        "protocol_type": group.protocol_type,
        "generation": group.generation,
        "protocol": group.protocol,
        "leader": group.leader,
        "current_state_timestamp": group.state_since_ms,
        "members": [
            {
                "member_id": member.id,
                "group_instance_id": member.instance_id,
                "client_id": member.client_id,
                "client_host": member.client_host,
                "rebalance_timeout": member.rebalance_timeout_ms,
                "session_timeout": member.session_timeout_ms,
                "subscription": member.subscription,
                "assignment": member.assignment,
            }
            for member in group.members
        ],
    }
    return _NUMBER.pack(GROUP_VALUE_VERSION) + encode("GroupMetadataValue", GROUP_VALUE_VERSION, body)


def _encode_offset(offset: CommittedOffset) -> bytes:
    version = OFFSET_VALUE_VERSION if offset.expire_timestamp_ms == -1 else OFFSET_VALUE_VERSION_WITH_EXPIRY
    body = {
        "offset": offset.offset,
        "leader_epoch": offset.leader_epoch,
        "metadata": offset.metadata,
        "commit_timestamp": offset.commit_timestamp_ms,
        "expire_timestamp": offset.expire_timestamp_ms,
        "topic_id": offset.topic_id,
    }
    return _NUMBER.pack(version) + encode("OffsetCommitValue", version, body)


def decode_record(key: bytes | None, value: bytes | None) -> CoordinatorRecord | UnknownRecord:
    """Read a record; raises MalformedRecordError for a known type that cannot be read."""
    try:
        kind, body = _numbered(key)
        if kind == GROUP_METADATA:
            group_id = decode("GroupMetadataKey", 0, body)["group"]
            return GroupRecord(group_id, None if value is None else _decode_group(value))
        if kind in {OFFSET_COMMIT, LEGACY_OFFSET_COMMIT}:
            named = decode("OffsetCommitKey", 0, body)
            offset = None if value is None else _decode_offset(value)
            return OffsetRecord(named["group"], named["topic"], named["partition"], offset)
        return UnknownRecord(kind)
    except (CodecError, struct.error) as error:
        raise MalformedRecordError(str(error)) from None


def _numbered(data: bytes | None) -> tuple[int, bytes]:
    """Split data into the number in front and the rest."""
    data = data or b""
    (number,) = _NUMBER.unpack_from(data)
    return number, data[_NUMBER.size :]


def _decode_group(value: bytes) -> StoredGroup:
    version, body = _numbered(value)
    group = decode("GroupMetadataValue", version, body)
    members = tuple(
        StoredMember(
            member["member_id"],
            member["group_instance_id"],
            member["client_id"],
            member["client_host"],
            # Version 0 has no rebalance timeout.
            member["session_timeout"] if member["rebalance_timeout"] == -1 else member["rebalance_timeout"],
            member["session_timeout"],
            member["subscription"],
            member["assignment"],
        )
        for member in group["members"]
    )
    return StoredGroup(
        group["protocol_type"],
        group["generation"],
        group["protocol"],
        group["leader"],
        group["current_state_timestamp"],
        members,
    )


def _decode_offset(value: bytes) -> CommittedOffset:
    version, body = _numbered(value)
    offset = decode("OffsetCommitValue", version, body)
    return CommittedOffset(
        offset["offset"],
        offset["leader_epoch"],
        offset["metadata"],
        offset["commit_timestamp"],
        offset["expire_timestamp"],
        offset["topic_id"],
    )
