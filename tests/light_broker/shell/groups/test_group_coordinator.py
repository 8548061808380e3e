"""Groups on a broker with real logs. Source: Kafka's GroupCoordinatorService, CoordinatorRuntime and CoordinatorLoaderImpl."""

import asyncio
import struct
from pathlib import Path
from uuid import UUID

import pytest

from kafka_wire import ApiKey, ErrorCode
from kafka_wire.records import Record, encode_batch
from light_broker.core.groups.events import SessionExpired
from light_broker.core.groups.records import CommittedOffset, OffsetRecord, encode_record
from light_broker.core.groups.settings import GroupSettings
from light_broker.core.replica_requests import FetchParams, FetchPartition, ReadLimit
from light_broker.shell.broker import Broker
from tests.light_broker.fixed_control import partition_view
from tests.light_broker.hosting import NOW_MS, take_role
from tests.light_broker.shell.groups.group_calls import (
    OFFSETS,
    ask,
    commit,
    committed,
    coordinating,
    join,
    loaded,
    settled,
    sync,
)
from tests.waiting import until

REPLICATED = partition_view(replicas=(1, 2), isr=(1, 2), leader_epoch=5)


async def follower_fetches(broker: Broker, offset: int) -> None:
    """Let broker 2 fetch `__consumer_offsets` from the end of its log."""
    params = FetchParams(2, 2, max_bytes=1_000_000, limit=ReadLimit.LOG_END)
    request = FetchPartition(broker.view.topics[OFFSETS.topic].id, offset, 1_000_000, log_start_offset=0)
    await broker.replicas.reads.fetch(params, {OFFSETS: request})


async def test_a_member_joins_gets_its_assignment_and_commits(tmp_path: Path) -> None:
    """The whole life of a consumer."""
    async with coordinating(tmp_path) as broker:
        joined = await join(broker)
        synced = await sync(broker, joined)

        assert synced["assignment"] == b"mine"
        assert await commit(broker, 7, joined=joined) == ErrorCode.NONE
        assert await committed(broker) == (7, ErrorCode.NONE)
        assert await committed(broker, partition=1) == (-1, ErrorCode.NONE)


@pytest.mark.shows("B7")
async def test_groups_and_offsets_survive_a_restart(tmp_path: Path) -> None:
    """B7: replay of the log gives the state, with the members and their assignments."""
    async with coordinating(tmp_path) as broker:
        joined = await join(broker, instance_id="one")
        await sync(broker, joined)
        await commit(broker, 7, joined=joined)
        await commit(broker, 8, group_id="simple")
    async with coordinating(tmp_path) as broker:
        again = await sync(broker, joined | {"members": []})

        assert again["assignment"] == b"mine"
        assert await committed(broker) == (7, ErrorCode.NONE)
        assert await committed(broker, "simple") == (8, ErrorCode.NONE)


@pytest.mark.shows("B7")
async def test_a_commit_is_answered_and_visible_once_it_is_replicated(tmp_path: Path) -> None:
    """B7: before, a failure of this broker could take it back."""
    async with coordinating(tmp_path, REPLICATED) as broker:
        waiting = asyncio.ensure_future(commit(broker, 7))
        await settled()

        assert not waiting.done()
        assert await committed(broker) == (-1, ErrorCode.NONE)

        await follower_fetches(broker, 1)

        assert await waiting == ErrorCode.NONE
        assert await committed(broker) == (7, ErrorCode.NONE)


@pytest.mark.shows("B7")
async def test_a_stable_read_waits_for_commits_that_are_being_replicated(tmp_path: Path) -> None:
    """KIP-447, require_stable: a consumer must not start below an offset that it has committed."""
    async with coordinating(tmp_path, REPLICATED) as broker:
        first = asyncio.ensure_future(commit(broker, 7))
        await settled()
        read = asyncio.ensure_future(committed(broker, require_stable=True))
        await settled()

        assert not read.done()

        await follower_fetches(broker, 1)

        assert await read == (7, ErrorCode.NONE)
        assert await first == ErrorCode.NONE


async def test_a_commit_that_is_not_replicated_in_time_may_become_visible_later(tmp_path: Path) -> None:
    """offsets.commit.timeout.ms: the client gets a retriable error; the record is in the log."""
    settings = GroupSettings(offsets_commit_timeout_ms=0)
    async with coordinating(tmp_path, REPLICATED, groups=settings) as broker:
        assert await commit(broker, 7) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await committed(broker) == (-1, ErrorCode.NONE)
        assert await committed(broker, require_stable=True) == (-1, ErrorCode.NOT_COORDINATOR)

        await follower_fetches(broker, 1)

        assert await committed(broker) == (7, ErrorCode.NONE)


