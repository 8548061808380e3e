"""Pods rolled, drained and scaled by the engine, over fakes and virtual time."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from kafka_operator import kinds
from reconciler.kube.port import RefusedError, UnavailableError
from reconciler.names import Key
from tests.kafka_operator.fake_pods import START_S, STOP_S, FakePods
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time

MAIN = Key(kinds.CLUSTER, "shop", "main")
ONE_POD_S = STOP_S + START_S + 3
"""Time of a pod's replacement, with the polls before and after it."""


def declared(replicas: int = 3) -> dict[str, Any]:
    """Cluster `main` with pods of brokers, ids from 1."""
    return raw_cluster(brokers={"statefulSet": "main-broker", "firstId": 1, "replicas": replicas})


@contextlib.asynccontextmanager
async def settled_pods(replicas: int = 3) -> AsyncIterator[tuple[World, FakePods]]:
    """A Cluster whose pods are settled, with topic `orders`, RF 3 and min ISR 2; the operator runs."""
    async with running(cluster=False) as world:
        await world.kill()
        pods = world.pods = FakePods(world.kafka, replicas)
        world.kafka.add("orders", [(1, 2, 3), (2, 3, 1)], min_insync_replicas="2")
        world.kube.apply(declared(replicas))
        world.start()
        await world.until(lambda: condition(world, "Settled")[0] == "True")
        yield world, pods


