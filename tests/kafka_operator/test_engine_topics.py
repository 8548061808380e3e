"""Topics from apply to Ready and back, over fakes and virtual time."""

from __future__ import annotations

from kafka_operator.names import Key, Kind
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.world import in_virtual_time, running

ORDERS = Key(Kind.TOPIC, "shop", "orders")


@in_virtual_time
async def test_a_topic_is_created_and_ready_within_two_seconds_with_two_writes() -> None:
    """Issue: Ready within 2 s; at most 3 writes besides the create, 2 are enough (finalizer, status)."""
    async with running() as world:
        await world.run(1)
        world.kube.writes.clear()
        world.kube.apply(raw_topic(config={"retention.ms": "1000"}))

        took_s = await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")

        assert took_s < 2
        await world.run(60)
        assert [str(ORDERS)] * 2 == world.kube.writes
        assert 6 == len(world.kafka.topics["orders"].replicas)
        assert {"retention.ms": "1000"} == world.kafka.topics["orders"].config
        status = world.kube.objects[ORDERS]["status"]
        assert (6, 3, "orders", 1) == (
            status["partitions"],
            status["replicationFactor"],
            status["topicName"],
            status["observedGeneration"],
        )
