"""The health script for Argo CD, run on statuses that the operator wrote, by Lua 5.1, the version that Argo CD interprets."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import lupa.lua51
import pytest
import yaml

from kafka_operator import kinds
from reconciler.names import PAUSE, Key
from spark_operator import kinds as spark_kinds
from tests.kafka_operator.live import ROOT
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import APPLICATION
from tests.spark_operator.makers import raw_schedule, raw_spark, spark_running

ORDERS = Key(kinds.TOPIC, "shop", "orders")
MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
MAIN = Key(kinds.CLUSTER, "shop", "main")


@cache
def script() -> str:
    """The script for all kinds of the group."""
    raw = yaml.safe_load((ROOT / "examples" / "argocd" / "argocd-cm.yaml").read_text(encoding="utf-8"))
    (rule,) = yaml.safe_load(raw["data"]["resource.customizations"]).items()
    assert rule[0] == "steward.dev/*"
    found: str = rule[1]["health.lua"]
    return found


def health(resource: Mapping[str, Any]) -> str:
    """What Argo CD shows for a resource, which is the global `obj` of its script; a health always has a message."""
    lua = lupa.lua51.LuaRuntime()
    lua.globals().obj = lua.table_from(resource, recursive=True)
    found = lua.execute(script())
    assert found["message"]
    return str(found["status"])


def test_a_resource_that_the_operator_has_not_seen_is_progressing() -> None:
    """By the default of `status`, and without any."""
    raw = raw_topic()
    raw["metadata"]["generation"] = 1

    assert health(raw) == "Progressing"
    assert health({**raw, "status": {"observedGeneration": -1}}) == "Progressing"


@pytest.mark.shows("F40")
@in_virtual_time
async def test_argo_cd_shows_topics_healthy_degraded_progressing_and_suspended() -> None:
    """Declared, rejected by the brokers, edited while the cluster is away, paused."""
    async with running() as world:
        world.kube.apply(raw_topic())
        world.kube.apply(raw_topic("bad", config={"no.such": "1"}))
        await world.run(5)
        assert health(world.kube.objects[MAIN]) == health(world.kube.objects[ORDERS]) == "Healthy"
        assert health(world.kube.objects[Key(kinds.TOPIC, "shop", "bad")]) == "Degraded"

        world.kube.annotate(ORDERS, PAUSE, "true")
        await world.run(5)
        assert health(world.kube.objects[ORDERS]) == "Suspended"

        world.kube.annotate(ORDERS, PAUSE, None)
        world.kafka.reachable = False
        world.kube.apply(raw_topic(partitions=8))
        await world.run(60)
        assert health(world.kube.objects[ORDERS]) == health(world.kube.objects[MAIN]) == "Progressing"


@in_virtual_time
async def test_argo_cd_shows_a_reassignment_suspended_for_approval_progressing_and_healthy() -> None:
    """A proposal waits for a person, as a suspended Job does, and so do the partitions after a canary."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)] * 2)
        spec = {"plan": raw_plan(p0=[2, 3, 4], p1=[2, 3, 4]), "approval": "Required"}
        canary = {"partitions": 1, "soakSeconds": 0}
        world.kube.apply(raw_reassignment(**spec, canary=canary))
        await world.run(5)
        assert health(world.kube.objects[MOVE]) == "Suspended"

        digest = world.kube.objects[MOVE]["status"]["digest"]
        world.kube.apply(raw_reassignment(**spec, canary=canary, approvedDigest=digest))
        await world.until(lambda: world.kube.objects[MOVE]["status"]["state"] == "Running")
        assert health(world.kube.objects[MOVE]) == "Progressing"

        await world.until(lambda: world.kube.ready(MOVE)[1] == "CanaryApprovalRequired")
        assert health(world.kube.objects[MOVE]) == "Suspended"

        canary = {**canary, "approvedDigest": digest}
        world.kube.apply(raw_reassignment(**spec, canary=canary, approvedDigest=digest))
        await world.run(60)
        assert health(world.kube.objects[MOVE]) == "Healthy"


@in_virtual_time
async def test_argo_cd_shows_spark_applications_and_schedules() -> None:
    """Runs to its end; a suspended one and a suspended schedule wait for a person."""
    async with spark_running() as world:
        world.kube.apply(raw_cluster())
        world.kube.apply(raw_spark())
        world.kube.apply(raw_spark("later", suspend=True))
        world.kube.apply(raw_schedule(suspend=True))
        await world.until(lambda: world.status().get("state") == "Running")
        assert health(world.kube.objects[APPLICATION]) == "Progressing"

        await world.run(60)
        assert health(world.kube.objects[APPLICATION]) == "Healthy"
        assert health(world.kube.objects[Key(spark_kinds.SPARK_APPLICATION, "shop", "later")]) == "Suspended"
        assert (
            health(world.kube.objects[Key(spark_kinds.SCHEDULED_SPARK_APPLICATION, "shop", "nightly")]) == "Suspended"
        )
