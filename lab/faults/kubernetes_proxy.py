"""Proxy between a client and a real Kubernetes API server that injects faults, by rules and repeatably.

    faults of a request             refused with a status (Retry-After with 429), cut off before or after its effect, sent twice, delayed
    faults of a watch               cut, an event hidden, an event doubled, ended by 410

Its client uses plain HTTP on 127.0.0.1; its connection to the server uses TLS. Without a fault, requests and responses are unchanged. It
runs in its own thread with its own event loop, so that it serves blocking tests.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

import aiohttp
from aiohttp import web

from lab.processes.ports import free_port, release_port

START_TIMEOUT_S = 10.0
"""A listener starts in milliseconds."""

MAX_BODY_BYTES = 64 * 2**20
"""Larger than any request that an API server accepts."""

HOP_BY_HOP = {"connection", "content-encoding", "content-length", "host", "keep-alive", "transfer-encoding"}
"""Headers of one connection, and those that the libraries set themselves."""

GONE_EVENT = {
    "type": "ERROR",
    "object": {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Expired", "code": 410},
}
"""Error event of a watch whose resource version is too old."""


class RequestFault(StrEnum):
    """The fault of one request."""

    CUT = "cut"
    """The connection closes before the request reaches the server."""
    LOST = "lost"
    """The request takes effect, and the connection closes instead of the response."""
    DOUBLED = "doubled"
    """The request reaches the server twice; the client gets the second response."""
    DELAYED = "delayed"
    """The request is delayed by a second."""
    TOO_MANY = "429"
    """With Retry-After: 1."""
    CONFLICT = "409"
    ERROR = "500"
    UNAVAILABLE = "503"


class WatchFault(StrEnum):
    """The fault of one event of a watch."""

    HIDE = "hide"
    DOUBLE = "double"
    CUT = "cut"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, as rules see it."""

    number: int
    """From 1, in the order of arrival."""
    method: str
    path: str
    watch: bool


Rule = Callable[[Call], RequestFault | None]
WatchRule = Callable[[int, Mapping[str, Any]], WatchFault | None]
"""Called with the number of the event, from 1, and the event."""

STATUSES = {
    RequestFault.TOO_MANY: 429,
    RequestFault.CONFLICT: 409,
    RequestFault.ERROR: 500,
    RequestFault.UNAVAILABLE: 503,
}
REASONS = {429: "TooManyRequests", 409: "Conflict", 500: "InternalError", 503: "ServiceUnavailable"}


class ApiServer(Protocol):
    """The server behind the proxy: `lab.peers.kubernetes.KubernetesApi`."""

    url: str
    certificate_authority: Path

    def kubeconfig_for(self, user: str) -> Path:
        """Return the file with the credentials of this user."""
        ...


class KubernetesProxy:
    """A running proxy. `rule` and `watch_rule` can be set at any time; None injects no faults."""

    def __init__(self, api: ApiServer) -> None:
        self.port = free_port()
        self.rule: Rule | None = None
        self.watch_rule: WatchRule | None = None
        self.injected: Counter[str] = Counter()
        """Number of faults by kind."""
        self.calls: list[Call] = []
        self._api = api
        self._events = 0
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="kubernetes proxy", daemon=True)
        self._thread.start()
        if not self._listening.wait(START_TIMEOUT_S):
            raise TimeoutError("the proxy does not listen")

    def kubeconfig_for(self, user: str, folder: Path) -> Path:
        """Write and return a kubeconfig whose server is the proxy."""
        content = json.loads(self._api.kubeconfig_for(user).read_text(encoding="utf-8"))
        content["clusters"][0]["cluster"] = {"server": f"http://127.0.0.1:{self.port}"}
        path = folder / f"kubeconfig-{user}-by-proxy"
        path.touch(mode=0o600)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def close(self) -> None:
        """Stop the proxy; connections with pending responses are closed."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join(START_TIMEOUT_S)
        release_port(self.port)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:  # which cancels remaining watches
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        context = ssl.create_default_context(cafile=str(self._api.certificate_authority))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(
            connector=connector, timeout=aiohttp.ClientTimeout(total=None), auto_decompress=False
        ) as self._session:
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", self.port).start()
            self._listening.set()
            await self._ended.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        watch = request.query.get("watch", "") in {"true", "1"}
        call = Call(len(self.calls) + 1, request.method, request.path_qs, watch)
        self.calls.append(call)
        fault = None if self.rule is None else self.rule(call)
        body = await request.read()
        if fault is not None:
            self.injected[fault] += 1
        if fault in STATUSES:
            return _refusal(STATUSES[fault])
        if fault is RequestFault.CUT:
            return _closed(request)
        if fault is RequestFault.DELAYED:
            await asyncio.sleep(1)
        if fault in {RequestFault.DOUBLED, RequestFault.LOST}:
            async with self._ask(request, body) as answer:
                await answer.read()
            if fault is RequestFault.LOST:
                return _closed(request)
        async with self._ask(request, body) as answer:
            if watch:
                return await self._stream(request, answer)
            return web.Response(status=answer.status, headers=_passed(answer.headers), body=await answer.read())

    def _ask(self, request: web.Request, body: bytes) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        url = self._api.url + request.path_qs
        headers = _passed(request.headers) | {"Accept-Encoding": "identity"}
        return self._session.request(request.method, url, headers=headers, data=body or None)

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=_passed(answer.headers))
        await response.prepare(request)
        with contextlib.suppress(ConnectionResetError):  # a client may end its watch at any time
            await self._pass_on(answer, response)
        return response

    async def _pass_on(self, answer: aiohttp.ClientResponse, response: web.StreamResponse) -> None:
        """Write the events of a watch to the client, with their faults, until a fault or the server ends it."""
        buffer = b""
        async for chunk in answer.content.iter_any():
            *lines, buffer = (buffer + chunk).split(b"\n")
            for line in lines:
                what = self._on_watch(line)
                if what is WatchFault.GONE:
                    await response.write(json.dumps(GONE_EVENT).encode() + b"\n")
                if what in {WatchFault.CUT, WatchFault.GONE}:
                    return
                copies = 0 if what is WatchFault.HIDE else 2 if what is WatchFault.DOUBLE else 1
                await response.write((line + b"\n") * copies)

    def _on_watch(self, line: bytes) -> WatchFault | None:
        if self.watch_rule is None or not line:
            return None
        self._events += 1
        what = self.watch_rule(self._events, json.loads(line))
        if what is not None:
            self.injected[f"watch {what}"] += 1
        return what


def _passed(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}


def _refusal(status: int) -> web.Response:
    """Return an error response in the API server's format."""
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": status,
        "reason": REASONS[status],
        "message": f"the proxy answers {status}",
    }
    headers = {"Retry-After": "1"} if status == 429 else {}
    return web.json_response(body, status=status, headers=headers)


def _closed(request: web.Request) -> web.Response:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.close()
    return web.Response(status=500)


@contextlib.contextmanager
def kubernetes_proxy(api: ApiServer) -> Iterator[KubernetesProxy]:
    """Yield a running proxy; it is stopped at the end of the block."""
    proxy = KubernetesProxy(api)
    try:
        yield proxy
    finally:
        proxy.close()
