"""The logs of a broker: several directories, start, shutdown, deletion."""

from __future__ import annotations

import asyncio
import re
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_log.errors import FolderLockedError
from kafka_log.files.data_folder import read_high_watermarks, read_log_start_offsets, read_recovery_points
from kafka_log.files.text_files import read_meta_properties
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.names import CLEAN_SHUTDOWN
from kafka_wire.topic_partition import TopicPartition
from light_broker.shell.logs import startup
from light_broker.shell.logs.errors import OfflineLogError, WrongFolderError, WrongTopicIdError
from tests.kafka_log.batches import fast_folder
from tests.light_broker.log_managers import CLUSTER_ID, NODE_ID, ORDERS, SMALL, TOPIC_ID, Managed, append


@pytest.fixture
def folder() -> Iterator[Path]:
    """An empty folder in memory."""
    with fast_folder() as empty:
        yield empty


@pytest.fixture
def managed(folder: Path) -> Managed:
    """Two empty log directories."""
    return Managed([folder / "a", folder / "b"])


def cut_last_byte(log: Path) -> None:
    """Cut the last segment as a crash of the machine does."""
    last = max(log.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-1])


async def test_a_new_log_is_placed_in_the_directory_with_the_fewest_logs(managed: Managed) -> None:
    """LogManager.nextLogDirs; also when several are created at the same time."""
    async with managed.opened() as logs:
        partitions = [TopicPartition("orders", number) for number in range(4)]
        await asyncio.gather(*(logs.create(partition, TOPIC_ID) for partition in partitions))

        assert [directory.log_count for directory in logs.directories] == [2, 2]
        assert {path.name for path in managed.directories[0].iterdir() if path.is_dir()} | {
            path.name for path in managed.directories[1].iterdir() if path.is_dir()
        } == {"orders-0", "orders-1", "orders-2", "orders-3"}


async def test_concurrent_calls_for_one_partition_create_one_log(managed: Managed) -> None:
    """A leader epoch and a topic's creation may arrive together."""
    async with managed.opened() as logs:
        first, second = await asyncio.gather(logs.create(ORDERS, TOPIC_ID), logs.create(ORDERS, TOPIC_ID))

        assert first is second
        assert await logs.create(ORDERS, TOPIC_ID) is first


async def test_a_log_that_is_deleted_and_created_at_the_same_time_is_a_new_one(managed: Managed) -> None:
    """A topic that is deleted and created again: one change of a partition ends before the next begins."""
    async with managed.opened() as logs:
        old = await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS)
        *_, new = await asyncio.gather(logs.delete(ORDERS), logs.create(ORDERS, uuid.UUID(int=5)))

        assert new is not old
        assert new.end_offset == 0
        assert logs.topic_id(ORDERS) == uuid.UUID(int=5)


async def test_a_log_of_an_older_topic_of_that_name_is_not_used(managed: Managed) -> None:
    """partition.metadata: INCONSISTENT_TOPIC_ID."""
    async with managed.opened() as logs:
        await logs.create(ORDERS, TOPIC_ID)
    async with managed.opened() as logs:
        assert logs.topic_id(ORDERS) == TOPIC_ID
        with pytest.raises(WrongTopicIdError, match="belongs to the topic with id"):
            await logs.create(ORDERS, uuid.UUID(int=99))


async def test_a_log_without_a_topic_id_gets_it(managed: Managed) -> None:
    """A folder of Kafka before 2.8."""
    async with managed.opened() as logs:
        await logs.create(ORDERS, None)
        await logs.create(ORDERS, TOPIC_ID)
    async with managed.opened() as logs:
        assert logs.topic_id(ORDERS) == TOPIC_ID


