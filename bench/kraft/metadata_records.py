"""Metadata records of partitions: a batch of changes written, and a snapshot of a million partitions read.

Steward writes and reads columns. The peers are Kafka's own serializer and images in a warm JVM, and Steward's codec, which is the only
other way in Python. All write the same bytes.
"""

import zlib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import numpy as np

from bench.harness import Effort, Row, alternate, duration, limited, promised, side_of, throughput, timed
from bench.jvm import newest_peer
from controller_core.model.columns import PartitionColumns
from kafka_log.format.control_records import snapshot_batches
from kafka_metadata.record_codec import decode_record, encode_record
from kafka_metadata.records import MetadataRecord, PartitionChangeRecord, PartitionRecord, TopicRecord
from kafka_wire.columns.record_decoder import decode_columns
from kafka_wire.columns.record_encoder import Lists, RecordColumns, encode_columns
from kafka_wire.records import Record, batch_headers, encode_batch
from lab.processes.folder import lab_folder

NAME = "metadata-records"
ABOUT = "PartitionChangeRecords written, and a snapshot of a million partitions read, compared with the codec and with Kafka in a JVM"

SOURCE = Path(__file__).parent / "java" / "RecordPeer.java"
HEAP = "3g"
"""A million partitions in Java's maps take 500 MB; with this heap, garbage collection hardly affects the figure."""
CODEC, JAVA = "Steward's codec", "Kafka's own classes, hot"
CHANGES = 10_000
"""A full batch."""
REPEAT = 20
TOPIC_ID = UUID(int=(1 << 64) + 2)
BASE_OFFSET, TIMESTAMP_MS, EPOCH = 7, 5, 3
"""Those of the peer."""
AT_LEAST_A_SECOND = 20e6
"""Promised records a second from columns."""
PARTITIONS, TOPICS = 1_000_000, 10_000
QUICK_TOPICS = 100
REPLAY_LIMIT_S = 1.5
BATCHES_READ_TOGETHER = 8
"""About 8,000 records and 1 MB: the columns of one step stay in the processor's cache."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    with lab_folder(None) as folder:
        yield from _encoding(folder, effort)
        yield from _replay(folder, effort)


def _encoding(folder: Path, effort: Effort) -> Iterator[Row]:
    columns, plain = change_columns(), changes()
    written = encoded(columns)
    assert written == encoded_by_codec(plain), "columns and records give the same bytes"
    ours, codec = timed(lambda: encoded(columns), REPEAT), timed(lambda: encoded_by_codec(plain))
    what = f"a batch of {CHANGES:,} PartitionChangeRecords with leader and ISR ({len(written):,} bytes)"
    seconds = alternate(ours, codec, effort.runs())
    row = throughput(f"{NAME}.encode.codec", what, CODEC, "records/s", CHANGES, seconds)
    yield row
    yield promised(
        throughput(
            f"{NAME}.encode.limit",
            what,
            "the promised rate",
            "records/s",
            CHANGES,
            (seconds[0], [CHANGES / AT_LEAST_A_SECOND]),
        ),
        "",
        1.0,
    )
    with newest_peer(SOURCE, folder, "encode", str(CHANGES), heap=HEAP, repeat=REPEAT, quick=effort.quick) as peer:
        assert zlib.crc32(written) == peer.checksum, "both write the same bytes"
        seconds = alternate(ours, peer.run, effort.runs())
    yield promised(throughput(f"{NAME}.encode.java", what, JAVA, "records/s", CHANGES, seconds), "", 1.0)


def _replay(folder: Path, effort: Effort) -> Iterator[Row]:
    topics = QUICK_TOPICS if effort.quick else TOPICS
    partitions = topics * (PARTITIONS // TOPICS)
    snapshot = b"".join(
        snapshot_batches(snapshot_values(topics), epoch=EPOCH, timestamp_ms=1, last_contained_timestamp_ms=1)
    )
    (folder / "snapshot").write_bytes(snapshot)
    assert len(replayed(snapshot).used()) == partitions
    ours = timed(lambda: replayed(snapshot))
    what = f"a snapshot of {partitions:,} partitions in {topics:,} topics ({len(snapshot) / 1e6:.0f} MB) replayed into columns"
    with newest_peer(SOURCE, folder, "replay", str(folder / "snapshot"), heap=HEAP, quick=effort.quick) as peer:
        assert peer.checksum == partitions, "both read the same partitions"
        seconds = alternate(ours, peer.run, effort.runs())
    yield duration(f"{NAME}.replay.java", what, JAVA, seconds)
    yield limited(f"{NAME}.replay.limit", what, "s", side_of(seconds[0]), REPLAY_LIMIT_S, "")


def changes() -> list[PartitionChangeRecord]:
    """Return the changes as records; the peer's are equal."""
    return [
        PartitionChangeRecord(number, TOPIC_ID, leader=number % 4 + 1, isr=(number % 4 + 1, (number + 1) % 4 + 1))
        for number in range(CHANGES)
    ]


