"""Expiry of committed offsets, and with the last one of the group (KIP-211).

| group | an offset expires after offsets.retention.minutes from |
| --- | --- |
| without protocol type: its clients assign themselves partitions | its commit |
| Empty | the time at which the group lost its last member |
| Stable, consumers with known topics, none of which is the offset's | its commit |
| any other | never |

An offset with a time of expiry of its own (OffsetCommit 2 to 4) expires at that time, where it may at all.
Source: OffsetMetadataManager.cleanupExpiredOffsets, ClassicGroup.offsetExpirationCondition.
"""

from light_broker.core.groups.offsets import CommittedOffsets
from light_broker.core.groups.records import CommittedOffset
from light_broker.core.groups.states import Empty, Group, Stable


def expired_offsets(
    offsets: CommittedOffsets, group: Group, *, now_ms: int, retention_ms: int
) -> tuple[tuple[tuple[str, int], ...], bool]:
    """Return the partitions whose offsets have expired, and whether no offset of the group is left then."""
    expired, is_last = [], not offsets.unstable_places(group.id)
    for topic, partition, offset in offsets.of_group(group.id):
        if (
            _is_expired(group, topic, offset, now_ms=now_ms, retention_ms=retention_ms)
            # A transaction that ends may bring the offset back.
            and not offsets.is_unstable(group.id, topic, partition)
        ):
            expired.append((topic, partition))
        else:
            is_last = False
    return tuple(expired), is_last


def _is_expired(group: Group, topic: str, offset: CommittedOffset, *, now_ms: int, retention_ms: int) -> bool:
    since_ms = _retained_since(group, offset)
    if since_ms is None or group.is_subscribed_to(topic):
        return False
    if offset.expire_timestamp_ms != -1:
        return now_ms >= offset.expire_timestamp_ms
    return now_ms - since_ms >= retention_ms


def _retained_since(group: Group, offset: CommittedOffset) -> int | None:
    """Return the time from which the retention of an offset runs; None: it does not expire now."""
    if group.protocol_type is None:
        return offset.commit_timestamp_ms
    if isinstance(group.state, Empty):
        return offset.commit_timestamp_ms if group.state_since_ms is None else group.state_since_ms
    if isinstance(group.state, Stable) and group.uses_consumer_protocol and group.subscribed_topics is not None:
        return offset.commit_timestamp_ms
    return None
