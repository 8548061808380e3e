"""The folder of a real controller of Kafka: opened here after it was killed, and by Kafka after it was changed here."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.quorum_state import QuorumState, read_quorum_state, write_quorum_state
from kafka_log.errors import FolderLockedError
from kafka_log.files.lock import FolderLock
from kafka_log.files.snapshots import SnapshotReader
from kafka_log.files.text_files import read_meta_properties, write_meta_properties
from kafka_log.format.control_records import last_contained_timestamp_ms
from kafka_log.format.names import CLUSTER_METADATA_FOLDER
from kafka_log.format.roll import LogSettings
from kafka_log.format.text_files import MetaProperties
from kafka_wire.records import Record, decode_batches, encode_batch
from lab.peers.kraft import CONTROLLER_ID, KraftNode, new_id
from lab.processes.folder import lab_folder
from lab.processes.ports import free_port
from lab.processes.waiting import wait_until
from tests.kafka_log.test_java_judges import NO_OP

pytestmark = pytest.mark.kafka

SEGMENT_BYTES = 6_000
SETTINGS = LogSettings(segment_bytes=SEGMENT_BYTES)

BUSY = {
    "internal.metadata.log.segment.bytes": str(SEGMENT_BYTES),
    "metadata.max.idle.interval.ms": "1",
    "controller.quorum.append.linger.ms": "1",
    "metadata.log.max.record.bytes.between.snapshots": "8000",
}
"""A record in each millisecond, so that segments and snapshots come soon."""


@pytest.fixture
def controller() -> Iterator[KraftNode]:
    """A formatted controller that is its whole quorum."""
    with lab_folder(None) as folder:
        port = free_port()
        node = KraftNode(
            CONTROLLER_ID,
            folder,
            quorum=f"{CONTROLLER_ID}@127.0.0.1:{port}",
            cluster_id=new_id(),
            controller_port=port,
            port=None,
            brokers=1,
            settings=BUSY,
        )
        node.format()
        yield node
        node.close()


def log_bytes(folder: Path) -> bytes:
    """Return the content of all segments."""
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def run_until(controller: KraftNode, segments: int) -> None:
    """Start it and wait until it has this number of segments, and a snapshot."""
    folder = controller.data_folder / CLUSTER_METADATA_FOLDER
    controller.start()
    wait_until(
        lambda: len(list(folder.glob("*.log"))) >= segments and any(folder.glob("*-*.checkpoint")),
        timeout_s=60,
        what="the controller has written segments and a snapshot",
    )


def test_a_killed_controllers_folder_is_read_to_its_last_record_and_goes_back_to_kafka(controller: KraftNode) -> None:
    """B4, B5. Every batch decodes; after a truncation, new records and a new term here, Kafka leads on with what is left."""
    folder = controller.data_folder / CLUSTER_METADATA_FOLDER
    run_until(controller, 3)
    with pytest.raises(FolderLockedError):
        FolderLock(controller.data_folder)
    controller.kill()
    before = log_bytes(folder)

    properties = read_meta_properties(controller.data_folder)
    assert properties == MetaProperties(
        cluster_id=properties and properties.cluster_id,
        node_id=CONTROLLER_ID,
        directory_id=properties and properties.directory_id,
    )
    state = read_quorum_state(folder)
    assert state == QuorumState(1, leader_id=CONTROLLER_ID, voters=(CONTROLLER_ID,))
    with FolderLock(controller.data_folder):
        shutil.copytree(folder, copy := controller.data_folder.parent / "copy" / CLUSTER_METADATA_FOLDER)
        written = (copy / "quorum-state").read_bytes()
        write_quorum_state(copy, state, 0)
        assert (copy / "quorum-state").read_bytes() == written
        end = change(folder, before)
        write_quorum_state(folder, QuorumState(2, leader_id=CONTROLLER_ID, voters=(CONTROLLER_ID,)), 0)
        write_meta_properties(controller.data_folder, properties)
    left = log_bytes(folder)

    run_until(controller, 5)
    assert controller.stop() in {0, 143}
    assert log_bytes(folder).startswith(left)
    log = MetadataLog(folder, SETTINGS)
    assert log.end_offset > end
    assert log.last_fetched_epoch > 2
    log.close()


def change(folder: Path, before: bytes) -> int:
    """Open the killed controller's log, compare it, truncate it above its snapshot, and append a record; return its end."""
    log = MetadataLog(folder, SETTINGS)
    snapshot = log.latest_snapshot
    assert snapshot is not None
    assert before.startswith(log_bytes(folder))
    offset = log.start_offset
    while content := log.read(offset, 100_000):
        for batch in decode_batches(content):
            assert batch.header.base_offset == offset
            offset = batch.header.last_offset + 1
    assert offset == log.end_offset
    with SnapshotReader(folder, snapshot) as reader:
        whole = list(decode_batches(reader.read(0, reader.size_bytes)))
        assert last_contained_timestamp_ms(reader.read(0, reader.size_bytes)) > 1_600_000_000_000
    assert whole[0].header.is_control
    assert whole[-1].header.is_control
    log.truncate_to(max(snapshot.offset, log.end_offset - 50), high_watermark=snapshot.offset)
    log.append_as_leader(encode_batch([Record(0, 1_600_000_000_000, None, NO_OP)]), 2)
    log.flush()
    log.close()
    return log.end_offset