def condition(world: World, name: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition of `main`."""
    for item in world.kube.objects[MAIN].get("status", {}).get("conditions", ()):
        if item["type"] == name:
            return item["status"], item["reason"], item["message"]
    return "", "", ""


def reasons(world: World) -> list[str]:
    """The reasons of all events."""
    return [event.reason for event in world.kube.events]


@in_virtual_time
async def test_a_roll_replaces_each_pod_once_one_at_a_time_the_controller_last() -> None:
    """OnDelete updates rolled one broker at a time."""
    async with settled_pods() as (world, pods):
        pods.roll()

        took_s = await world.until(lambda: pods.revisions == ["rev-2"] * 3)
        await world.until(lambda: condition(world, "Settled")[0] == "True")

        assert took_s < 3 * ONE_POD_S + 5
        assert pods.deleted == ["main-broker-1", "main-broker-2", "main-broker-0"]
        assert pods.max_not_ready == 1
        await world.until(lambda: reasons(world) == ["Rolling", "Rolling", "Rolling", "Settled"])


@in_virtual_time
async def test_a_stateful_set_without_the_clusters_label_is_neither_scaled_nor_rolled() -> None:
    """Its owner permits it with steward.dev/cluster; a name in a Cluster alone gives no right to pods of others."""
    for labels in ({}, {"steward.dev/cluster": "another"}):
        async with settled_pods() as (world, pods):
            pods.labels = labels
            pods.roll()
            world.kube.apply(declared(5))
            await world.run(30)

            assert (pods.deleted, pods.replicas) == ([], 3)
            status, reason, message = condition(world, "Settled")
            assert (status, reason) == ("Unknown", "NotLabelled")
            assert "kubectl label statefulset main-broker steward.dev/cluster=main" in message
            assert reasons(world)[-1] == "NotLabelled"

            pods.labels = {"steward.dev/cluster": "main"}
            await world.until(lambda p=pods: p.replicas == 5)
            await world.until(lambda w=world: condition(w, "Settled")[0] == "True")
            assert len(pods.deleted) == 3


@in_virtual_time
async def test_at_rest_nothing_is_written_and_kafka_is_asked_for_no_partition() -> None:
    """A large cluster's metadata is asked for only when a pod is due."""
    async with settled_pods() as (world, _):
        await world.run(5)
        world.kube.writes.clear()
        world.gate.calls.clear()
        await world.run(120)

        assert world.kube.writes == []
        assert world.gate.count("kafka describe_health") == 0


@in_virtual_time
async def test_a_roll_goes_on_after_the_operator_is_killed() -> None:
    """And never has two pods away."""
    async with settled_pods() as (world, pods):
        pods.roll()
        for _ in range(6):
            await world.run(3)
            await world.kill()
            await world.run(1)
            world.start()

        await world.until(lambda: pods.revisions == ["rev-2"] * 3)

        assert (len(pods.deleted), pods.max_not_ready) == (3, 1)


@pytest.mark.shows("F34")
@in_virtual_time
async def test_a_pod_leaves_a_node_that_is_cordoned() -> None:
    """The operator sees the cordoned node and deletes the pod; no webhook."""
    async with settled_pods() as (world, pods):
        pods.cordon(1)

        took_s = await world.until(lambda: bool(pods.deleted))
        await world.run(30)

        assert took_s < 6
        assert (pods.deleted, reasons(world)) == (["main-broker-1"], ["Draining", "Settled"])
        assert pods.pods[1]["spec"]["nodeName"] != "node-1"


@in_virtual_time
async def test_a_pod_that_never_starts_stops_the_roll_and_a_corrected_template_continues_it() -> None:
    """Stuck is a condition and an event; the next revision replaces the stuck pod first."""
    async with settled_pods() as (world, pods):
        pods.starts = False
        pods.roll()
        await world.until(lambda: "PodStuck" in reasons(world), seconds=400)
        assert (pods.deleted, condition(world, "Settled")[1]) == (["main-broker-1"], "PodStuck")

        pods.starts = True
        pods.roll()
        await world.until(lambda: pods.revisions == ["rev-3"] * 3)

        assert pods.deleted == ["main-broker-1", "main-broker-1", "main-broker-2", "main-broker-0"]


@in_virtual_time
async def test_scaling_in_waits_until_the_broker_holds_nothing() -> None:
    """Refused while it holds replicas, which are listed."""
    async with settled_pods(4) as (world, pods):
        world.kafka.add("late", [(3, 4)])
        world.kube.apply(declared(3))
        await world.until(lambda: "ScaleInRefused" in reasons(world))
        assert (pods.replicas, "broker 4 holds late-0." in condition(world, "Scaled")[2]) == (4, True)
        assert reasons(world) == ["ScaleInRefused"]

        world.kafka.topics["late"].replicas = [(3, 1)]
        await world.until(lambda: pods.replicas == 3)

        await world.until(lambda: sorted(pods.pods) == [0, 1, 2])
        assert condition(world, "Scaled")[:2] == ("True", "AsDeclared")


@in_virtual_time
async def test_scaling_out_is_done_at_once() -> None:
    """And the new pod is waited for."""
    async with settled_pods() as (world, pods):
        world.kube.apply(declared(5))

        await world.until(lambda: condition(world, "Settled")[0] == "False")
        await world.until(lambda: pods.revisions == ["rev-1"] * 5)


@in_virtual_time
async def test_a_statefulset_scaled_in_behind_our_back_is_set_back() -> None:
    """`kubectl scale statefulset`: the operator cannot refuse it, and undoes it."""
    async with settled_pods() as (world, pods):
        pods.set_replicas(2)

        await world.until(lambda: pods.replicas == 3, seconds=6)
        await world.until(lambda: pods.revisions == ["rev-1"] * 3)


@in_virtual_time
async def test_a_chart_that_scales_out_the_statefulset_first_makes_each_pod_once() -> None:
    """`helm upgrade` changes the Cluster last."""
    async with settled_pods() as (world, pods):
        pods.start_s = 10
        pods.set_replicas(5)
        await world.until(lambda: condition(world, "Scaled")[1] == "WaitingForPods", seconds=6)
        world.kube.apply(declared(5))

        await world.until(lambda: pods.revisions == ["rev-1"] * 5)

        assert pods._created == 5


@in_virtual_time
async def test_without_rights_or_with_an_api_server_away_nothing_is_done() -> None:
    """The condition names the right; an API server that is unavailable is tried again."""
    async with settled_pods() as (world, pods):
        pods.failures.append(RefusedError("pods is forbidden"))
        await world.until(lambda: condition(world, "Settled")[1] == "NotAllowed")
        pods.failures.append(UnavailableError("503"))
        await world.until(lambda: condition(world, "Settled")[0] == "True")

        await world.until(lambda: reasons(world) == ["NotAllowed", "Settled"])


@in_virtual_time
async def test_an_operator_that_manages_no_pods_reports_it() -> None:
    """It was started without --pods."""
    async with running(cluster=False) as world:
        world.kube.apply(declared())
        await world.until(lambda: condition(world, "Settled")[1] == "SwitchedOff")

        world.kube.apply(raw_cluster())
        await world.until(lambda: condition(world, "Settled")[0] == "")
