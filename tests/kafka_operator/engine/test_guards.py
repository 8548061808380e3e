"""Guards of Reassignments over fakes and virtual time: what is read, what it stops, and what is left in Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.kafka_operator.engine.test_cluster_pods import reasons
from tests.kafka_operator.engine.test_throttles import FIXED, condition, orders, status
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment
from tests.kafka_operator.tenants import allow, tenant_move
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
PLAN = raw_plan(p0=[2, 3, 4], p1=[3, 4, 2])
P99 = "histogram_quantile(0.99, sum by (le) (rate(produce_seconds_bucket[5m])))"
SERVER = {"url": "https://prometheus.monitoring:9090", "tokenSecretRef": {"name": "prometheus"}}


def move(**spec: Any) -> dict[str, Any]:
    """Two partitions, one after the other."""
    return raw_reassignment(plan=PLAN, concurrency={"cluster": 1}, **spec)


def have_prometheus(world: World) -> None:
    """Cluster `main` has a Prometheus server with a token."""
    world.kube.secrets["shop", "prometheus"] = {"token": b"abc\n"}
    world.kube.apply(raw_cluster(prometheus=SERVER))


@pytest.mark.shows("E17")
@in_virtual_time
async def test_consumer_lag_pauses_the_moves_and_they_go_on_when_it_is_gone() -> None:
    """The move in progress ends, the throttle goes, one event for each change."""
    async with running() as world:
        world.kafka.move_s = 20
        world.kafka.lags["billing"] = 10
        await orders(world)
        guard = {"consumerLag": [{"group": "billing", "maxRecords": 100}], "resumeAfterSeconds": 60}
        world.kube.apply(move(guard=guard, throttle=FIXED))
        await world.until(lambda: bool(world.kafka.moves), seconds=30)
        world.kafka.lags["billing"] = 101
        await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardBreached", seconds=15)
        assert "lag of group billing: 101 (maximum 100)" in world.kube.ready(MOVE)[2]
        await world.run(60)
        assert (world.kafka.moves, world.kafka.throttled(), len(world.kafka.submitted)) == ({}, {}, 1)
        writes = len(world.kube.writes)
        world.kafka.lags["billing"] = 150
        await world.run(60)
        assert len(world.kube.writes) == writes, "a limit that stays exceeded is not written again"

        world.kafka.lags["billing"] = 0
        await world.until(lambda: status(world)["state"] == "Completed", seconds=150)

        assert reasons(world) == ["Running", "GuardBreached", "Running", "Completed"]
        assert status(world)["guard"] == {"breaches": 1}
        assert condition(world, "Waiting")[0] == "False"


@pytest.mark.shows("E17")
@in_virtual_time
async def test_a_query_over_its_threshold_rolls_back_and_leaves_no_throttle() -> None:
    """Every partition has its previous replicas; Ready is False, since the plan was not reached."""
    async with running() as world:
        have_prometheus(world)
        world.kafka.move_s = 20
        world.prometheus.values[P99] = 0.02
        await orders(world)
        guard = {"queries": [{"name": "p99", "query": P99, "max": 0.5}], "action": "Rollback"}
        world.kube.apply(move(guard=guard, throttle=FIXED))
        await world.until(lambda: status(world).get("progress", {}).get("partitionsDone") == 1, seconds=40)
        world.prometheus.values[P99] = 0.75

        await world.until(lambda: status(world)["state"] == "RolledBack", seconds=90)

        assert world.kafka.topics["orders"].replicas[:2] == [(1, 2, 3)] * 2
        assert (world.kafka.moves, world.kafka.throttled()) == ({}, {})
        assert world.kube.ready(MOVE)[:2] == ("False", "RolledBackByGuard")
        assert "query p99: 0.75 (maximum 0.5)" in world.kube.ready(MOVE)[2]
        assert reasons(world) == ["Running", "GuardBreached", "RollingBack", "RolledBackByGuard"]
        assert {server.token for server in world.prometheus.asked} == {"abc"}


@pytest.mark.parametrize(
    ("limit", "message"),
    [
        ({"maxOfflinePartitions": 0}, "offline partitions: 1 (maximum 0)"),
        ({"maxUnderMinIsrPartitions": 0}, "partitions under min.insync.replicas: 1 (maximum 0)"),
    ],
)
def test_a_cluster_that_is_unhealthy_before_the_start_blocks_the_start(limit: dict[str, int], message: str) -> None:
    """The whole cluster counts, not only the plan's topics."""

    @in_virtual_time
    async def story() -> None:
        async with running() as world:
            await orders(world)
            world.kafka.add("payments", [(1, 2, 3)], min_insync_replicas="3")
            world.kafka.out_of_sync = {(Partition("payments", 0), 3)}
            world.kafka.leaders[Partition("payments", 0)] = -1
            world.kube.apply(move(guard={**limit, "resumeAfterSeconds": 30}))
            await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardBreached", seconds=15)
            assert message in world.kube.ready(MOVE)[2]
            await world.run(60)
            assert world.kafka.submitted == []

            world.kafka.out_of_sync = set()
            del world.kafka.leaders[Partition("payments", 0)]

            await world.until(lambda: status(world)["state"] == "Completed", seconds=90)

    story()