def change_columns() -> RecordColumns:
    """Return the changes as columns."""
    numbers = np.arange(CHANGES, dtype=np.int32)
    isr = np.stack((numbers % 4 + 1, (numbers + 1) % 4 + 1), axis=1)
    return RecordColumns(
        "PartitionChangeRecord",
        2,
        np.array([TOPIC_ID.bytes] * CHANGES, "V16"),
        {"partition_id": numbers, "leader": numbers % 4 + 1},
        {"isr": Lists.padded(isr)},
    )


def encoded(columns: RecordColumns) -> bytes:
    """Encode a batch from columns."""
    return encode_columns(columns, base_offset=BASE_OFFSET, timestamp_ms=TIMESTAMP_MS, partition_leader_epoch=EPOCH)


def encoded_by_codec(found: list[PartitionChangeRecord]) -> bytes:
    """Encode a batch record by record."""
    values = [encode_record(record, 30) for record in found]
    records = [Record(BASE_OFFSET + place, TIMESTAMP_MS, None, value) for place, value in enumerate(values)]
    return encode_batch(records, partition_leader_epoch=EPOCH)


def snapshot_values(topics: int) -> Iterator[bytes]:
    """Yield the records of topics with 100 partitions each."""
    for number in range(topics):
        topic_id = UUID(int=(number + 1) << 64 | 7)
        found: list[MetadataRecord] = [TopicRecord(f"topic-{number}", topic_id)]
        for partition in range(PARTITIONS // TOPICS):
            replicas = tuple((number + partition + step) % 9 + 1 for step in range(3))
            directories = tuple(UUID(int=replica << 64) for replica in replicas)
            isr = replicas[:2] if partition % 7 == 0 else replicas
            found.append(
                PartitionRecord(partition, topic_id, replicas, isr, replicas[0], 3, 5, directories=directories)
            )
        yield from (encode_record(record, 30) for record in found)


def replayed(snapshot: bytes) -> PartitionColumns:
    """Return the partitions of a snapshot in the controller's columns."""
    columns = PartitionColumns()
    index_by_id: dict[bytes, int] = {}
    for part in parts(snapshot):
        decoded = decode_columns(part)
        for other in decoded.others:
            topic = decode_record(other.value, other.offset)
            assert isinstance(topic, TopicRecord)
            index_by_id[topic.topic_id.bytes] = len(index_by_id)
        for _, found in decoded.columns:
            add_partitions(columns, index_by_id, found)
    return columns


def parts(snapshot: bytes) -> Iterator[bytes]:
    """Yield some batches of a snapshot at a time."""
    begin = end = 0
    for count, (position, header) in enumerate(batch_headers(snapshot), start=1):
        end = position + header.size_bytes
        if count % BATCHES_READ_TOGETHER == 0:
            yield snapshot[begin:end]
            begin = end
    yield snapshot[begin:end]


def add_partitions(columns: PartitionColumns, index_by_id: dict[bytes, int], found: RecordColumns) -> None:
    """Add partitions, of topics one after another."""
    halves = found.topic_ids.view("u8").reshape(-1, 2)
    starts = [0, *(np.flatnonzero((halves[1:] != halves[:-1]).any(axis=1)) + 1).tolist(), len(found)]
    numbers, replicas = found.numbers, found.lists["replicas"].values
    rows = [
        columns.add(
            index_by_id[found.topic_ids[begin].tobytes()], numbers["partition_id"][begin:end], replicas[begin:end]
        )
        for begin, end in pairwise(starts)
    ]
    columns.set_states(
        np.concatenate(rows),
        numbers["leader"],
        numbers["leader_epoch"],
        found.lists["isr"].values,
        numbers["partition_epoch"],
        EPOCH,
    )
