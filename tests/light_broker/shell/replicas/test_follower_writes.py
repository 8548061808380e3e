"""Changes of a follower's log. Source: Kafka's ReplicaFetcherThread.processPartitionData, Partition.appendRecordsToFollowerOrFutureReplica."""

from pathlib import Path

import pytest

from kafka_log.errors import LogWriteError
from kafka_log.files.partition_settings import PartitionSettings, broker_log_settings
from kafka_log.format.batches import with_offsets
from kafka_wire import ErrorCode
from light_broker.core.replica_fetch import Append, StartAt, Truncate
from light_broker.shell.replicas.follower_writes import Written
from tests.light_broker.fixed_control import partition_view, topic_view
from tests.light_broker.hosting import ORDERS, hosting, records

FOLLOWED = topic_view("orders", partition_view(leader=2, replicas=(1, 2), leader_epoch=5))


def batch(offset: int, *values: str) -> bytes:
    """Return a batch as the leader of epoch 5 returns it."""
    return with_offsets(records(*values), offset, 5)


async def test_batches_are_appended_with_the_leaders_high_watermark_and_start(tmp_path: Path) -> None:
    """The part of a batch at the end of a response is left out."""
    async with hosting(tmp_path, FOLLOWED) as broker:
        data = batch(0, "a", "b") + batch(2, "c")
        written = broker.replicas.follower_writes.append(ORDERS, 5, Append(data + batch(3, "d")[:40], 3, 1))

        hosted = broker.replicas.hosted()[ORDERS]
        assert written is Written.DONE
        assert (hosted.log.start_offset, hosted.log.end_offset, hosted.high_watermark) == (1, 3, 3)


async def test_a_damaged_batch_is_not_appended(tmp_path: Path) -> None:
    """It is fetched again: the transfer may have damaged it (CorruptRecordException)."""
    async with hosting(tmp_path, FOLLOWED) as broker:
        damaged = batch(0, "a")[:-1] + b"?"

        assert broker.replicas.follower_writes.append(ORDERS, 5, Append(damaged, 1, 0)) is Written.INVALID
        assert broker.replicas.hosted()[ORDERS].log.end_offset == 0


@pytest.mark.shows("B8")
async def test_an_answer_of_an_earlier_leader_epoch_changes_nothing(tmp_path: Path) -> None:
    """B8: the role has changed since the request."""
    async with hosting(tmp_path, FOLLOWED, topic_view("led", number=2)) as broker:
        writes = broker.replicas.follower_writes

        assert writes.append(ORDERS, 4, Append(batch(0, "a"), 1, 0)) is Written.STALE
        assert writes.truncate(ORDERS, 4, Truncate(0)) is Written.STALE
        assert writes.log_of(ORDERS, 4) is None
        assert writes.log_of(ORDERS._replace(topic="led"), 0) is None
        assert broker.replicas.hosted()[ORDERS].log.end_offset == 0


@pytest.mark.shows("B2")
async def test_the_high_watermark_stays_within_a_truncated_log(tmp_path: Path) -> None:
    """Only after an unclean election. Source: UnifiedLog.truncateTo."""
    async with hosting(tmp_path, FOLLOWED) as broker:
        writes, hosted = broker.replicas.follower_writes, broker.replicas.hosted()[ORDERS]
        writes.append(ORDERS, 5, Append(batch(0, "a") + batch(1, "b"), 2, 0))
        assert writes.truncate(ORDERS, 5, Truncate(1)) is Written.DONE
        assert (hosted.log.end_offset, hosted.high_watermark) == (1, 1)
        assert writes.truncate(ORDERS, 5, StartAt(7)) is Written.DONE

        assert (hosted.log.start_offset, hosted.log.end_offset, hosted.high_watermark) == (7, 7, 7)


async def test_a_failed_write_takes_a_followed_partition_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA_STORAGE_ERROR."""

    def fail(*_: object, **__: object) -> None:
        raise LogWriteError("the disk is full")

    async with hosting(tmp_path, FOLLOWED) as broker:
        monkeypatch.setattr(broker.replicas.hosted()[ORDERS].log, "append_as_follower", fail)

        assert broker.replicas.follower_writes.append(ORDERS, 5, Append(batch(0, "a"), 1, 0)) is Written.OFFLINE
        assert broker.replicas.reads.end_of_epoch(ORDERS, 5).error is ErrorCode.KAFKA_STORAGE_ERROR


async def test_more_bytes_than_a_segment_has_are_appended_in_parts(tmp_path: Path) -> None:
    """The leader's segments are from before segment.bytes was lowered."""
    one = len(batch(0, "a"))
    settings = PartitionSettings(log=broker_log_settings(segment_bytes=2 * one + 1))
    async with hosting(tmp_path, FOLLOWED, settings=settings) as broker:
        data = b"".join(batch(offset, "a") for offset in range(5))
        assert broker.replicas.follower_writes.append(ORDERS, 5, Append(data, 5, 0)) is Written.DONE

        log = broker.replicas.hosted()[ORDERS].log.log
        assert (log.segment_offsets, log.end_offset) == ([0, 2, 4], 5)