async def test_a_clean_shutdown_leaves_the_broker_epoch_and_all_checkpoints(managed: Managed) -> None:
    """LogManager.shutdown; the mark is removed by the next start, so that a crash is not taken for a clean shutdown."""
    managed.directories = managed.directories[:1]
    (directory,) = managed.directories
    async with managed.opened(broker_epoch=42) as logs:
        opened = await logs.create(ORDERS, TOPIC_ID)
        end = append(logs, ORDERS, 30)
        managed.high_watermarks[ORDERS] = 20
        opened.raise_start_offset(3, high_watermark=20)

    assert (directory / CLEAN_SHUTDOWN).read_text() == '{"version":0,"brokerEpoch":42}'
    assert read_recovery_points(directory) == {ORDERS: end}
    assert read_high_watermarks(directory) == {ORDERS: 20}
    assert read_log_start_offsets(directory) == {ORDERS: 3}
    managed.high_watermarks = {}
    logs = managed.new()
    assert await logs.open_all() == 42
    reopened = logs.log(ORDERS)
    assert reopened is not None
    assert (reopened.start_offset, reopened.end_offset, logs.checkpointed_high_watermark(ORDERS)) == (3, end, 20)
    assert not (directory / CLEAN_SHUTDOWN).exists()
    await logs.close()


async def test_the_broker_epoch_is_unknown_unless_all_directories_have_the_same(managed: Managed) -> None:
    """LogManager.readBrokerEpochFromCleanShutdownFiles: the controller then takes the shutdown for an unclean one (KIP-966)."""
    async with managed.opened(broker_epoch=42):
        pass
    (managed.directories[1] / CLEAN_SHUTDOWN).write_text('{"version":0,"brokerEpoch":41}')

    logs = managed.new()
    assert await logs.open_all() is None
    await logs.close()


async def test_after_a_crash_the_torn_end_of_a_log_is_cut(managed: Managed) -> None:
    """LogLoader: what was not flushed is checked; the high watermark is that of the last checkpoint."""
    managed.directories = managed.directories[:1]
    async with managed.killed() as logs:
        await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS, 12)
        assert await logs.flush(ORDERS) == 12
        append(logs, ORDERS, 3)
    cut_last_byte(managed.directories[0] / "orders-0")

    async with managed.opened() as logs:
        reopened = logs.log(ORDERS)
        assert reopened is not None
        assert reopened.end_offset == 14