async def test_a_refused_append_changes_nothing(tmp_path: Path) -> None:
    """The broker is no longer the leader, and the coordinator does not know yet."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7)
        topic = broker.view.topics[OFFSETS.topic]
        await broker.replicas.follow(OFFSETS, topic.id, partition_view(leader=2, replicas=(1, 2), leader_epoch=1))

        assert await commit(broker, 8) == ErrorCode.NOT_COORDINATOR
        assert await committed(broker) == (7, ErrorCode.NONE)


async def test_groups_of_partitions_that_others_lead_are_refused(tmp_path: Path) -> None:
    """NOT_COORDINATOR: the client looks for the coordinator again. Requests that wait are answered so, too."""
    async with coordinating(tmp_path) as broker:
        joined = await join(broker)
        waiting = asyncio.ensure_future(join(broker, version=3))
        await settled()

        await take_role(broker, OFFSETS, partition_view(leader=2, replicas=(1, 2), leader_epoch=1))

        assert (await waiting)["error_code"] == ErrorCode.NOT_COORDINATOR
        assert await commit(broker, 7) == ErrorCode.NOT_COORDINATOR
        assert (await sync(broker, joined))["error_code"] == ErrorCode.NOT_COORDINATOR
        assert (await committed(broker))[1] == ErrorCode.NOT_COORDINATOR


async def test_groups_are_refused_while_they_are_loaded(tmp_path: Path) -> None:
    """COORDINATOR_LOAD_IN_PROGRESS; heartbeats are accepted, since sessions start afterwards."""
    async with coordinating(tmp_path, is_loaded=False) as broker:
        assert await commit(broker, 7) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert (await ask(broker, ApiKey.LIST_GROUPS, {}))["error_code"] == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        beat = {"group_id": "g", "generation_id": 1, "member_id": "a"}
        assert (await ask(broker, ApiKey.HEARTBEAT, beat))["error_code"] == ErrorCode.NONE

        await loaded(broker)

        assert await commit(broker, 7) == ErrorCode.NONE


async def test_a_new_leader_has_what_the_old_one_had_stored(tmp_path: Path) -> None:
    """The partition is loaded again when this broker leads it again."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7)
        await take_role(broker, OFFSETS, partition_view(leader=2, replicas=(1, 2), leader_epoch=1))
        await take_role(broker, OFFSETS, partition_view(leader=1, replicas=(1,), leader_epoch=2))
        await loaded(broker)

        assert await committed(broker) == (7, ErrorCode.NONE)


async def append_raw(broker: Broker, *records: tuple[bytes, bytes | None], producer_id: int = -1) -> None:
    """Append records as another broker wrote them, before the partition is loaded."""
    batch = encode_batch(
        [Record(offset, NOW_MS, *pair) for offset, pair in enumerate(records)],
        producer_id=producer_id,
        producer_epoch=-1 if producer_id == -1 else 0,
        base_sequence=-1 if producer_id == -1 else 0,
        is_transactional=producer_id != -1,
    )
    results = await broker.replicas.writes.append({OFFSETS: batch}, acks=1, timeout_ms=1_000, allow_internal=True)
    assert results[OFFSETS].error == ErrorCode.NONE


async def reload(broker: Broker) -> None:
    """Load the partition again."""
    broker.groups.resign(0)
    broker.groups.lead(0, 99)
    await loaded(broker)


async def test_records_of_other_types_of_groups_are_skipped(tmp_path: Path) -> None:
    """A log that Kafka wrote may have groups of KIP-848; their offsets are read."""
    async with coordinating(tmp_path) as broker:
        await append_raw(
            broker,
            (struct.pack(">h", 3) + b"\0\1g", b"\0\0anything"),
            encode_record(OffsetRecord("g", "orders", 0, CommittedOffset(7))),
        )
        await reload(broker)

        assert await committed(broker) == (7, ErrorCode.NONE)


async def test_a_partition_with_a_malformed_record_serves_no_groups(tmp_path: Path) -> None:
    """Kafka's CoordinatorLoaderImpl: the record might be an offset, so that it is not skipped."""
    async with coordinating(tmp_path) as broker:
        await append_raw(broker, (b"\0\1\0", b"\0\4"))
        await reload(broker)

        assert await commit(broker, 7) == ErrorCode.NOT_COORDINATOR


