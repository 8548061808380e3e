"""StatefulSets, pods and nodes as the API server writes them, and the calls that change them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from kafka_operator.kube.pods import PodClient
from kafka_operator.resources.pods import drain_of, read_pod_set, selector_of
from reconciler.kube.client import KubeClient
from reconciler.metrics import Metrics
from tests.kafka_operator.cluster_pods import pod, pod_set

CREATED, TURNED, GOING = "2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:30:00Z"

SET: dict[str, Any] = {
    "metadata": {"name": "main-broker", "uid": "uid-set", "resourceVersion": "9", "generation": 4},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"b": "2", "a": "1"}},
        "updateStrategy": {"type": "OnDelete"},
    },
    "status": {"updateRevision": "rev-2", "currentRevision": "rev-1", "observedGeneration": 4},
}


def raw_pod(ordinal: int, *, ready: str | None = "True", owner: str = "uid-set", **metadata: Any) -> dict[str, Any]:
    """A pod of the StatefulSet."""
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": CREATED}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready, "lastTransitionTime": TURNED})
    return {
        "metadata": {
            "name": f"main-broker-{ordinal}",
            "uid": f"uid-{ordinal}",
            "resourceVersion": "7",
            "creationTimestamp": CREATED,
            "labels": {"controller-revision-hash": "rev-1"},
            "ownerReferences": [{"uid": owner, "controller": True}],
            **metadata,
        },
        "spec": {"nodeName": "node-a"} if ready is not None else {},
        "status": {"conditions": conditions},
    }


def test_a_statefulset_is_read_with_its_own_pods_by_id() -> None:
    """Of an orphan with the same labels nothing is known; ids follow from ordinals, past 9 too."""
    raws = [raw_pod(10), raw_pod(2), raw_pod(1, owner="another"), raw_pod(0)]

    found = read_pod_set(SET, raws, 100)

    assert (
        found.name,
        found.replicas,
        found.update_revision,
        found.on_delete,
        found.observed,
    ) == ("main-broker", 3, "rev-2", True, True)
    assert [item.node_id for item in found.pods] == [100, 102, 110]
    assert selector_of(SET) == {"a": "1", "b": "2"}


def test_since_when_a_pod_is_as_it_is() -> None:
    """The turn of Ready; the making of one that never was; the moment by which one that goes should be gone."""
    going = raw_pod(2, deletionTimestamp=GOING)
    found = read_pod_set(SET, [raw_pod(0), raw_pod(1, ready=None), going, raw_pod(3, ready="False")], 0)

    def hour(item: Any) -> tuple[bool, bool, datetime]:
        return item.ready, item.deleting, item.since

    assert [hour(item) for item in found.pods] == [
        (True, False, datetime(2026, 1, 1, 11, tzinfo=UTC)),
        (False, False, datetime(2026, 1, 1, 10, tzinfo=UTC)),
        (True, True, datetime(2026, 1, 1, 11, 30, tzinfo=UTC)),
        (False, False, datetime(2026, 1, 1, 11, tzinfo=UTC)),
    ]
    assert [item.node for item in found.pods[:2]] == ["node-a", ""]
    assert [item.unavailable for item in found.pods] == [False, True, True, True]


def test_a_statefulset_that_its_controller_has_not_seen_is_not_believed() -> None:
    """Its status describes the former template, or none."""
    unseen = {**SET, "metadata": {**SET["metadata"], "generation": 5}}
    rolling = {**SET, "spec": {"selector": {}, "updateStrategy": {"type": "RollingUpdate"}}, "status": {}}

    assert not read_pod_set(unseen, [], 0).observed
    found = read_pod_set(rolling, [], 0)
    assert (found.replicas, found.update_revision, found.on_delete, found.observed) == (1, "", False, False)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, None),
        ({"unschedulable": True}, "it is cordoned"),
        ({"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}, None),
        (
            {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
            "it has the taint ToBeDeletedByClusterAutoscaler",
        ),
        (
            {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]},
            "it has the taint karpenter.sh/disrupted",
        ),
    ],
)
def test_a_node_must_be_left_when_it_is_cordoned_or_marked_by_an_autoscaler(spec: dict[str, Any], why: str) -> None:
    """A taint that keeps others away is none of it."""
    assert why == drain_of({"spec": spec})


@pytest.fixture
async def api() -> AsyncIterator[tuple[list[tuple[str, str, Any]], PodClient]]:
    """An API server that takes everything, what it was asked, and a client of it."""
    asked: list[tuple[str, str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        asked.append((request.method, request.path_qs, await request.json() if request.can_read_body else None))
        return web.json_response({"items": []})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", take)
    async with TestServer(app) as server:
        client = KubeClient(Configuration(host=f"http://127.0.0.1:{server.port}"), Metrics())
        yield asked, PodClient(client)
        await client.close()


async def test_what_is_changed_must_be_as_it_was_seen(api: tuple[list[tuple[str, str, Any]], PodClient]) -> None:
    """A pod by uid and version, with its own grace; a scale by version."""
    asked, kube = api

    await kube.delete_pod("shop", pod(1))
    await kube.scale("shop", pod_set(), 4)

    seen = {"preconditions": {"uid": "uid-1", "resourceVersion": "1"}, "propagationPolicy": "Background"}
    scale = "/apis/apps/v1/namespaces/shop/statefulsets/main-broker/scale?fieldManager=steward-operator"
    assert asked == [
        ("DELETE", "/api/v1/namespaces/shop/pods/main-broker-1", seen),
        ("PATCH", scale, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 4}}),
    ]


async def test_what_is_read_is_asked_for_by_name_or_label(api: tuple[list[tuple[str, str, Any]], PodClient]) -> None:
    """Never all pods, never all nodes."""
    asked, kube = api

    await kube.get_stateful_set("shop", "main-broker")
    await kube.get_node("node-a")
    assert await kube.list_pods("shop", {"b": "2", "a": "1"}) == []

    assert [path for _, path, _ in asked] == [
        "/apis/apps/v1/namespaces/shop/statefulsets/main-broker",
        "/api/v1/nodes/node-a",
        "/api/v1/namespaces/shop/pods?labelSelector=a%3D1,b%3D2",
    ]