async def test_a_large_log_is_recovered_in_a_child_process(managed: Managed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its messages are logged by the broker."""
    async with managed.killed() as logs:
        await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS, 12)
    cut_last_byte(managed.directories[0] / "orders-0")
    monkeypatch.setattr(startup, "LARGE_LOG_BYTES", 1)

    async with managed.opened() as logs:
        assert logs.log(ORDERS).end_offset == 11


async def test_a_deleted_log_is_renamed_at_once_and_its_files_are_deleted_later(managed: Managed) -> None:
    """LogManager.asyncDelete; file.delete.delay.ms. A read that has begun goes on, and a log of that name can be created."""
    async with managed.opened() as logs:
        opened = await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS)
        fetched = opened.log.locate(0, 1_000)
        directory = logs.directory(ORDERS)
        assert directory is not None

        await logs.delete(ORDERS)
        await logs.delete(ORDERS)
        assert logs.log(ORDERS) is None
        (renamed,) = (path for path in directory.path.iterdir() if path.is_dir())
        assert re.fullmatch(r"orders-0\.[0-9a-f]{32}-delete", renamed.name)
        assert len(fetched.read()) == fetched.size_bytes
        assert (await logs.create(ORDERS, uuid.UUID(int=5))).end_offset == 0
        assert directory.delete_removed(managed.now_ms + SMALL.file_delete_delay_ms - 1) == 0
        assert directory.delete_removed(managed.now_ms + SMALL.file_delete_delay_ms) == 1
        assert not renamed.exists()


async def test_a_deletion_that_a_crash_interrupted_is_finished_at_the_start(managed: Managed) -> None:
    """And the checkpoints of the deleted log do not apply to a new one of that name."""
    managed.directories = managed.directories[:1]
    async with managed.killed() as logs:
        await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS)
        await logs.flush(ORDERS)
        await logs.delete(ORDERS)
    assert read_recovery_points(managed.directories[0]) == {}

    async with managed.opened() as logs:
        assert logs.directories[0].delete_removed(managed.now_ms) == 1
        assert [path for path in managed.directories[0].iterdir() if path.is_dir()] == []


async def test_a_log_without_an_assignment_is_set_aside_and_stays(managed: Managed) -> None:
    """`-stray`: the topic was deleted while the broker was down."""
    async with managed.opened() as logs:
        await logs.create(ORDERS, TOPIC_ID)
        await logs.mark_stray(ORDERS)
        assert logs.log(ORDERS) is None
    async with managed.opened() as logs:
        assert logs.online_logs() == []
        assert len(list(managed.directories[0].glob("orders-0.*-stray"))) == 1


async def test_other_folders_are_left_alone(managed: Managed, caplog: pytest.LogCaptureFixture) -> None:
    """`lost+found`, the quorum's log, a `-future` copy; Kafka refuses to start on an unknown folder."""
    for name in ("lost+found", "orders", "__cluster_metadata-0", "orders-1.0a-future"):
        (managed.directories[0] / name).mkdir(parents=True)
    async with managed.opened() as logs:
        assert logs.online_logs() == []
        assert [Path(record.__dict__["path"]).name for record in caplog.records if record.levelname == "WARNING"] == [
            "lost+found",
            "orders",
            "orders-1.0a-future",
        ]


async def test_a_folder_of_another_cluster_or_node_is_refused(managed: Managed) -> None:
    """MetaPropertiesEnsemble.verify; nothing is changed, and the locks are released."""
    async with managed.opened():
        pass
    assert read_meta_properties(managed.directories[0]).cluster_id == CLUSTER_ID

    with pytest.raises(
        WrongFolderError, match="belongs to cluster AAAAAAAAAAAAAAAAAAAAAA, and this node to cluster other"
    ):
        await replace(managed, cluster_id="other").new().open_all()
    with pytest.raises(
        WrongFolderError, match=r"belongs to node 1, and this is node 2\. Use another .*set node.id to 1"
    ):
        await replace(managed, node_id=2).new().open_all()
    async with managed.opened():
        pass


async def test_a_copy_of_a_directory_is_refused(managed: Managed) -> None:
    """Both have the same directory.id."""
    async with replace(managed, directories=managed.directories[:1]).opened():
        pass
    shutil.copytree(*managed.directories)

    with pytest.raises(WrongFolderError, match=r"have the same directory\.id .* One of them is a copy; remove it"):
        await managed.new().open_all()


async def test_a_directory_of_zookeeper_mode_is_taken_over(managed: Managed) -> None:
    """meta.properties of version 0 has broker.id."""
    managed.directories[0].mkdir()
    properties = "#\nversion=0\nbroker.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\n"
    (managed.directories[0] / "meta.properties").write_text(properties)

    async with managed.opened() as logs:
        assert logs.directories[0].is_online()


async def test_a_directory_that_another_process_uses_is_refused(managed: Managed) -> None:
    """LogManager.lockLogDirs."""
    async with managed.opened():
        with pytest.raises(FolderLockedError, match="another process uses this folder"):
            await managed.new().open_all()


async def test_a_partition_with_two_logs_is_offline(managed: Managed) -> None:
    """As a move between directories that a crash interrupted leaves it; Kafka refuses to start."""
    async with managed.opened() as logs:
        await logs.create(ORDERS, TOPIC_ID)
        used = logs.directory(ORDERS)
        assert used is not None
        (other,) = (directory for directory in logs.directories if directory is not used)
        shutil.copytree(used.path / "orders-0", other.path / "orders-0")

    async with managed.opened() as logs:
        assert logs.log(ORDERS) is None
        assert "has a log in each of" in str(logs.offline_reason(ORDERS))
        with pytest.raises(OfflineLogError, match="Delete all but one of them"):
            await logs.create(ORDERS, TOPIC_ID)


async def test_a_log_that_cannot_be_opened_is_offline_and_the_others_are_served(managed: Managed) -> None:
    """Messages of format 1, or a partition.metadata that is damaged; its high watermark stays in the checkpoint."""
    managed.directories = managed.directories[:1]
    second = TopicPartition("orders", 1)
    async with managed.opened() as logs:
        for topic_partition in (ORDERS, second):
            await logs.create(topic_partition, TOPIC_ID)
        managed.high_watermarks[ORDERS] = 5
    (managed.directories[0] / "orders-0" / "partition.metadata").write_text("?")
    managed.high_watermarks = {}

    async with managed.opened() as logs:
        assert "a line is malformed" in str(logs.offline_reason(ORDERS))
        assert logs.log(second) is not None
    assert read_high_watermarks(managed.directories[0]) == {ORDERS: 5, second: 0}


async def test_an_append_is_on_the_disk_after_so_many_records_or_so_much_time(managed: Managed) -> None:
    """flush.messages, flush.ms."""
    managed.topics["orders"] = replace(SMALL, flush=FlushSettings(messages=3, interval_ms=100))
    async with managed.opened() as logs:
        opened = await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS, 2)
        assert not opened.is_flush_due_by_messages()
        append(logs, ORDERS, 1)
        assert opened.is_flush_due_by_messages()
        assert await asyncio.gather(logs.flush(ORDERS), logs.flush(ORDERS)) == [3, 3]
        append(logs, ORDERS, 1)
        assert not opened.is_flush_due_by_time()
        managed.now_ms += 100
        assert opened.is_flush_due_by_time()


