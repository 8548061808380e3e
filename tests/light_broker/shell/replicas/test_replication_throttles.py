"""Throttles of replication on real logs: what a leader holds back, and what a follower does not ask for (KIP-73)."""

from dataclasses import replace
from pathlib import Path

from kafka_node.configs.resource_types import ConfigResourceType
from light_broker.core.metadata_view import ConfigResource
from light_broker.core.replica_requests import ReadResult
from light_broker.core.replication_quota import Side
from light_broker.shell.broker import Broker
from light_broker.shell.replicas.throttles import ReplicationThrottles
from tests.light_broker.fixed_control import partition_view, topic_view
from tests.light_broker.hosting import ORDERS, follower_fetches, hosting, records

RATE = 100
MOVING = topic_view("orders", partition_view(replicas=(1, 2), isr=(1,), leader_epoch=5))
"""Broker 2 is behind, as during a move."""
IN_SYNC = topic_view("orders", partition_view(replicas=(1, 2), isr=(1, 2), leader_epoch=5))


class Clock:
    """Milliseconds that a test moves."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        """Return the time."""
        return self.now_ms


def throttle(broker: Broker, clock: Clock, replicas: str = "0:1") -> None:
    """Set a rate for the leader's side, and the throttled replicas of the topic."""
    topic = ConfigResource(ConfigResourceType.TOPIC, "orders")
    broker.view = replace(broker.view, configs={topic: {Side.LEADER.replicas_config: replicas}})
    broker.settings = broker.settings.with_dynamic({}, {Side.LEADER.rate_setting: str(RATE)})
    broker.replicas.reads.throttle_by(ReplicationThrottles(1, lambda: broker.view, lambda: broker.settings, clock))


async def twice(broker: Broker, clock: Clock) -> tuple[ReadResult, ReadResult]:
    """Let the follower fetch 1 KiB twice, a millisecond apart."""
    await broker.replicas.writes.append({ORDERS: records("x" * 1024)}, acks=1, timeout_ms=1000)
    first = await follower_fetches(broker, 0)
    clock.now_ms += 1
    return first, await follower_fetches(broker, 0)


async def test_a_replica_outside_the_isr_waits_while_the_rate_is_exceeded(tmp_path: Path) -> None:
    """It gets its answers without records, so that it stays connected and knows the high watermark."""
    clock = Clock()
    async with hosting(tmp_path, MOVING) as broker:
        throttle(broker, clock)
        first, second = await twice(broker, clock)
        clock.now_ms += 11_000
        later = await follower_fetches(broker, 0)

    assert (bool(first.records), bool(second.records), bool(later.records)) == (True, False, True)
    assert not second.error
    assert second.log_start_offset == 0


async def test_a_replica_in_the_isr_is_never_held_back(tmp_path: Path) -> None:
    """It would leave the ISR, and acks=all would wait for it."""
    clock = Clock()
    async with hosting(tmp_path, IN_SYNC) as broker:
        throttle(broker, clock)
        first, second = await twice(broker, clock)

    assert (bool(first.records), bool(second.records)) == (True, True)


async def test_a_replica_that_the_topic_does_not_name_is_not_held_back(tmp_path: Path) -> None:
    """The leader's list names the leader of the replication, which is this broker."""
    clock = Clock()
    async with hosting(tmp_path, MOVING) as broker:
        throttle(broker, clock, replicas="0:3")
        first, second = await twice(broker, clock)

    assert (bool(first.records), bool(second.records)) == (True, True)
