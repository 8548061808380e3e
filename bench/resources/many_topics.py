"""Many Topics from a user's point of view: created all at once, until each is marked as done.

It sends plain requests to a real API server, many at a time, because kubectl limits its own rate; a watch reports when the last is
done.
"""

import asyncio
import json
import re
import ssl
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import aiohttp

from lab.peers.kubernetes import KubernetesApi

PARALLEL = 16
"""Concurrent creations: more do not make a busy API server faster."""

PATIENCE_S = 1800.0
"""For ten thousand of them on a slow machine."""

CHANGES = frozenset({"PATCH", "PUT", "DELETE", "APPLY"})

TOPICS = "/apis/steward.dev/v1alpha1/namespaces/{}/topics"

Done = Callable[[dict[str, Any]], bool]


def is_ready(topic: dict[str, Any]) -> bool:
    """Return whether a Topic is Ready."""
    conditions = topic.get("status", {}).get("conditions", ())
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def create_and_wait(api: KubernetesApi, namespace: str, names: Iterable[str], done: Done) -> float:
    """Create Topics of one partition and return the seconds from the first request to the last that is done."""
    return asyncio.run(_create_and_wait(api, namespace, list(names), done))


def writes(api: KubernetesApi, resource: str = "topics", verbs: Collection[str] = CHANGES) -> float:
    """Return how many changes of a kind of resource the API server itself has counted; creations are none by default."""
    text = (api.get("/metrics") or b"").decode()
    total = 0.0
    for labels, value in re.findall(r"^apiserver_request_total\{([^}]*)\} (\S+)$", text, re.MULTILINE):
        found = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        if found["resource"] == resource and found["verb"] in verbs:
            total += float(value)
    return total


async def _create_and_wait(api: KubernetesApi, namespace: str, names: list[str], done: Done) -> float:
    kubeconfig = json.loads(api.kubeconfig.read_text(encoding="utf-8"))
    headers = {"Authorization": f"Bearer {kubeconfig['users'][0]['user']['token']}"}
    context = ssl.create_default_context(cafile=str(api.certificate_authority))
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    async with aiohttp.ClientSession(api.url, headers=headers, connector=connector, timeout=timeout) as session:
        path = TOPICS.format(namespace)
        async with session.get(f"{path}?limit=1") as listed:
            version = (await listed.json())["metadata"]["resourceVersion"]
        waiting = asyncio.create_task(_wait(session, path, version, set(names), done))
        began_s = time.perf_counter()
        places = asyncio.Semaphore(PARALLEL)
        await asyncio.gather(*(_create(session, path, name, places) for name in names))
        async with asyncio.timeout(PATIENCE_S):
            await waiting
        return time.perf_counter() - began_s


async def _create(session: aiohttp.ClientSession, path: str, name: str, places: asyncio.Semaphore) -> None:
    body = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": {"clusterRef": {"name": "main"}, "partitions": 1, "replicationFactor": 1},
    }
    async with places, session.post(path, json=body) as answer:
        answer.raise_for_status()


async def _wait(session: aiohttp.ClientSession, path: str, version: str, names: set[str], done: Done) -> None:
    """Wait until all are done. An API server may end a watch at any time, and ends that of a slow reader; then all are listed."""
    while True:
        await _follow(session, f"{path}?watch=true&resourceVersion={version}", names, done)
        if not names:
            return
        async with session.get(path) as listed:
            listed.raise_for_status()
            found = await listed.json()
        version = found["metadata"]["resourceVersion"]
        names.difference_update(topic["metadata"]["name"] for topic in found["items"] if done(topic))


async def _follow(session: aiohttp.ClientSession, url: str, names: set[str], done: Done) -> None:
    """Follow a watch until all are done, or it ends."""
    buffer = b""
    async with session.get(url) as stream:
        stream.raise_for_status()
        async for chunk in stream.content.iter_any():
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                topic = json.loads(line)["object"]
                if done(topic):
                    names.discard(topic["metadata"]["name"])
            if not names:
                return