async def test_a_changed_setting_of_a_topic_applies_without_a_restart(managed: Managed) -> None:
    """To the next append; other topics keep theirs."""
    other = TopicPartition("other", 0)
    async with managed.opened() as logs:
        for topic_partition in (ORDERS, other):
            await logs.create(topic_partition, TOPIC_ID)
        managed.topics["orders"] = replace(SMALL, log=replace(SMALL.log, segment_bytes=200))
        logs.reconfigure("orders")
        for topic_partition in (ORDERS, other):
            append(logs, topic_partition, 3)

        assert [len(logs.log(topic_partition).log.segments) for topic_partition in (ORDERS, other)] == [3, 1]


async def test_each_log_draws_its_own_part_of_the_jitter(managed: Managed) -> None:
    """segment.jitter.ms: the segments of many logs do not end at the same time."""
    managed.topics["orders"] = replace(SMALL, log=replace(SMALL.log, segment_jitter_ms=1_000_000))
    async with managed.opened() as logs:
        drawn = {
            (await logs.create(TopicPartition("orders", number), TOPIC_ID)).settings.log.segment_jitter_ms
            for number in range(3)
        }

        assert len(drawn) == 3
        assert max(drawn) < 1_000_000


async def test_truncation_lowers_the_recovery_point_in_its_checkpoint(managed: Managed) -> None:
    """What is appended behind it is not on the disk (LogManager.truncateTo)."""
    managed.directories = managed.directories[:1]
    async with managed.killed() as logs:
        opened = await logs.create(ORDERS, TOPIC_ID)
        append(logs, ORDERS, 10)
        await logs.flush(ORDERS)
        await logs.checkpoints[logs.directories[0]].recovery_points.run()
        opened.truncate_to(4)
        await logs.settle()

        assert read_recovery_points(managed.directories[0]) == {ORDERS: 4}


async def test_the_node_writes_its_identity_into_new_directories(managed: Managed) -> None:
    """meta.properties, version 1."""
    async with managed.opened() as logs:
        found = [read_meta_properties(path) for path in managed.directories]

        assert [meta and (meta.cluster_id, meta.node_id) for meta in found] == [(CLUSTER_ID, NODE_ID)] * 2
        assert [meta and meta.directory_id for meta in found] == [
            directory.directory_id for directory in logs.directories
        ]
