"""Replica manager on real logs, with followers that are calls of the test. Source: Kafka's ReplicaManager and Partition."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_log.files.partition_settings import PartitionSettings
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.retention import RetentionSettings
from kafka_wire import ErrorCode
from kafka_wire.file_slice import FileSlice, SliceUnreadable
from kafka_wire.records import decode_batches
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.port import ControlPlaneError, IsrAnswer, IsrProposal
from light_broker.core.metadata_view import BrokerView
from light_broker.core.partition import IsrRules
from light_broker.core.replica_requests import (
    AppendResult,
    FetchParams,
    FetchPartition,
    ReadLimit,
    ReadResult,
)
from light_broker.shell.broker import Broker
from tests.light_broker.fixed_control import FixedControl, partition_view, topic_view
from tests.light_broker.hosting import ORDERS, REPLICATED, bytes_of, follower_fetches, hosting, records, take_role

REPLICATED_TOPIC = topic_view("orders", REPLICATED)


async def append(broker: Broker, data: bytes | None = None, *, acks: int = 1, timeout_ms: int = 10_000) -> AppendResult:
    """Append a batch to `orders`."""
    results = await broker.replicas.writes.append({ORDERS: data or records("a", "b")}, acks=acks, timeout_ms=timeout_ms)
    return results[ORDERS]


async def fetch(broker: Broker, offset: int, **fields: int | ReadLimit) -> ReadResult:
    """Read `orders` from an offset as a consumer that waits for nothing, or as `fields` specify."""
    params = replace(FetchParams(), **fields)
    request = FetchPartition(broker.view.topics["orders"].id, offset, 1_000_000)
    return (await broker.replicas.reads.fetch(params, {ORDERS: request}))[ORDERS]


def values(result: ReadResult) -> list[bytes | None]:
    """Return the values of records that were read."""
    return [record.value for batch in decode_batches(bytes_of(result.records)) for record in batch.records]


async def settled() -> None:
    """Let every task run until it waits."""
    for _ in range(10):
        await asyncio.sleep(0)


# Append


async def test_a_batch_gets_the_next_offsets(tmp_path: Path) -> None:
    """B2. Source: Partition.appendRecordsToLeader."""
    async with hosting(tmp_path) as broker:
        first, second = await append(broker), await append(broker)

        assert (first.error, first.base_offset, first.last_offset, first.log_start_offset) == (ErrorCode.NONE, 0, 1, 0)
        assert (second.base_offset, second.last_offset) == (2, 3)


@pytest.mark.parametrize("acks", [-2, 2])
async def test_other_acks_than_0_1_and_all_are_refused(tmp_path: Path, acks: int) -> None:
    """Source: ReplicaManager.isValidRequiredAcks."""
    async with hosting(tmp_path) as broker:
        assert (await append(broker, acks=acks)).error is ErrorCode.INVALID_REQUIRED_ACKS
        assert broker.replicas.high_watermark(ORDERS) == 0


async def test_acks_all_waits_until_the_isr_has_the_batch(tmp_path: Path) -> None:
    """B1: a record is acknowledged once every member of the ISR has it."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        task = asyncio.ensure_future(append(broker, acks=-1))
        await settled()
        await follower_fetches(broker, 0)
        await settled()

        assert not task.done()

        await follower_fetches(broker, 2)

        assert (await task).error is ErrorCode.NONE
        assert broker.replicas.high_watermark(ORDERS) == 2


