"""What `helm test` runs: produce records to a new topic, consume the same ones, and delete the topic again.

    python3 produce_and_consume.py HOST:PORT

Acknowledged by all replicas in sync, and read back from the first offset on: a cluster that passes elects, replicates and serves.
"""

import sys
import time
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, TopicAlreadyExistsError

RECORDS = 100
PARTITIONS = 3

TIMEOUT_S = 60.0
"""For each step: a cluster that has just been installed may be electing its first leaders."""

BOOTSTRAP_TIMEOUT_MS = 30_000
"""How long the first answer may take."""


def produce_and_consume(bootstrap: str, topic: str) -> int:
    """Return how many records came back; KafkaError or TimeoutError when a step fails, ValueError when others came back."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap, bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS)
    try:
        _create(admin, topic)
        try:
            sent = _produce(bootstrap, topic)
            received = _consume(bootstrap, topic, len(sent))
        finally:
            admin.delete_topics([topic])
    finally:
        admin.close()
    if sorted(sent) != sorted(received):
        raise ValueError(
            f"of {len(sent)} records {len(set(sent) & set(received))} came back, and {len(received)} in all"
        )
    return len(received)


def _create(admin: KafkaAdminClient, topic: str) -> None:
    """Create the topic as soon as the cluster can: right after an install, or in an upgrade, a broker may be on its way."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            admin.create_topics([NewTopic(topic, num_partitions=PARTITIONS, replication_factor=-1)])
        except TopicAlreadyExistsError:  # an earlier try whose answer did not come
            return
        except KafkaError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


def _produce(bootstrap: str, topic: str) -> list[bytes]:
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", max_block_ms=int(TIMEOUT_S * 1000))
    try:
        values = [f"record {number}".encode() for number in range(RECORDS)]
        waiting = [producer.send(topic, value, partition=number % PARTITIONS) for number, value in enumerate(values)]
        for future in waiting:
            future.get(timeout=TIMEOUT_S)
    finally:
        producer.close()
    return values


def _consume(bootstrap: str, topic: str, wanted: int) -> list[bytes]:
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        received: list[bytes] = []
        deadline = time.monotonic() + TIMEOUT_S
        while len(received) < wanted:
            if time.monotonic() > deadline:
                raise TimeoutError(f"after {TIMEOUT_S:.0f} s, {len(received)} of {wanted} records have come")
            for records in consumer.poll(timeout_ms=500).values():
                received.extend(record.value for record in records)
    finally:
        consumer.close()
    return received


def main(bootstrap: str) -> int:
    """Do it and return the exit code."""
    topic = f"steward-test-{uuid.uuid4().hex[:8]}"
    try:
        count = produce_and_consume(bootstrap, topic)
    except (KafkaError, TimeoutError, ValueError) as error:
        sys.stderr.write(f"{topic} at {bootstrap}: {type(error).__name__}: {error}\n")
        return 1
    sys.stdout.write(f"{count} records were produced to {topic} and came back\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