@in_virtual_time
async def test_isr_shrinks_are_counted_between_two_readings() -> None:
    """The plan starts with the second reading; three replicas that leave ISRs within a minute exceed a limit of two."""
    async with running() as world:
        world.kafka.move_s = 200
        await orders(world)
        world.kafka.add("payments", [(1, 2, 3)] * 3)
        world.kube.apply(move(guard={"maxIsrShrinksPerMinute": 2}))
        await world.until(lambda: bool(world.kafka.moves), seconds=15)
        world.kafka.out_of_sync = {(Partition("payments", index), 3) for index in range(3)}

        await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardBreached", seconds=15)

        assert "ISR shrinks per minute: 3 (maximum 2)" in world.kube.ready(MOVE)[2]


@in_virtual_time
async def test_a_query_that_finds_nothing_is_reported_after_a_minute_and_once() -> None:
    """A condition and a warning event with the query and the reason; it never starts, and does when there is a value."""
    async with running() as world:
        have_prometheus(world)
        await orders(world)
        world.kube.apply(move(guard={"queries": [{"name": "p99", "query": P99, "max": 0.5}]}))
        await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardUnknown", seconds=75)
        assert world.kube.ready(MOVE)[2] == (
            "A limit of spec.guard cannot be checked: query p99: the query found nothing. "
            "No further move starts until it can be checked."
        )
        assert [(event.warning, event.message) for event in world.kube.events] == [(True, world.kube.ready(MOVE)[2])]
        writes = len(world.kube.writes)
        await world.run(300)
        assert (len(world.kube.writes), world.kafka.submitted) == (writes, [])

        world.prometheus.values[P99] = 0.1
        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)

        assert reasons(world) == ["GuardUnknown", "Running", "Completed"]


@pytest.mark.parametrize(
    ("server", "message"),
    [
        (None, "the Cluster has no spec.prometheus: add the address of the server."),
        (SERVER, "Secret shop/prometheus of spec.prometheus of the Cluster does not exist."),
        ({**SERVER, "url": "http://prometheus:9090"}, "a token is sent only over https"),
    ],
)
def test_a_server_that_cannot_be_used_is_named(server: dict[str, Any] | None, message: str) -> None:
    """No query is sent; the message has no token."""

    @in_virtual_time
    async def story() -> None:
        async with running() as world:
            if server is not None:
                world.kube.apply(raw_cluster(prometheus=server))
            if server != SERVER:
                world.kube.secrets["shop", "prometheus"] = {"token": b"abc"}
            await orders(world)
            world.kube.apply(move(guard={"queries": [{"name": "p99", "query": P99, "max": 0.5}]}))

            await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardUnknown", seconds=75)

            assert message in world.kube.ready(MOVE)[2]
            assert world.prometheus.asked == []

    story()


@in_virtual_time
async def test_in_another_namespace_a_guard_reads_neither_groups_nor_queries_nor_other_topics() -> None:
    """They have data of the whole cluster; the namespace may see its own topics."""
    async with running() as world:
        allow(world, {"namespaces": ["team-a"], "topicNames": ["orders"]})
        await orders(world)
        world.kafka.add("payments", [(1, 2, 3)])
        world.kafka.leaders[Partition("payments", 0)] = -1
        world.kafka.lags["billing"] = 0
        theirs = Key(kinds.REASSIGNMENT, "team-a", "theirs")
        lag = {"consumerLag": [{"group": "billing", "maxRecords": 100}]}
        world.kube.apply(tenant_move("theirs", plan=PLAN, guard={"maxOfflinePartitions": 0, **lag}))
        await world.until(lambda: world.kube.ready(theirs)[1] == "GuardUnknown", seconds=75)
        assert "lag of group billing: it is only read in namespace shop" in world.kube.ready(theirs)[2]

        world.kube.apply(tenant_move("theirs", plan=PLAN, guard={"maxOfflinePartitions": 0}))

        await world.until(lambda: status(world, theirs)["state"] == "Completed", seconds=60)
        assert world.kafka.gate.count("kafka describe_group_lags") == 0


@in_virtual_time
async def test_a_restarted_operator_knows_of_the_breach() -> None:
    """The quiet time goes on where it was; it is in the status."""
    async with running() as world:
        world.kafka.move_s = 20
        world.kafka.lags["billing"] = 10
        await orders(world)
        guard = {"consumerLag": [{"group": "billing", "maxRecords": 100}], "resumeAfterSeconds": 100}
        world.kube.apply(move(guard=guard))
        await world.until(lambda: bool(world.kafka.moves), seconds=15)
        world.kafka.lags["billing"] = 101
        await world.until(lambda: world.kube.ready(MOVE)[1] == "GuardBreached", seconds=15)
        world.kafka.lags["billing"] = 0
        await world.until(lambda: "quietTime" in status(world)["guard"], seconds=15)
        await world.run(50)
        await world.kill()
        world.start()
        await world.run(30)
        assert len(world.kafka.submitted) == 1

        await world.until(lambda: status(world)["state"] == "Completed", seconds=90)

        assert status(world)["guard"] == {"breaches": 1}
