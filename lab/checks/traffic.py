"""Load on one topic, with records of what was acknowledged, what was read back, and how long nothing was acknowledged.

Every value is sent once and is unique, so a lost record, a duplicate and a record out of order are plain counts. A producer
thread sends at a steady rate to every partition in turn; a consumer thread of a group reads at the same time; `stop()` waits for the
last acknowledgements and then reads the whole topic from the start. It does not measure throughput.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Mapping
from typing import Any, Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from lab.checks.read_back import read_all
from lab.checks.traffic_report import Ledger, TrafficReport
from lab.errors import LabError
from lab.processes.waiting import wait_until

RATE_PER_S = 40
"""A record each 25 ms, so that a gap of a tenth of a second is seen. A hundred a second would cost three brokers a third of a processor."""

DELIVERY_TIMEOUT_MS = 60_000
"""How long the producer retries one record; a longer failure counts as an error of the client."""

IN_FLIGHT = 1
"""With more in flight, librdkafka writes records twice when leaders change, by itself (its issue 4953): a request behind one that
a former leader refused is out of sequence, and it then continues under another producer epoch. This load must not."""

CLIENT_SETTINGS: Mapping[str, Any] = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
}
"""Short back-offs, so that a measured gap is caused by the cluster, not by the client."""

TOPIC_TIMEOUT_S = 30.0

FULL_QUEUE_WAIT_S = 0.1

LOGGER = logging.getLogger(__name__)
LOGGER.addHandler(logging.NullHandler())  # librdkafka logs every broken connection, which the lab causes on purpose

STOP_TIMEOUT_S = DELIVERY_TIMEOUT_MS / 1000 + 30


class Traffic:
    """Load on `topic` from `start()` to `stop()`; as a context manager it ends with the block, however that ends.

    `bootstrap` is a bootstrap string of any listener; `idempotent` switches on the producer's exactly-once writes to a partition;
    `consume` adds a consumer of a group, which needs the offsets topic.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        *,
        idempotent: bool = True,
        rate_per_s: int = RATE_PER_S,
        consume: bool = True,
        producer_settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.topic = topic
        self.ledger = Ledger(run=uuid.uuid4().hex[:12])
        self._common = {"bootstrap.servers": bootstrap, **CLIENT_SETTINGS}
        self._rate_per_s = rate_per_s
        self._stopping = threading.Event()
        self._reading = threading.Event()
        self._reading.set()
        self._partitions: list[int] = []
        self._threads = [threading.Thread(target=self._produce, name="lab-producer", daemon=True)]
        if consume:
            self._threads.append(threading.Thread(target=self._consume, name="lab-consumer", daemon=True))
        self._producer = Producer(
            {
                **self._common,
                "acks": "all",
                "enable.idempotence": idempotent,
                "linger.ms": 0,
                "max.in.flight.requests.per.connection": IN_FLIGHT,
                "delivery.timeout.ms": DELIVERY_TIMEOUT_MS,
                **(producer_settings or {}),
            },
            logger=LOGGER,
        )

    def start(self) -> Self:
        """Begin; returns after the first record of every partition was acknowledged."""
        self._partitions = self._known_partitions()
        for thread in self._threads:
            thread.start()
        wait_until(
            lambda: self.ledger.acked_partitions == len(self._partitions) or bool(self.ledger.errors),
            timeout_s=TOPIC_TIMEOUT_S,
            what=f"a record acknowledged in each of the {len(self._partitions)} partitions of {self.topic}",
        )
        return self

    def stop(self) -> TrafficReport:
        """End the load, wait for pending records, read everything back and return the report."""
        self._end_threads()
        read = read_all(
            self._common,
            self.topic,
            self._partitions,
            complete=lambda read: not self.ledger.missing(record.value for record in read),
        )
        return self.ledger.report(read)

    @property
    def acked(self) -> int:
        """Number of records acknowledged so far."""
        return self.ledger.acked

    def wait_for_acks(self, more: int, *, timeout_s: float = STOP_TIMEOUT_S) -> float:
        """Return the seconds until `more` further records were acknowledged."""
        target = self.ledger.acked + more
        return wait_until(
            lambda: self.ledger.acked >= target, timeout_s=timeout_s, what=f"{more} more records acknowledged"
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._reading.clear()
        self._producer.purge()
        for thread in self._threads:
            thread.join(STOP_TIMEOUT_S)

    def _end_threads(self) -> None:
        self._stopping.set()
        self._threads[0].join(STOP_TIMEOUT_S)
        self._reading.clear()
        for thread in self._threads:
            thread.join(STOP_TIMEOUT_S)
            if thread.is_alive():
                raise LabError(f"{thread.name} on {self.topic} did not end within {STOP_TIMEOUT_S:g} s")

    def _known_partitions(self) -> list[int]:
        found: list[int] = []

        def is_known() -> bool:
            metadata = self._producer.list_topics(self.topic, timeout=TOPIC_TIMEOUT_S).topics[self.topic]
            found[:] = sorted(metadata.partitions)
            return metadata.error is None and bool(found)

        wait_until(is_known, timeout_s=TOPIC_TIMEOUT_S, what=f"topic {self.topic} known to its clients")
        return found

    def _produce(self) -> None:
        started = time.monotonic()
        sequence = 0
        while not self._stopping.is_set():
            sequence += self._send(sequence)
            due = started + sequence / self._rate_per_s
            self._producer.poll(0)
            # `poll` returns as soon as it has served a delivery report, so that one call does not keep the rate.
            while (left_s := due - time.monotonic()) > 0 and not self._stopping.is_set():
                self._producer.poll(left_s)
        self._producer.flush(STOP_TIMEOUT_S)

    def _send(self, sequence: int) -> bool:
        """Pass a record to the producer; False when its queue is full, as after a long time without acknowledgements."""
        partition = self._partitions[sequence % len(self._partitions)]
        try:
            self._producer.produce(
                self.topic, self.ledger.value(sequence), partition=partition, on_delivery=self._on_delivery
            )
        except BufferError:
            self._producer.poll(FULL_QUEUE_WAIT_S)
            return False
        except KafkaException as error:
            self.ledger.errors.append(str(error))
        self.ledger.sent()
        return True

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            partition = message.partition()
            assert partition is not None, "an acknowledgement names its partition"
            self.ledger.acknowledged(message.value(), partition, time.monotonic())
        else:
            self.ledger.errors.append(f"partition {message.partition()}: {error.name()}: {error.str()}")

    def _consume(self) -> None:
        consumer = Consumer(
            {**self._common, "group.id": f"lab-{self.ledger.run}", "auto.offset.reset": "earliest"}, logger=LOGGER
        )
        consumer.subscribe([self.topic])
        try:
            while self._reading.is_set():
                message = consumer.poll(0.1)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    self.ledger.consumed(message.value())
                else:
                    self.ledger.consumer_errors.append(f"{error.name()}: {error.str()}")
        finally:
            consumer.close()
