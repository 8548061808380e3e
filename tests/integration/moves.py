"""Moves of any duration: a topic with a known assignment and so much data that a throttled copy takes minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.kubernetes import User, plan_text, topic_text

RECORD_BYTES = 1 << 18
RECORDS = 12
"""Three fetches of replica.fetch.max.bytes: the throttle stops a follower before it has copied everything."""

CLOCKWISE = ([1, 2, 3], [2, 3, 1], [3, 1, 2])


def on_1_2_3(held: Held, user: User, name: str, partitions: int) -> dict[int, list[int]]:
    """Declare a topic, move it to brokers 1, 2, 3 from its first assignment, fill it, and return its assignment."""
    user.apply(topic_text(name, partitions, config={"min.insync.replicas": "2"}))
    user.wait_until_ready(name)
    user.apply(plan_text(f"{name}-first", {(name, index): CLOCKWISE[index % 3] for index in range(partitions)}))
    user.wait_until_ready(f"{name}-first", kind="reassignments")
    fill(held, name, partitions)
    return held.cluster.assignment(name)


@contextmanager
def throttled(held: Held, topic: str, broker: int, copies: str = "*") -> Iterator[None]:
    """Throttle some copies (such as "0:4,1:4") to one byte a second while the block lasts (KIP-73)."""
    held.set_config(ResourceType.TOPIC, topic, follower_replication_throttled_replicas=copies)
    held.set_config(ResourceType.BROKER, str(broker), follower_replication_throttled_rate="1")
    try:
        yield
    finally:
        held.set_config(ResourceType.BROKER, str(broker), follower_replication_throttled_rate=None)


def fill(held: Held, topic: str, partitions: int) -> None:
    """Write some megabytes to each partition."""
    producer = Producer({"bootstrap.servers": held.cluster.bootstrap(), "acks": "all"})
    for partition in range(partitions):
        for _ in range(RECORDS):
            producer.produce(topic, bytes(RECORD_BYTES), partition=partition)
    assert producer.flush(PATIENCE_S) == 0