async def test_a_batch_that_replicas_lack_is_timed_out_with_its_offset(tmp_path: Path) -> None:
    """Source: DelayedProduce: the batch stays in the log."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        result = await append(broker, acks=-1, timeout_ms=0)

        assert (result.error, result.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


async def test_acks_all_is_refused_below_min_insync_replicas(tmp_path: Path) -> None:
    """B1. Source: Partition.appendRecordsToLeader, NotEnoughReplicasException."""
    topic = topic_view("orders", partition_view(replicas=(1, 2), isr=(1,)))
    async with hosting(tmp_path, topic, rules=IsrRules(min_insync_replicas=2)) as broker:
        assert (await append(broker, acks=-1)).error is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await append(broker, acks=1)).error is ErrorCode.NONE
        assert broker.replicas.high_watermark(ORDERS) == 0


async def test_a_waiting_producer_is_answered_when_its_leader_becomes_a_follower(tmp_path: Path) -> None:
    """B6. Source: Partition.checkEnoughReplicasReachOffset."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        task = asyncio.ensure_future(append(broker, acks=-1))
        await settled()
        await take_role(broker, ORDERS, replace(REPLICATED, leader=2, leader_epoch=6, partition_epoch=1))

        assert (await task).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_cancelled_producer_leaves_the_purgatory(tmp_path: Path) -> None:
    """B6: a request whose connection broke is answered to no other."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        task = asyncio.ensure_future(append(broker, acks=-1))
        await settled()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await follower_fetches(broker, 2)

        assert broker.replicas.high_watermark(ORDERS) == 2


async def test_partitions_that_are_not_here_have_their_own_errors(tmp_path: Path) -> None:
    """Source: ReplicaManager.getPartitionOrError."""
    elsewhere = topic_view("elsewhere", partition_view(leader=2, replicas=(2,)), number=2)
    async with hosting(tmp_path, topic_view("orders"), elsewhere) as broker:
        await broker.replicas.stop(TopicPartition("elsewhere", 0), delete=True)
        appended = await broker.replicas.writes.append(
            {TopicPartition("elsewhere", 0): records(), TopicPartition("unknown", 0): records()}, acks=1, timeout_ms=0
        )

        assert [result.error for result in appended.values()] == [
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]


async def test_a_refused_batch_names_its_records(tmp_path: Path) -> None:
    """KIP-467."""
    settings = PartitionSettings(append=AppendSettings(timestamp_before_max_ms=1_000))
    async with hosting(tmp_path, settings=settings) as broker:
        result = await append(broker, records("a", "b", timestamp_ms=0))

        assert result.error is ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in result.record_errors] == [0, 1]


async def test_internal_topics_are_written_only_by_brokers(tmp_path: Path) -> None:
    """Source: ReplicaManager.appendToLocalLog, InvalidTopicException."""
    offsets = replace(topic_view("__consumer_offsets"), is_internal=True)
    partition = TopicPartition("__consumer_offsets", 0)
    async with hosting(tmp_path, offsets) as broker:
        refused = await broker.replicas.writes.append({partition: records()}, acks=1, timeout_ms=0)
        written = await broker.replicas.writes.append({partition: records()}, acks=1, timeout_ms=0, allow_internal=True)

        assert refused[partition].error is ErrorCode.INVALID_TOPIC_EXCEPTION
        assert written[partition].error is ErrorCode.NONE


async def test_a_failed_write_takes_the_partition_offline(tmp_path: Path) -> None:
    """KIP-112: the directory is offline, its partitions answer KAFKA_STORAGE_ERROR."""
    async with hosting(tmp_path) as broker:
        hosted = broker.replicas.hosted()[ORDERS]

        def fail(*_: object, **__: object) -> None:
            raise OSError("the disk is gone")

        hosted.log.log.write = fail
        first, second = await append(broker), await append(broker)

        assert (first.error, second.error) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)


# Fetch


async def test_a_consumer_reads_only_below_the_high_watermark(tmp_path: Path) -> None:
    """B3."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker, records("a"))
        await append(broker, records("b"))
        await follower_fetches(broker, 1)
        result = await fetch(broker, 0)

        assert (values(result), result.high_watermark) == ([b"a"], 1)


async def test_a_fetch_waits_for_records(tmp_path: Path) -> None:
    """Source: DelayedFetch, case G."""
    async with hosting(tmp_path) as broker:
        task = asyncio.ensure_future(fetch(broker, 0, max_wait_ms=10_000))
        await settled()

        assert not task.done()

        await append(broker, records("a"))

        assert values(await task) == [b"a"]


async def test_a_fetch_waits_for_its_minimum_of_bytes(tmp_path: Path) -> None:
    """Source: DelayedFetch, case G."""
    batch = records("a")
    async with hosting(tmp_path) as broker:
        task = asyncio.ensure_future(fetch(broker, 0, max_wait_ms=10_000, min_bytes=len(batch) + 1))
        await append(broker, batch)
        await settled()

        assert not task.done()

        await append(broker, batch)

        assert values(await task) == [b"a", b"a"]


async def test_records_are_sent_from_their_file(tmp_path: Path) -> None:
    """They are read while the response is sent: a consumer's up to the high watermark, a follower's up to the log's end."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker, records("a"))
        await follower_fetches(broker, 1)
        await append(broker, records("b"))
        consumed = await fetch(broker, 0)
        behind = await follower_fetches(broker, 0)
        in_sync = await follower_fetches(broker, 1)

        assert [type(reply.records) for reply in (consumed, behind, in_sync)] == [FileSlice] * 3
        assert [values(reply) for reply in (consumed, behind, in_sync)] == [[b"a"], [b"a", b"b"], [b"b"]]


async def test_a_response_with_records_that_are_truncated_is_not_sent(tmp_path: Path) -> None:
    """Its follower would get what another leader wrote there (KAFKA-18723). The committed records before them are sent."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker, records("a"))
        await follower_fetches(broker, 1)
        await append(broker, records("b"))
        consumed, uncommitted = await fetch(broker, 0), await follower_fetches(broker, 1)
        log = broker.replicas.hosted()[ORDERS].log
        log.truncate_to(1)
        log.append_as_leader(records("c"), 7)

        assert values(consumed) == [b"a"]
        with pytest.raises(SliceUnreadable, match="the file was truncated"):
            values(uncommitted)


