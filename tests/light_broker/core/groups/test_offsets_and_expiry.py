"""Expiry of offsets and groups (KIP-211), offsets of transactions, timers, and the partition of a group."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_node.configs.layered_settings import Settings
from kafka_wire import ErrorCode
from light_broker.core.groups.descriptions import is_listed
from light_broker.core.groups.expiry import expired_offsets
from light_broker.core.groups.offsets import CommittedOffsets
from light_broker.core.groups.offsets_topic import partition_for
from light_broker.core.groups.records import CommittedOffset, OffsetRecord
from light_broker.core.groups.settings import GroupSettings, group_settings
from light_broker.core.groups.states import Empty, Group, PreparingRebalance, Stable, State
from light_broker.core.groups.timers import SPARE_ENTRIES, Timers
from tests.effort import examples
from tests.light_broker.core.groups.members import Client, group_of, stable_group
from tests.light_broker.core.groups.world import World

RETENTION_MS = 1_000


def expired(group: Group, *, now_ms: int, expire_ms: int = -1) -> bool:
    """Return whether an offset that was committed at 100 ms has expired."""
    offsets = CommittedOffsets()
    value = CommittedOffset(7, commit_timestamp_ms=100, expire_timestamp_ms=expire_ms)
    offsets.replay(0, OffsetRecord(group.id, "orders", 0, value))
    places, is_last = expired_offsets(offsets, group, now_ms=now_ms, retention_ms=RETENTION_MS)
    assert is_last == bool(places)
    return bool(places)


@pytest.mark.parametrize(
    ("state", "protocol_type", "topics", "since_ms", "expires_at_ms"),
    [
        (Empty(), None, None, None, 1_100),
        (Empty(), "consumer", frozenset[str](), 500, 1_500),
        (Empty(), "consumer", frozenset[str](), None, 1_100),
        (Empty(), "connect", None, 500, 1_500),
        (Stable(), "consumer", frozenset({"others"}), 500, 1_100),
        (Stable(), "consumer", frozenset({"orders"}), 500, None),
        (Stable(), "consumer", None, 500, None),
        (Stable(), "connect", None, 500, None),
        (PreparingRebalance(), "consumer", frozenset({"others"}), 500, None),
    ],
)
def test_offset_expires_after_its_retention(
    state: State,
    protocol_type: str | None,
    topics: frozenset[str] | None,
    since_ms: int | None,
    expires_at_ms: int | None,
) -> None:
    """From its commit, from the end of the group, or never (ClassicGroup.offsetExpirationCondition)."""
    group = Group("g", state, since_ms, protocol_type=protocol_type, subscribed_topics=topics)

    if expires_at_ms is None:
        assert not expired(group, now_ms=10**12)
    else:
        assert (expired(group, now_ms=expires_at_ms - 1), expired(group, now_ms=expires_at_ms)) == (False, True)


def test_offset_with_a_time_of_expiry_keeps_to_it() -> None:
    """OffsetCommit 2 to 4 with a retention."""
    group = Group("g")

    assert not expired(group, now_ms=10_000, expire_ms=10_001)
    assert expired(group, now_ms=10_001, expire_ms=10_001)


def test_group_without_offsets_expires_at_the_next_check() -> None:
    """GroupCoordinatorShard.cleanupGroupMetadata: it is of no use without members and offsets."""
    world = World()
    a = Client(world)
    stable_group(world, a)

    world.expire()
    assert group_of(world).state_name == "Stable"
    a.leave()
    world.expire()

    assert world.shard.groups == {}
    assert list(world.stored())[-1].value is None


def test_group_with_a_commit_that_is_being_replicated_does_not_expire() -> None:
    """Its offset would be lost."""
    world = World(replicates_at_once=False)
    Client(world).commit(7)

    world.expire()
    world.settle()

    assert world.shard.offsets.get("g", "orders", 0) is not None


def test_group_that_is_being_deleted_asks_clients_to_try_again() -> None:
    """Dead: COORDINATOR_NOT_AVAILABLE; a deletion that is refused puts it back."""
    world = World()
    a = Client(world)
    a.commit(7)
    world.replicates_at_once = False

    world.delete("g")
    joined = a.join()
    assert joined is not None
    assert joined.error == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert a.commit(8) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    world.settle(ErrorCode.NOT_ENOUGH_REPLICAS)

    assert world.shard.offsets.get("g", "orders", 0) is not None
    assert a.commit(8) == ErrorCode.NONE


# Transactions


def test_offsets_of_a_transaction_count_when_it_commits() -> None:
    """KIP-98; until then the partition is unstable."""
    offsets = CommittedOffsets()
    offsets.replay(5, OffsetRecord("g", "orders", 0, CommittedOffset(7)), producer_id=4)

    assert offsets.get("g", "orders", 0) is None
    assert offsets.is_unstable("g", "orders", 0)
    assert offsets.end_transaction(4, commits=True) == ("g",)
    assert offsets.get("g", "orders", 0) == CommittedOffset(7)
    assert not offsets.is_unstable("g", "orders", 0)


def test_aborted_offsets_are_dropped() -> None:
    """As if they had not been written."""
    offsets = CommittedOffsets()
    offsets.replay(5, OffsetRecord("g", "orders", 0, CommittedOffset(7)), producer_id=4)

    assert offsets.end_transaction(4, commits=False) == ()
    assert offsets.content() == {}


def test_later_offset_outlives_the_end_of_a_transaction() -> None:
    """OffsetMetadataManager.replayEndTransactionMarker: by the offsets of the records, since compaction removes one of them."""
    offsets = CommittedOffsets()
    offsets.replay(5, OffsetRecord("g", "orders", 0, CommittedOffset(7)), producer_id=4)
    offsets.replay(6, OffsetRecord("g", "orders", 0, CommittedOffset(3)))

    offsets.end_transaction(4, commits=True)

    assert offsets.get("g", "orders", 0) == CommittedOffset(3)


def test_deletion_also_removes_offsets_of_open_transactions() -> None:
    """And leaves no empty maps."""
    offsets = CommittedOffsets()
    offsets.replay(5, OffsetRecord("g", "orders", 0, CommittedOffset(7, topic_id=UUID(int=1))))
    offsets.replay(6, OffsetRecord("g", "orders", 0, CommittedOffset(8)), producer_id=4)

    offsets.replay(7, OffsetRecord("g", "orders", 0, None))
    offsets.end_transaction(4, commits=True)

    assert (offsets.content(), offsets._by_group) == ({}, {})


# Timers


@examples(100)
@given(st.lists(st.tuples(st.integers(0, 5), st.none() | st.integers(0, 50)), max_size=40), st.integers(0, 60))
def test_timers_are_due_in_their_order(actions: list[tuple[int, int | None]], now_ms: int) -> None:
    """Each once, at its last time: as a dict of times that is sorted."""
    timers: Timers[int] = Timers()
    plain: dict[int, int] = {}
    for key, due_ms in actions:
        if due_ms is None:
            timers.stop(key)
            plain.pop(key, None)
        else:
            timers.start(key, due_ms)
            plain[key] = due_ms

    due = []
    while (key_due := timers.pop_due(now_ms)) is not None:
        due.append(key_due)

    assert sorted(due) == sorted(key for key, due_ms in plain.items() if due_ms <= now_ms)
    assert [plain[key] for key in due] == sorted(plain[key] for key in due)
    assert timers.next_ms is None or timers.next_ms > now_ms


def test_stopped_timers_take_bounded_memory() -> None:
    """Members that join and leave in a loop have long sessions."""
    timers: Timers[int] = Timers()

    for key in range(10 * SPARE_ENTRIES):
        timers.start(key, 10**6)
        timers.stop(key)

    assert len(timers._queue) <= SPARE_ENTRIES + 1
    assert len(timers) == 0


# Places and settings


@pytest.mark.parametrize(
    ("group_id", "partition"), [("", 0), ("console-consumer-1", 24), ("Gruppe-ä", 26), ("\N{GRINNING FACE}", 49)]
)
def test_group_has_the_partition_that_java_computes(group_id: str, partition: int) -> None:
    """GroupCoordinatorService.partitionFor with 50 partitions: another one would be another coordinator."""
    assert partition_for(group_id, 50) == partition


def test_settings_are_those_of_the_broker() -> None:
    """With Kafka's defaults."""
    assert group_settings(Settings(1)) == GroupSettings()
    assert group_settings(Settings(1, {"offsets.retention.minutes": "1"})).offsets_retention_ms == 60_000


def test_filters_of_list_groups_ignore_case_and_spaces() -> None:
    """KIP-518."""
    assert is_listed(Group("g"), [" empty"], ["CLASSIC"])
    assert not is_listed(Group("g"), ["Stable"], [])
