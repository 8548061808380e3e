"""A client with load on a topic: it writes, reads, polls every partition's ISR, and reports what it saw.

`witness.py TOPIC MIN_ISR [BYTES]` runs until the file /tmp/stop appears; then it waits for the last acknowledgements, reads the whole topic
again and prints a report as one line of JSON. Every value is sent once and is unique, so lost, duplicate, moved or skipped records are
plain counts. Each record has BYTES in addition to its value, none by default.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from e2e.pods.clients import PATIENT
from lab.checks.traffic_report import Ledger, ReadRecord

STOP = Path("/tmp/stop")

STARTED = Path("/tmp/started")

RATE_PER_S = 30
"""Little for brokers on two cores, and enough for the gaps to be found: five a second for each of six partitions."""

WATCH_INTERVAL_S = 0.2

POLL_MS = 200

FETCH_BYTES = 4096
"""Read in a few fetches a second: one for each record is as much work for brokers as the load itself."""

DELIVERY_TIMEOUT_MS = 60_000

QUIET_S = 15.0
"""Far longer than a follower takes to fetch; only a lost record costs this wait."""


@dataclasses.dataclass
class Watch:
    """Observations of the topic's ISRs: the smallest one, and each poll that found a partition under min ISR."""

    min_isr: int
    polls: int = 0
    smallest_isr: int = 1 << 16
    under: list[str] = dataclasses.field(default_factory=list)

    def note(self, topic: dict[str, Any]) -> None:
        """Record one poll."""
        self.polls += 1
        for partition in topic["partitions"]:
            isr = partition["isr_nodes"]
            self.smallest_isr = min(self.smallest_isr, len(isr))
            if len(isr) < self.min_isr:
                self.under.append(f"{partition['partition_index']}: leader {partition['leader_id']}, isr {isr}")


def polled(consumer: Any) -> dict[TopicPartition, list[Any]]:
    """Return the records of a poll, none when a broker with a metadata request is gone: the client raises, and works at the next call."""
    try:
        records: dict[TopicPartition, list[Any]] = consumer.poll(timeout_ms=POLL_MS)
    except KafkaError:
        time.sleep(POLL_MS / 1000)
        return {}
    return records


class Reader:
    """A consumer of a group; a skipped record would be a gap in a partition's offsets."""

    def __init__(self, topic: str, ledger: Ledger) -> None:
        self.skipped: list[str] = []
        self.seen = False
        self._next: dict[int, int] = {}
        self._ledger = ledger
        self._consumer = KafkaConsumer(
            topic,
            **PATIENT | {"request_timeout_ms": 15_000},
            group_id=f"witness-{ledger.run}",
            auto_offset_reset="earliest",
            session_timeout_ms=10_000,
            fetch_min_bytes=FETCH_BYTES,
            fetch_max_wait_ms=POLL_MS,
        )

    def read(self, until: threading.Event) -> None:
        """Read until the end of the load."""
        while not until.is_set():
            for partition, records in polled(self._consumer).items():
                for record in records:
                    self._see(partition.partition, record.offset)
                    self._ledger.consumed(record.value)
        self._consumer.close()

    def _see(self, partition: int, offset: int) -> None:
        expected = self._next.get(partition, 0)
        if offset > expected:
            self.skipped.append(f"{partition}@{expected}..{offset - 1}")
        self.seen = True
        self._next[partition] = max(expected, offset + 1)