async def test_a_fetch_without_records_ends_after_its_wait(tmp_path: Path) -> None:
    """Source: DelayedFetch."""
    seconds = iter(range(1_000, 2_000))
    async with hosting(tmp_path, clock=lambda: next(seconds)) as broker:  # each call is a second later
        assert values(await fetch(broker, 0, max_wait_ms=1)) == []


async def test_a_waiting_fetch_is_answered_when_the_leader_changes(tmp_path: Path) -> None:
    """Source: DelayedFetch, case A."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        task = asyncio.ensure_future(fetch(broker, 0, max_wait_ms=10_000))
        await settled()
        await take_role(broker, ORDERS, replace(REPLICATED, leader=2, leader_epoch=6, partition_epoch=1))

        assert (await task).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("epoch", "error"),
    [(4, ErrorCode.FENCED_LEADER_EPOCH), (5, ErrorCode.NONE), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)],
)
async def test_requests_of_other_leader_epochs_are_refused(tmp_path: Path, epoch: int, error: ErrorCode) -> None:
    """B8, KIP-320."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        request = FetchPartition(broker.view.topics["orders"].id, 0, 1_000, current_leader_epoch=epoch)
        result = await broker.replicas.reads.fetch(FetchParams(), {ORDERS: request})

        assert result[ORDERS].error is error
        assert broker.replicas.reads.end_of_epoch(ORDERS, 5, current_leader_epoch=epoch).error is error


async def test_an_offset_outside_the_log_is_refused(tmp_path: Path) -> None:
    """Source: UnifiedLog.read."""
    async with hosting(tmp_path) as broker:
        assert (await fetch(broker, 1)).error is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_follower_whose_log_differs_gets_the_point_of_divergence(tmp_path: Path) -> None:
    """KIP-595. Source: Partition.readRecords."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker)
        params = FetchParams(2, 2, limit=ReadLimit.LOG_END)
        request = FetchPartition(broker.view.topics["orders"].id, 7, 1_000, 0, 5, last_fetched_epoch=5)
        result = (await broker.replicas.reads.fetch(params, {ORDERS: request}))[ORDERS]

        assert (result.error, result.diverging) == (ErrorCode.NONE, (5, 2))
        assert broker.replicas.high_watermark(ORDERS) == 0


async def test_a_topic_id_of_another_topic_is_refused(tmp_path: Path) -> None:
    """KIP-516."""
    async with hosting(tmp_path) as broker:
        other = topic_view("other", number=77).id
        result = await broker.replicas.reads.fetch(FetchParams(), {ORDERS: FetchPartition(other, 0, 1_000)})

        assert result[ORDERS].error is ErrorCode.INCONSISTENT_TOPIC_ID


# ISR


async def test_a_follower_that_catches_up_joins_the_isr(tmp_path: Path) -> None:
    """KIP-497. Source: Partition.maybeExpandIsr."""
    topic = topic_view("orders", partition_view(replicas=(1, 2), isr=(1,), leader_epoch=5))
    async with hosting(tmp_path, topic) as broker:
        await append(broker)
        await follower_fetches(broker, 2)
        await settled()

        leader = broker.replicas.hosted()[ORDERS].leader
        assert leader is not None
        assert (leader.isr.members, leader.partition_epoch) == ((1, 2), 1)


async def test_a_change_of_the_isr_with_an_unknown_outcome_is_sent_again(tmp_path: Path) -> None:
    """Source: AlterPartitionManager. Until the answer the high watermark waits for the larger ISR."""
    topic = topic_view("orders", partition_view(replicas=(1, 2), isr=(1,), leader_epoch=5))
    async with hosting(tmp_path, topic) as broker:
        control = broker.control
        assert isinstance(control, FixedControl)
        answers = [control.alter_partition]

        async def lose_the_first_answer(_: IsrProposal) -> IsrAnswer:
            control.alter_partition = answers[0]
            raise ControlPlaneError(ErrorCode.REQUEST_TIMED_OUT, "the answer is lost")

        control.alter_partition = lose_the_first_answer
        await follower_fetches(broker, 0)
        (task,) = broker.replicas._proposals._tasks
        await task

        leader = broker.replicas.hosted()[ORDERS].leader
        assert leader is not None
        assert leader.isr.members == (1, 2)


async def test_a_follower_that_lags_for_too_long_leaves_the_isr(tmp_path: Path) -> None:
    """Source: Partition.maybeShrinkIsr. The waiting producer is then answered."""
    now_s = 1_000.0
    async with hosting(tmp_path, REPLICATED_TOPIC, clock=lambda: now_s) as broker:
        task = asyncio.ensure_future(append(broker, acks=-1))
        await settled()
        now_s += 31
        broker.replicas.shrink_isrs()

        assert (await task).error is ErrorCode.NONE
        control = broker.control
        assert isinstance(control, FixedControl)
        assert [[member.broker_id for member in proposal.isr] for proposal in control.proposals] == [[1]]


async def test_a_fenced_broker_does_not_join_the_isr(tmp_path: Path) -> None:
    """KIP-841, KIP-903."""
    topic = topic_view("orders", partition_view(replicas=(1, 2), isr=(1,)))
    async with hosting(tmp_path, topic) as broker:
        broker.view = replace(broker.view, brokers={**broker.view.brokers, 2: BrokerView(2, 2, is_fenced=True)})
        await follower_fetches(broker, 0)
        await settled()

        assert isinstance(broker.control, FixedControl)
        assert broker.control.proposals == []


# DeleteRecords


async def test_deletion_of_records_waits_for_the_replicas(tmp_path: Path) -> None:
    """KIP-107. Source: DelayedDeleteRecords."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker)
        await follower_fetches(broker, 2)
        task = asyncio.ensure_future(broker.replicas.writes.delete_records({ORDERS: 1}, timeout_ms=10_000))
        await settled()

        assert not task.done()

        await follower_fetches(broker, 2, start=1)
        result = (await task)[ORDERS]

        assert (result.error, result.low_watermark) == (ErrorCode.NONE, 1)


