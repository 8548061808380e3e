"""Topic `orders` of namespace `shop` in the world of fakes."""

from __future__ import annotations

from kafka_operator import kinds
from reconciler.names import Key
from tests.kafka_operator.makers import raw_topic
from tests.kafka_operator.world import World

ORDERS = Key(kinds.TOPIC, "shop", "orders")


def key(name: str) -> Key:
    """A Topic's key."""
    return Key(kinds.TOPIC, "shop", name)


async def settled_topic(world: World, **spec: object) -> None:
    """Have Topic `orders` Ready."""
    world.kube.apply(raw_topic(**spec))
    await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")
    world.kube.writes.clear()
    world.gate.calls.clear()
