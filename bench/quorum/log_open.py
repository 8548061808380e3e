"""Opening of a quorum's log of 1 GiB after a kill: Steward, and Kafka's KafkaRaftLog in a JVM.

Both check every batch and build the indexes again. The files are in the page cache, as after a kill. The JVM has opened the log
once before, in its favour: a controller that starts again has not.
"""

import os
import shutil
import struct
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.harness import Effort, Row, alternate, duration, promised
from bench.jvm import newest_peer
from kafka_log.files.log import Log
from kafka_log.format.names import CLUSTER_METADATA_FOLDER, segment_name
from kafka_wire.records import Record, encode_batch
from lab.processes.folder import lab_folder

NAME = "log-open"
ABOUT = "a quorum's log of 1 GiB opened after a kill, compared with Kafka's own log in a JVM"

LOG_BYTES = 2**30 - 2**20
"""One segment of the quorum's default size."""
QUICK_BYTES = 2**25
ROUNDS = 3
SOURCE = Path(__file__).parent / "java" / "LogPeer.java"
PEER = "KafkaRaftLog, its second opening"
HEAP = "512m"
WRITTEN_BYTES = 2**24
"""Written at once while the log is made."""

BATCHES = {"appends": (2_500, 256), "kilobytes": (1, 1_024), "small": (1, 100)}
"""Records of a batch and bytes of a record: 100,000 records of 256 bytes in a second, written every 25 ms; one record at a time."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    size_bytes = QUICK_BYTES if effort.quick else LOG_BYTES
    with lab_folder(None) as folder:
        for name, (records, record_bytes) in BATCHES.items():
            made = folder / name / CLUSTER_METADATA_FOLDER
            count = make_log(made, records, record_bytes, size_bytes)
            with newest_peer(SOURCE, folder, str(made), heap=HEAP) as jvm:
                assert jvm.checksum == count * records
                sides = alternate(partial(opened, made), jvm.run, effort.runs(ROUNDS))
            what = (
                f"{size_bytes >> 20} MiB in {count:,} batches of {records:,} records of {record_bytes:,} bytes, opened"
            )
            yield promised(duration(f"{NAME}.{name}", what, PEER, sides), "", 1.0)
            shutil.rmtree(made.parent)


def make_log(folder: Path, records: int, record_bytes: int, size_bytes: int) -> int:
    """Write a segment of equal batches with the right offsets; return how many."""
    folder.mkdir(parents=True)
    values = [Record(index, 1_000, None, os.urandom(record_bytes)) for index in range(records)]
    batch = bytearray(encode_batch(values, partition_leader_epoch=1))
    count = size_bytes // len(batch)
    at_once = max(WRITTEN_BYTES // len(batch), 1)
    with (folder / segment_name(0)).open("wb") as file:
        for first in range(0, count, at_once):
            parts = []
            for number in range(first, min(first + at_once, count)):
                struct.pack_into(">q", batch, 0, number * records)
                parts.append(bytes(batch))
            file.write(b"".join(parts))
    return count


def opened(folder: Path) -> float:
    """Open and close the log; return the seconds of the opening."""
    started = time.perf_counter()
    log = Log(folder)
    seconds = time.perf_counter() - started
    log.close()
    return seconds