async def test_offsets_of_an_open_transaction_are_unstable(tmp_path: Path) -> None:
    """KIP-447: a log that Kafka wrote may have transactions."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 5)
        record = encode_record(OffsetRecord("g", "orders", 0, CommittedOffset(7)))
        await append_raw(broker, record, producer_id=4)
        await reload(broker)

        assert await committed(broker) == (5, ErrorCode.NONE)
        assert await committed(broker, require_stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)


async def test_expired_offsets_go_with_their_group(tmp_path: Path) -> None:
    """offsets.retention.minutes, and a tombstone of the group."""
    now = [NOW_MS / 1000]
    settings = GroupSettings(offsets_retention_ms=1_000)
    async with coordinating(tmp_path, groups=settings, wall_clock=lambda: now[0]) as broker:
        await commit(broker, 7)
        (coordinator,) = broker.groups.loaded()

        now[0] += 0.999
        await coordinator.expire()
        assert await committed(broker) == (7, ErrorCode.NONE)
        now[0] += 0.001
        await coordinator.expire()

        assert await committed(broker) == (-1, ErrorCode.NONE)
        assert coordinator.groups() == []
        await reload(broker)
        assert await committed(broker) == (-1, ErrorCode.NONE)


async def test_offsets_of_a_deleted_topic_go(tmp_path: Path) -> None:
    """OffsetMetadataManager.onTopicsDeleted; a new topic of the same name has another id."""
    async with coordinating(tmp_path) as broker:
        await commit(broker, 7)

        broker.groups.topics_deleted([("orders", UUID(int=77))])
        await settled()
        assert await committed(broker) == (7, ErrorCode.NONE)
        broker.groups.topics_deleted([("orders", broker.view.topics["orders"].id)])
        await settled()

        assert await committed(broker) == (-1, ErrorCode.NONE)


async def test_a_client_that_has_gone_stays_a_member_until_its_session_ends(tmp_path: Path) -> None:
    """Its request is cancelled, and nothing is left that waits for it."""
    async with coordinating(tmp_path) as broker:
        await join(broker)
        waiting = asyncio.ensure_future(join(broker, version=3))
        await settled()

        waiting.cancel()
        await settled()

        (coordinator,) = broker.groups.loaded()
        assert len(coordinator.shard.groups["g"].members) == 2
        assert coordinator._waiting == {}


async def test_a_cancelled_commit_is_still_stored(tmp_path: Path) -> None:
    """Its record is in the log."""
    async with coordinating(tmp_path, REPLICATED) as broker:
        waiting = asyncio.ensure_future(commit(broker, 7))
        await settled()
        waiting.cancel()
        await settled()

        await follower_fetches(broker, 1)
        await settled()

        assert await committed(broker) == (7, ErrorCode.NONE)


@pytest.mark.shows("B7")
async def test_commits_are_applied_in_the_order_of_the_log(tmp_path: Path) -> None:
    """B7: many clients of one group at once; the last record decides."""
    async with coordinating(tmp_path) as broker:
        await asyncio.gather(*(commit(broker, offset) for offset in range(50)))

        before = await committed(broker)
        await reload(broker)

        assert await committed(broker) == before == (49, ErrorCode.NONE)


async def test_too_many_writes_that_wait_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded when replicas do not keep up; the error is retriable."""
    monkeypatch.setattr("light_broker.core.groups.shard.MAX_PENDING_WRITES", 1)
    async with coordinating(tmp_path, REPLICATED) as broker:
        first = asyncio.ensure_future(commit(broker, 7))
        await settled()

        assert await commit(broker, 8) == ErrorCode.COORDINATOR_NOT_AVAILABLE
        first.cancel()


async def test_a_session_ends_by_the_clock(tmp_path: Path) -> None:
    """The timers of a partition are one alarm of the event loop."""
    settings = GroupSettings(min_session_timeout_ms=1, initial_rebalance_delay_ms=0)
    async with coordinating(tmp_path, groups=settings) as broker:
        joined = await join(broker)
        await sync(broker, joined)
        (coordinator,) = broker.groups.loaded()

        coordinator._timers.start(("g", SessionExpired(joined["member_id"])), 0)
        coordinator._set_alarm()
        await until(lambda: not coordinator.shard.groups["g"].members)

        beat = {"group_id": "g", "generation_id": joined["generation_id"], "member_id": joined["member_id"]}
        assert (await ask(broker, ApiKey.HEARTBEAT, beat))["error_code"] == ErrorCode.UNKNOWN_MEMBER_ID
