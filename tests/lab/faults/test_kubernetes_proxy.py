"""The proxy of an API server, and the operator's client under its faults; the server is a fake."""

from __future__ import annotations

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import aiohttp
import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from kafka_operator import kinds
from lab.faults.kubernetes_proxy import KubernetesProxy, RequestFault, WatchFault, kubernetes_proxy
from lab.peers.kubernetes import KubernetesApi
from reconciler.kube.client import KubeClient
from reconciler.kube.port import ConflictError, KubeError, UnavailableError
from reconciler.metrics import Metrics
from reconciler.names import Key

ORDERS = Key(kinds.TOPIC, "shop", "orders")
EVENTS = [{"type": "ADDED", "object": {"metadata": {"name": name}}} for name in "abc"]


class Server:
    """Requests that reached it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.method)
        if "watch" not in request.query:
            return web.json_response({"kind": "Topic"})
        stream = web.StreamResponse()
        await stream.prepare(request)
        for event in EVENTS:
            await stream.write(json.dumps(event).encode() + b"\n")
        return stream


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of 127.0.0.1 with its key in one file."""
    folder = tmp_path_factory.mktemp("tls")
    program = shutil.which("openssl")
    assert program is not None
    subprocess.run(
        [
            program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem",
        ],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.fixture
async def passing(certificate: Path) -> AsyncIterator[tuple[Server, KubernetesProxy, KubeClient]]:
    """The server, the proxy before it, and a client of the proxy."""
    server = Server()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "certificate.pem", certificate / "key.pem")
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    api = SimpleNamespace(
        url=f"https://127.0.0.1:{runner.addresses[0][1]}", certificate_authority=certificate / "certificate.pem"
    )
    with kubernetes_proxy(cast("KubernetesApi", api)) as proxy:
        kube = KubeClient(Configuration(host=f"http://127.0.0.1:{proxy.port}"), Metrics())
        yield server, proxy, kube
        await kube.close()
    await runner.cleanup()


async def test_nothing_is_changed_without_a_rule(passing: tuple[Server, KubernetesProxy, KubeClient]) -> None:
    """It adds and removes nothing."""
    server, proxy, kube = passing

    assert await kube.patch_status(ORDERS, {"status": {}}) == {"kind": "Topic"}

    assert server.asked == ["PATCH"]
    assert [(call.method, call.watch) for call in proxy.calls] == [("PATCH", False)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "error", "effects"),
    [
        (RequestFault.CUT, UnavailableError, 0),
        (RequestFault.LOST, UnavailableError, 1),
        (RequestFault.DOUBLED, None, 2),
        (RequestFault.DELAYED, None, 1),
        (RequestFault.CONFLICT, ConflictError, 0),
        (RequestFault.ERROR, UnavailableError, 0),
        (RequestFault.UNAVAILABLE, UnavailableError, 0),
    ],
)
async def test_each_fault_has_its_effect(
    passing: tuple[Server, KubernetesProxy, KubeClient],
    fault: RequestFault,
    error: type[KubeError] | None,
    effects: int,
) -> None:
    """Before or after the effect, once or twice; and with the errors of the operator's port."""
    server, proxy, kube = passing
    proxy.rule = lambda _: fault

    if error is None:
        await kube.patch_status(ORDERS, {"status": {}})
    else:
        with pytest.raises(error):
            await kube.patch_status(ORDERS, {"status": {}})

    assert effects == len(server.asked)
    assert proxy.injected == {fault: 1}


@pytest.mark.slow
async def test_a_retry_after_header_is_respected(
    passing: tuple[Server, KubernetesProxy, KubeClient],
) -> None:
    """429 with Retry-After: 1."""
    server, proxy, kube = passing
    proxy.rule = lambda call: RequestFault.TOO_MANY if call.number == 1 else None
    began_s = asyncio.get_running_loop().time()

    await kube.patch_status(ORDERS, {"status": {}})

    assert asyncio.get_running_loop().time() - began_s >= 1
    assert server.asked == ["PATCH"]


@pytest.mark.parametrize(
    ("what", "seen"),
    [
        (None, ["a", "b", "c"]),
        (WatchFault.HIDE, ["a", "c"]),
        (WatchFault.DOUBLE, ["a", "b", "b", "c"]),
        (WatchFault.CUT, ["a"]),
        (WatchFault.GONE, ["a", "ERROR"]),
    ],
)
async def test_a_watch_loses_or_repeats_events_or_ends(
    passing: tuple[Server, KubernetesProxy, KubeClient], what: WatchFault | None, seen: list[str]
) -> None:
    """At the second event."""
    _, proxy, _ = passing
    proxy.watch_rule = lambda number, _: what if number == 2 else None
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{proxy.port}/topics?watch=true") as got,
    ):
        events = [json.loads(line) for line in (await got.read()).splitlines()]

    assert seen == [event["object"].get("metadata", {}).get("name", event["type"]) for event in events]
