"""When snapshots of the metadata are written, and what follows from one that fails. Source: SnapshotGenerator of Kafka."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

import pytest
from prometheus_client import CollectorRegistry

from controller_core.quorum.batches import Position
from controller_core.shell.kraft.metrics import KRaftMetrics
from controller_core.shell.kraft.snapshots import Snapshots
from controller_core.shell.quorum.settings import MetadataLogSettings
from kafka_log.errors import LogError
from kafka_metadata.metadata_log import OpenTransaction
from tests.controller_core.shell.kraft.memory_quorum import Member, new_topic

SIZE_BYTES = 1_234


class Node:
    """Notes the snapshots that are written; `failure` is the result of the next."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.ends: list[int] = []
        self.failure: Exception | None = None

    async def write_snapshot(self, end: Position, values: Iterable[bytes], last_timestamp_ms: int) -> int | None:  # noqa: ARG002 - the port
        """Note a snapshot."""
        if (failure := self.failure) is not None:
            self.failure = None
            raise failure
        assert list(values)
        self.ends.append(end.offset)
        return SIZE_BYTES


NEVER = MetadataLogSettings(
    max_record_bytes_between_snapshots=10**9,
    max_snapshot_interval_ms=0,
    segment_bytes=10**9,
    segment_ms=10**9,
    max_retention_bytes=10**9,
    max_retention_ms=10**9,
    max_idle_interval_ms=0,
    max_batch_size_bytes=10**6,
    delete_delay_ms=0,
)
"""Settings by which no snapshot is due."""
EACH_BATCH = replace(NEVER, max_record_bytes_between_snapshots=1)


@pytest.fixture
async def active(active: Member) -> Member:
    """The active controller of a cluster with a broker."""
    await active.start_broker(1)
    return active


async def change(member: Member, name: str) -> int:
    """Create a topic; return the end of the committed log, after what follows from it."""
    await member.controller.submit(new_topic(name, (1,)))
    await asyncio.sleep(0)
    return member.controller.committed.end_offset


async def test_a_snapshot_is_due_after_an_interval_at_the_next_record(active: Member) -> None:
    """metadata.log.max.snapshot.interval.ms."""
    node = Node()
    Snapshots(node, active.controller, replace(NEVER, max_snapshot_interval_ms=60_000))
    await change(active, "early")
    node.now_ms = 60_000
    end = await change(active, "due")
    await change(active, "soon after")

    assert node.ends == [end]


async def test_snapshots_by_time_can_be_turned_off(active: Member) -> None:
    """An interval of 0."""
    node = Node()
    Snapshots(node, active.controller, NEVER)
    node.now_ms = 10**12
    await change(active, "late")

    assert node.ends == []


async def test_a_snapshot_is_due_after_some_bytes(active: Member) -> None:
    """metadata.log.max.record.bytes.between.snapshots."""
    node = Node()
    Snapshots(node, active.controller, EACH_BATCH)
    ends = [await change(active, name) for name in ("first", "second")]

    assert node.ends == ends


async def test_a_snapshot_that_fails_is_written_when_the_next_is_due(
    active: Member, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka reports a fault and goes on."""
    node = Node()
    Snapshots(node, active.controller, EACH_BATCH)
    node.failure = LogError("the disk is full")
    await change(active, "first")
    end = await change(active, "second")

    assert node.ends == [end]
    assert "Failed to write a snapshot; trying again later" in caplog.messages


async def test_no_snapshot_has_a_part_of_a_transaction(active: Member) -> None:
    """KIP-868: the transaction may be aborted."""
    node, controller = Node(), active.controller
    Snapshots(node, controller, EACH_BATCH)
    whole = controller.follower.log
    controller.follower.log = replace(whole, transaction=OpenTransaction(whole.end_offset, whole.image))
    controller.advanced(100)
    controller.follower.log = whole

    assert node.ends == []


async def test_the_latest_snapshot_is_in_the_metrics(active: Member) -> None:
    """SnapshotEmitterMetrics: its size and age, and what a process has before the first."""
    registry, node = CollectorRegistry(), Node()
    active.controller.metrics = KRaftMetrics(registry)
    before = snapshot_gauges(active, registry)
    Snapshots(node, active.controller, EACH_BATCH)
    node.now_ms = active.log.now_ms = 5_000
    await change(active, "orders")
    active.log.now_ms = 7_000

    assert before == (0, 0)
    assert snapshot_gauges(active, registry) == (SIZE_BYTES, 2_000)


def snapshot_gauges(member: Member, registry: CollectorRegistry) -> tuple[float | None, float | None]:
    """Return the size and the age."""
    member.controller.update_metrics(member.log.high_watermark)
    size, age = (
        registry.get_sample_value(f"kafka_server_snapshotemitter_latestsnapshotgenerated{name}")
        for name in ("bytes", "agems")
    )
    return size, age
