"""Kinds are registered: the reconciler serves a kind that it has no code for."""

from __future__ import annotations

import asyncio
import json
import random
import time
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from reconciler.engine.cache import ResourceCache
from reconciler.engine.core import Core
from reconciler.kube.client import KubeClient
from reconciler.kube.login import configuration
from reconciler.kube.port import Kube
from reconciler.metrics import Metrics
from reconciler.names import FINALIZER, Key, Kind
from tests.reconciler.fake_kube import START, FakeKube, WatchEvent
from tests.reconciler.gate import Gate
from tests.reconciler.greetings import DEFINITION, GREETING, raw_greeting, register_greetings
from tests.reconciler.virtual_time import in_virtual_time

HELLO = Key(GREETING, "shop", "hello")
PATIENCE_S = 60.0


def core_of(kube: Kube, metrics: Metrics | None = None, *, namespaces: tuple[str, ...] = ()) -> Core:
    """A core with only the made-up kind."""
    core = Core(
        kube,
        ResourceCache(),
        metrics or Metrics(),
        namespaces=namespaces,
        resync_interval_s=100,
        clock=time.monotonic,
        rng=random.Random(1),
    )
    register_greetings(core, START)
    return core


@in_virtual_time
async def test_a_registered_kind_is_listed_watched_reconciled_and_released() -> None:
    """From the first list to the deletion, only by its registration."""
    kube, metrics = FakeKube(Gate()), Metrics()
    core = core_of(kube, metrics)
    handled: list[asyncio.Task[None]] = []

    def watched(event: WatchEvent) -> None:
        handled.append(asyncio.create_task(core.event_handler.handle(event.kind, event.type, event.object)))

    kube.apply(raw_greeting("listed"))
    await core.resync.once()
    await asyncio.sleep(1)
    assert kube.objects[HELLO]["status"]["text"] == "listed"
    assert kube.objects[HELLO]["metadata"]["finalizers"] == [FINALIZER]

    kube.watcher = watched
    kube.apply(raw_greeting("watched"))
    await asyncio.sleep(1)
    assert kube.objects[HELLO]["status"]["text"] == "watched"
    core.gauges.refresh()
    labels = {"kind": "Greeting", "ready": "True"}
    assert metrics.registry.get_sample_value("steward_resources_ready", labels) == 1

    kube.delete(HELLO)
    await asyncio.sleep(1)
    assert kube.objects == {}
    await asyncio.gather(*handled)
    await core.close()


@in_virtual_time
async def test_a_registered_kind_is_released_with_its_namespace() -> None:
    """An operator that is deleted with its namespace leaves no finalizer of any kind."""
    kube = FakeKube(Gate())
    core = core_of(kube)
    kube.apply(raw_greeting("hello"))
    await core.resync.once()
    await asyncio.sleep(1)
    await core.loop.close()
    kube.ending.add("shop")

    await core.teardown.remove_finalizers("shop")

    assert kube.objects[HELLO]["metadata"]["finalizers"] == []
    await core.close()


@in_virtual_time
async def test_a_kind_that_is_not_registered_is_ignored() -> None:
    """An owner may be of a kind that this process does not serve."""
    core = core_of(FakeKube(Gate()))

    await core.loop.submit(Key(Kind("Farewell"), "shop", "bye"))
    await core.event_handler.handle(Kind("Farewell"), "ADDED", raw_greeting("bye"))

    assert core.loop.idle
    assert list(core.kinds) == [GREETING]
    await core.close()


async def test_a_kind_cannot_be_registered_twice() -> None:
    """One of two reconcilers would never run."""
    core = core_of(FakeKube(Gate()))

    with pytest.raises(ValueError, match="kind Greeting is registered twice"):
        register_greetings(core, START)


@pytest.mark.kubernetes
async def test_a_registered_kind_is_reconciled_on_a_real_api_server(operators_api: KubernetesApi) -> None:
    """The same registration, with a definition that Kubernetes validates."""
    api, namespace = operators_api, "greetings"
    path = f"/apis/steward.dev/v1alpha1/namespaces/{namespace}/greetings"
    api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)
    api.send("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    await asyncio.to_thread(
        wait_until,
        lambda: api.send("POST", path, raw_greeting("hello", namespace=namespace)).status == 201,
        timeout_s=PATIENCE_S,
        what="the Greeting is created",
    )
    kube = KubeClient(await configuration(api.kubeconfig, None), Metrics())
    core = core_of(kube, namespaces=(namespace,))

    def greeting() -> dict[str, Any]:
        found = api.get(f"{path}/hello")
        return {} if found is None else json.loads(found)

    await core.resync.once()
    await asyncio.to_thread(
        wait_until, lambda: "status" in greeting(), timeout_s=PATIENCE_S, what="the Greeting is answered"
    )
    assert greeting()["status"]["text"] == "hello"
    assert greeting()["metadata"]["finalizers"] == [FINALIZER]

    api.send("DELETE", f"{path}/hello")
    await core.resync.once()
    await asyncio.to_thread(wait_until, lambda: greeting() == {}, timeout_s=PATIENCE_S, what="the Greeting is released")
    await core.close()
    await kube.close()
    api.send("DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/greetings.steward.dev")
