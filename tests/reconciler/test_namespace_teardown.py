"""An operator that is deleted with its own namespace leaves nothing there that only it could delete."""

from __future__ import annotations

from typing import Any

from kafka_operator import kinds
from reconciler.kube.port import ConflictError, UnavailableError
from reconciler.names import Key
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

ORDERS, MAIN = Key(kinds.TOPIC, "shop", "orders"), Key(kinds.CLUSTER, "shop", "main")
FAR = Key(kinds.TOPIC, "far", "orders")


def elsewhere(raw: dict[str, Any]) -> dict[str, Any]:
    """The same in another namespace."""
    return {**raw, "metadata": {**raw["metadata"], "namespace": "far"}}


async def settled(world: World) -> None:
    """Have Topics in two namespaces, both Ready and held; the operator has stopped its work."""
    for raw in (raw_topic(), elsewhere(raw_cluster("other")), elsewhere(raw_topic(topicName="far", cluster="other"))):
        world.kube.apply(raw)
    await world.until(lambda: all(world.kube.ready(key)[0] == "True" for key in (ORDERS, FAR, MAIN)))
    await world.core.loop.close()


def held(world: World, key: Key) -> bool:
    """Whether our finalizer is on it."""
    return bool(world.kube.objects[key]["metadata"].get("finalizers"))


@in_virtual_time
async def test_in_a_namespace_that_ends_everything_is_let_go_of() -> None:
    """Its pods, ours among them, go before its Topics do; the other namespaces' stay held."""
    async with running() as world:
        await settled(world)
        world.kube.ending.add("shop")

        await world.core.teardown.remove_finalizers("shop")

        assert (held(world, ORDERS), held(world, MAIN), held(world, FAR)) == (False, False, True)
        assert world.kafka.topics.keys() == {"orders", "far"}


@in_virtual_time
async def test_in_a_namespace_that_stays_finalizers_are_kept() -> None:
    """The operator is only restarted."""
    async with running() as world:
        await settled(world)

        await world.core.teardown.remove_finalizers("shop")

        assert (held(world, ORDERS), held(world, MAIN)) == (True, True)


@in_virtual_time
async def test_finalizers_are_removed_despite_conflicts_and_failures() -> None:
    """After a conflict the resource is read again; an unavailable API server is reported, and the teardown continues."""
    async with running() as world:
        await settled(world)
        world.kube.failures.append(UnavailableError("503"))
        await world.core.teardown.remove_finalizers("shop")
        assert held(world, ORDERS)
        world.kube.ending.add("shop")
        original = world.kube._patch_metadata
        conflicts = [ORDERS, MAIN]

        def contended(key: Key, patch: dict[str, Any]) -> Any:
            if key in conflicts:
                conflicts.remove(key)
                raise ConflictError(str(key))
            return original(key, patch)

        world.kube._patch_metadata = contended
        await world.core.teardown.remove_finalizers("shop")

        assert (held(world, ORDERS), held(world, MAIN)) == (False, False)
