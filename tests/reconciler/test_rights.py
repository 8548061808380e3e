"""Required rights, and the error for a missing one: the operator logs the verb and the resource, and exits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio.client import Configuration

from kafka_operator.rights import needed_rights
from kafka_operator.settings import OperatorSettings
from reconciler import rights as rights_module
from reconciler.kube.client import KubeClient
from reconciler.metrics import Metrics
from reconciler.rights import MissingRightsError, Right, require_rights


@pytest.fixture
async def reviewer() -> AsyncIterator[tuple[list[dict[str, Any]], KubeClient]]:
    """An API server that allows everything but to delete pods; what it was asked."""
    asked: list[dict[str, Any]] = []

    async def review(request: web.Request) -> web.Response:
        body = await request.json()
        assert body["kind"] == "SelfSubjectAccessReview"
        attributes = body["spec"]["resourceAttributes"]
        asked.append(attributes)
        return web.json_response(
            {"status": {"allowed": (attributes["verb"], attributes["resource"]) != ("delete", "pods")}}
        )

    app = web.Application()
    app.router.add_post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    async with TestServer(app) as server:
        kube = KubeClient(Configuration(host=f"http://127.0.0.1:{server.port}"), Metrics())
        yield asked, kube
        await kube.close()


def test_only_what_is_switched_on_is_needed() -> None:
    """No right on pods or nodes without --pods, none on nodes without --drain."""

    def names(**settings: Any) -> set[str]:
        return {right.resource for right in needed_rights(OperatorSettings(**settings))}

    own = {"clusters", "topics", "reassignments", "elections", "events", "configmaps"}
    assert own == names() == names(drain=True)
    assert names(pods=True) == own | {"statefulsets", "pods"}
    assert names(pods=True, drain=True) == own | {"statefulsets", "pods", "nodes"}
    assert names(own_namespace="kafka") == own | {"namespaces"}
    assert names(own_namespace="kafka", lease="operator") == own | {"namespaces", "leases"}


def test_leases_are_asked_for_by_name() -> None:
    """Each shard's; a Lease of another name may belong to others."""
    settings = OperatorSettings(own_namespace="kafka", lease="operator", shards=2)

    found = {(right.verb, right.name) for right in needed_rights(settings) if right.resource == "leases"}
    names = ("operator-0-of-2", "operator-1-of-2")
    assert found == {("create", "")} | {(verb, name) for verb in ("get", "patch") for name in names}


def test_rights_are_needed_in_each_namespace() -> None:
    """A Role in each; nodes are of none."""
    rights = needed_rights(OperatorSettings(namespaces=("a", "b"), pods=True, drain=True))

    assert {right.namespace for right in rights if right.resource != "nodes"} == {"a", "b"}
    assert [right for right in rights if right.resource == "nodes"] == [Right("get", "", "nodes")]
    assert {right.namespace for right in needed_rights(OperatorSettings())} == {None}


async def test_a_missing_right_is_named(reviewer: tuple[list[dict[str, Any]], KubeClient]) -> None:
    """The verb, the resource, the place; nothing that is there."""
    asked, kube = reviewer
    rights = needed_rights(OperatorSettings(namespaces=("shop",), pods=True))

    with pytest.raises(MissingRightsError) as raised:
        await require_rights(kube, rights)

    assert str(raised.value) == "missing permissions (RBAC): delete on pods in namespace shop"
    assert len(rights) == len(asked)
    scale = {"verb": "patch", "group": "apps", "resource": "statefulsets", "subresource": "scale", "namespace": "shop"}
    assert {**scale, "name": ""} in asked


async def test_a_review_that_is_not_answered_is_asked_for_again_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """An API server that fails every fourth request would else never answer all of them in one go."""
    monkeypatch.setattr(rights_module, "RETRY_S", 0.01)
    asked: list[str] = []

    async def review(request: web.Request) -> web.Response:
        asked.append(str(await request.json()))
        if len(asked) % 4 == 0:
            return web.json_response({}, status=503)
        return web.json_response({"status": {"allowed": True}})

    app = web.Application()
    app.router.add_post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", review)
    async with TestServer(app) as server:
        kube = KubeClient(Configuration(host=f"http://127.0.0.1:{server.port}"), Metrics())
        rights = needed_rights(OperatorSettings())
        await require_rights(kube, rights)
        await kube.close()

    assert len(rights) == len(set(asked))
    assert len(asked) < 2 * len(rights)


async def test_with_all_rights_nothing_is_reported(reviewer: tuple[list[dict[str, Any]], KubeClient]) -> None:
    """It goes on."""
    await require_rights(reviewer[1], needed_rights(OperatorSettings()))


@pytest.mark.parametrize(
    ("right", "message"),
    [
        (Right("patch", "apps", "statefulsets", "scale", "a"), "patch on statefulsets.apps/scale in namespace a"),
        (Right("list", "", "pods"), "list on pods in all namespaces"),
        (Right("get", "", "nodes"), "get on nodes"),
        (
            Right("get", "coordination.k8s.io", "leases", namespace="a", name="x"),
            "get on leases.coordination.k8s.io x in namespace a",
        ),
    ],
)
def test_a_right_is_written_as_kubectl_names_resources(right: Right, message: str) -> None:
    """`kubectl auth can-i` takes the same words."""
    assert message == str(right)