async def test_records_above_the_high_watermark_are_not_deleted(tmp_path: Path) -> None:
    """Source: UnifiedLog.maybeIncrementLogStartOffset."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker)
        result = await broker.replicas.writes.delete_records({ORDERS: 1}, timeout_ms=0)

        assert result[ORDERS].error is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_records_of_a_compacted_topic_are_not_deleted(tmp_path: Path) -> None:
    """Source: Partition.deleteRecordsOnLeader, PolicyViolationException."""
    settings = PartitionSettings(append=AppendSettings(is_compacted=True), retention=RetentionSettings(deletes=False))
    async with hosting(tmp_path, settings=settings) as broker:
        result = await broker.replicas.writes.delete_records({ORDERS: 0}, timeout_ms=0)

        assert result[ORDERS].error is ErrorCode.POLICY_VIOLATION


# Roles


async def test_an_older_state_is_ignored(tmp_path: Path) -> None:
    """B8. Source: Partition.makeLeader."""
    state = replace(REPLICATED, partition_epoch=4)
    async with hosting(tmp_path, topic_view("orders", state)) as broker:
        topic_id = broker.view.topics["orders"].id
        await broker.replicas.follow(ORDERS, topic_id, replace(state, leader=2, leader_epoch=4, partition_epoch=3))

        assert broker.replicas.is_leader(ORDERS)


async def test_a_high_watermark_survives_a_restart(tmp_path: Path) -> None:
    """Source: LogManager.checkpointHighWatermarks (replication-offset-checkpoint)."""
    async with hosting(tmp_path, REPLICATED_TOPIC) as broker:
        await append(broker)
        await follower_fetches(broker, 2)
    following = topic_view("orders", replace(REPLICATED, leader=2))
    async with hosting(tmp_path, following) as broker:
        assert broker.replicas.high_watermark(ORDERS) == 2


async def test_an_append_is_on_the_disk_before_it_is_acknowledged_if_the_topic_requires_it(tmp_path: Path) -> None:
    """flush.messages: by default the page cache and the other replicas have it. Source: UnifiedLog.append."""
    for messages, flushed in ((2, 2), (3, 0)):
        settings = PartitionSettings(flush=FlushSettings(messages=messages))
        async with hosting(tmp_path / str(messages), settings=settings) as broker:
            await append(broker)
            opened = broker.logs.log(ORDERS)

            assert opened is not None
            assert opened.log.flushed_offset == flushed


async def test_an_append_that_the_disk_does_not_take_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed fsync: KAFKA_STORAGE_ERROR, also for what comes next."""

    def fail(_: int) -> None:
        raise OSError(5, "Input/output error")

    settings = PartitionSettings(flush=FlushSettings(messages=1))
    async with hosting(tmp_path, settings=settings) as broker:
        monkeypatch.setattr("os.fdatasync", fail)

        assert (await append(broker)).error is ErrorCode.KAFKA_STORAGE_ERROR
        assert (await append(broker)).error is ErrorCode.KAFKA_STORAGE_ERROR
