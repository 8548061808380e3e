"""Topics while a cluster, the API server, the watch or the operator itself is away, over fakes and virtual time."""

from __future__ import annotations

import pytest

from reconciler.kube.port import ConflictError, UnavailableError
from reconciler.names import FINALIZER
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.topics import ORDERS, key, settled_topic
from tests.kafka_operator.world import RESYNC_S, running
from tests.reconciler.virtual_time import in_virtual_time


@in_virtual_time
async def test_an_unreachable_cluster_is_reported_once_and_retried() -> None:
    """Ready=Unknown, back-off, exactly one event and one status write for each resource."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.reachable = False
        await world.run(2 * RESYNC_S)

        assert world.kube.ready(ORDERS)[:2] == ("Unknown", "ClusterUnreachable")
        assert world.kube.writes.count(str(ORDERS)) == 1
        assert sorted(f"{n.key.kind} {n.key.name}" for n in world.kube.events) == ["Cluster main", "Topic orders"]
        world.kafka.reachable = True
        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 20


@in_virtual_time
async def test_a_missing_cluster_is_reported_and_used_when_it_is_created() -> None:
    """Order of apply does not matter."""
    async with running(cluster=False) as world:
        world.kube.apply(raw_topic())
        await world.until(lambda: world.kube.ready(ORDERS)[1] == "ClusterNotFound", seconds=2)
        assert world.kube.ready(ORDERS)[0] == "Unknown"

        world.kube.apply(raw_cluster())

        assert await world.until(lambda: world.kube.ready(ORDERS)[0] == "True") < 3


@in_virtual_time
async def test_a_controllers_failover_goes_unnoticed() -> None:
    """Nothing is written while the controller is replaced; what was asked for comes after it."""
    async with running() as world:
        await settled_topic(world)
        world.kafka.has_controller = False
        world.kube.apply(raw_topic(partitions=8))
        await world.run(10)
        assert world.kube.writes == []

        world.kafka.has_controller = True

        assert await world.until(lambda: len(world.kafka.topics["orders"].replicas) == 8) < 15


@in_virtual_time
async def test_conflicts_and_refusals_of_the_api_server_are_survived() -> None:
    """409 reads again, 5xx and 429 try again; the end is the same."""
    async with running() as world:
        await world.run(1)
        world.kube.failures += [ConflictError("409"), UnavailableError("503"), UnavailableError("429")]
        world.kube.apply(raw_topic())

        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True", seconds=10)


@in_virtual_time
async def test_a_foreign_write_between_read_and_write_is_not_lost() -> None:
    """A finalizer that another client adds while the topic is deleted stays: the resource version guards it."""
    async with running() as world:
        await settled_topic(world)

        def somebody_adds_a_finalizer() -> None:
            world.lose_watch_events = True
            world.kube.objects[ORDERS]["metadata"]["finalizers"].append("foreign/one")
            world.kube.touch(ORDERS)

        world.kafka.on_delete = somebody_adds_a_finalizer
        world.kube.delete(ORDERS)
        await world.run(10)

        assert world.kube.objects[ORDERS]["metadata"]["finalizers"] == ["foreign/one"]
        assert world.kafka.topics == {}


@in_virtual_time
async def test_a_finalizer_removed_by_hand_is_restored() -> None:
    """As long as the Topic is declared, it is held."""
    async with running() as world:
        await settled_topic(world)
        held = world.kube.objects[ORDERS]
        held["metadata"]["finalizers"] = []
        world.kube.apply(raw_topic(partitions=7))

        await world.run(5)

        assert world.kube.objects[ORDERS]["metadata"]["finalizers"] == [FINALIZER]


@in_virtual_time
async def test_lost_watch_events_are_made_up_for_by_the_resync() -> None:
    """A watch that stalls: created, changed and deleted all come through, later."""
    async with running() as world:
        await settled_topic(world)
        world.lose_watch_events = True
        world.kube.apply(raw_topic("unseen"))
        world.kube.apply(raw_topic(partitions=9))
        await world.run(RESYNC_S + 10)

        assert world.kube.ready(key("unseen"))[0] == "True"
        assert len(world.kafka.topics["orders"].replicas) == 9
        world.kube.delete(key("unseen"))
        await world.run(RESYNC_S + 10)
        assert "unseen" not in world.kafka.topics
        assert key("unseen") not in world.kube.objects


@pytest.mark.shows("O2")
@in_virtual_time
async def test_a_restart_with_everything_as_declared_writes_nothing() -> None:
    """O2, O3: the new process finds what is there."""
    async with running() as world:
        for index in range(30):
            world.kube.apply(raw_topic(f"t{index}", config={"retention.ms": "5"}))
        await world.run(20)
        await world.kill()
        world.kube.writes.clear()

        world.start()
        await world.run(60)

        assert world.kube.writes == []
        assert world.core.loop.idle
