"""HTTP endpoints for probes and Prometheus without an HTTP library, for processes that are to stay small.

`/metrics`, `/healthz` (the event loop runs) and `/readyz` (this process can serve), as in `probes.py`. Each connection has one request and
one response, and nothing can be changed through them.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

MAX_HEAD_BYTES = 8192
"""Request line and headers; browsers and Prometheus send less than a kilobyte."""
TIMEOUT_S = 5.0
"""Time for a request and its response."""
MAX_CONNECTIONS = 32
"""Open connections; further ones are closed at once. Two probes and one or two scrapers come at a time."""
TEXT = "text/plain; charset=utf-8"


class LightProbeServer:
    """Serves the three paths. `ready` returns why the process is not ready, or None."""

    def __init__(self, registry: CollectorRegistry, ready: Callable[[], str | None]) -> None:
        self._registry = registry
        self._ready = ready
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.StreamWriter] = set()

    @property
    def port(self) -> int:
        """The port of the listening socket."""
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def listen(self, host: str, port: int) -> None:
        """Listen; raises OSError when the address is not available."""
        self._server = await asyncio.start_server(self._serve, host, port, limit=MAX_HEAD_BYTES)

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._server is not None:
            self._server.close()
        for writer in list(self._connections):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections.add(writer)
        try:
            async with asyncio.timeout(TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(self._response(head))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            self._connections.discard(writer)
            writer.close()

    def _response(self, head: bytes) -> bytes:
        method, target, *_ = [*head.split(b"\r\n", 1)[0].split(b" "), b"", b""]
        path = target.partition(b"?")[0]
        status, content_type, body = HTTPStatus.OK, TEXT, b"ok\n"
        if method not in {b"GET", b"HEAD"}:
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, b"only GET is supported\n"
        elif path == b"/metrics":
            content_type, body = CONTENT_TYPE_LATEST, generate_latest(self._registry)
        elif path == b"/readyz":
            reason = self._ready()
            if reason is not None:
                status, body = HTTPStatus.SERVICE_UNAVAILABLE, f"{reason}\n".encode()
        elif path != b"/healthz":
            status, body = HTTPStatus.NOT_FOUND, b"there are /metrics, /healthz and /readyz\n"
        lines = (
            f"HTTP/1.1 {status.value} {status.phrase}",
            f"Content-Type: {content_type}",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        return "".join(f"{line}\r\n" for line in (*lines, "")).encode() + (b"" if method == b"HEAD" else body)