class Witness:
    """Producer, consumer and ISR polls of one topic."""

    def __init__(self, topic: str, min_isr: int, padding_bytes: int = 0) -> None:
        self.topic = topic
        self._headers = [("padding", bytes(padding_bytes))] if padding_bytes else []
        self.ledger = Ledger(run=f"{time.time_ns():x}")
        self.watch = Watch(min_isr)
        self.reader = Reader(topic, self.ledger)
        self.acked_at: dict[bytes, tuple[int, int]] = {}
        self._partitions: list[int] = []
        self._stopping = threading.Event()
        self._producer = KafkaProducer(
            **PATIENT,
            acks="all",
            enable_idempotence=True,
            max_in_flight_requests_per_connection=1,
            delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            linger_ms=0,
        )

    def run(self) -> dict[str, Any]:
        """Run the load and return the report."""
        threads = [
            threading.Thread(target=self.reader.read, args=[self._stopping], daemon=True),
            threading.Thread(target=self._watch, daemon=True),
        ]
        for thread in threads:
            thread.start()
        self._produce()
        self._producer.flush(timeout=DELIVERY_TIMEOUT_MS / 1000 + 10)
        self._stopping.set()
        for thread in threads:
            thread.join(30)
        return self._report(self._read_all())

    def _produce(self) -> None:
        self._partitions = partitions = sorted(self._producer.partitions_for(self.topic))
        started = time.monotonic()
        sequence = 0
        while not STOP.exists():
            value = self.ledger.value(sequence)
            partition = partitions[sequence % len(partitions)]
            try:
                sent = self._producer.send(self.topic, value, partition=partition, headers=self._headers)
            except KafkaError as error:
                self.ledger.errors.append(repr(error))
            else:
                sent.add_callback(self._acknowledged, value).add_errback(self._failed)
            self.ledger.sent()
            sequence += 1
            if not STARTED.exists() and self.ledger.acked_partitions == len(partitions) and self.reader.seen:
                STARTED.touch()
            time.sleep(max(0.0, started + sequence / RATE_PER_S - time.monotonic()))

    def _acknowledged(self, value: bytes, metadata: Any) -> None:
        self.ledger.acknowledged(value, metadata.partition, time.monotonic())
        self.acked_at[value] = (metadata.partition, metadata.offset)

    def _failed(self, error: Exception) -> None:
        self.ledger.errors.append(repr(error))

    def _watch(self) -> None:
        admin: Any = None
        while not self._stopping.wait(WATCH_INTERVAL_S):
            try:
                admin = admin or KafkaAdminClient(**PATIENT | {"bootstrap_timeout_ms": 5_000})
                for topic in admin.describe_topics([self.topic]):
                    self.watch.note(topic)
            except KafkaError:  # the broker of the request is down, which the tests cause on purpose
                _close(admin)
                admin = None

    def _read_all(self) -> list[ReadRecord]:
        consumer = KafkaConsumer(**PATIENT | {"request_timeout_ms": 15_000}, auto_offset_reset="earliest")
        partitions = [TopicPartition(self.topic, number) for number in self._partitions]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        read: list[ReadRecord] = []
        missing = self.ledger.missing([])
        last_news = time.monotonic()
        while missing and time.monotonic() - last_news < QUIET_S:
            for partition, records in polled(consumer).items():
                last_news = time.monotonic()
                read.extend(ReadRecord(partition.partition, record.offset, record.value) for record in records)
                missing = (
                    self.ledger.missing(record.value for record in read) if len(read) >= self.ledger.acked else missing
                )
        consumer.close()
        return read

    def _report(self, read: list[ReadRecord]) -> dict[str, Any]:
        found = self.ledger.report(read)
        places = {record.value: (record.partition, record.offset) for record in read}
        displaced = [
            f"{value.decode()}: acknowledged at {at}, found at {places[value]}"
            for value, at in self.acked_at.items()
            if value in places and at != places[value] and at[1] >= 0
        ]
        return dataclasses.asdict(found) | {
            "summary": found.summary(),
            "displaced": displaced,
            "skipped": self.reader.skipped,
            "polls": self.watch.polls,
            "smallest_isr": self.watch.smallest_isr,
            "under_min_isr": self.watch.under,
        }


def _close(admin: Any) -> None:
    if admin is not None:
        with contextlib.suppress(KafkaError):
            admin.close()


if __name__ == "__main__":
    report = Witness(sys.argv[1], *map(int, sys.argv[2:])).run()
    sys.stdout.write(json.dumps(report) + "\n")
