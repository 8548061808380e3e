"""Clusters that are paused, over fakes and virtual time; Topics are in test_engine_topic_policies."""

from __future__ import annotations

from kafka_operator import kinds
from reconciler.names import PAUSE, Key
from tests.kafka_operator.world import RESYNC_S, running
from tests.reconciler.virtual_time import in_virtual_time

MAIN = Key(kinds.CLUSTER, "shop", "main")


@in_virtual_time
async def test_a_paused_cluster_is_not_polled_and_keeps_its_status() -> None:
    """Features 32: nothing is done, no news of brokers either; it is shown as it is when it goes on."""
    async with running() as world:
        await world.until(lambda: world.kube.ready(MAIN)[0] == "True")
        world.kube.annotate(MAIN, PAUSE, "true")
        await world.run(2)
        world.kube.writes.clear()
        world.gate.calls.clear()
        world.kafka.broker_ids = (1, 2)
        await world.run(2 * RESYNC_S)

        assert world.kube.writes == []
        assert world.gate.count("kafka") == 0
        status = world.kube.objects[MAIN]["status"]
        assert status["conditions"][-1]["type"] == "ReconciliationPaused"
        assert (world.kube.ready(MAIN)[0], status["brokers"]) == ("True", 4)
        world.kube.annotate(MAIN, PAUSE, None)
        await world.until(lambda: world.kube.objects[MAIN]["status"]["brokers"] == 2)
        conditions = world.kube.objects[MAIN]["status"]["conditions"]
        assert "ReconciliationPaused" not in {item["type"] for item in conditions}
