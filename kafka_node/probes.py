"""HTTP endpoints for probes and Prometheus: `/metrics`, `/healthz` (the event loop runs), `/readyz` (this process can serve).

Nothing can be changed through them.
"""

from collections.abc import Callable, Iterable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

MAX_REQUEST_BYTES = 4096
"""Requests have no body."""


class ProbeServer:
    """A small HTTP server for one process: the three paths, and `routes` in addition."""

    def __init__(
        self,
        registry: CollectorRegistry,
        ready: Callable[[], str | None],
        *,
        before_scrape: Callable[[], None] | None = None,
        routes: Iterable[web.RouteDef] = (),
    ) -> None:
        """`ready` returns why the process is not ready, or None."""
        self._registry = registry
        self._ready = ready
        self._before_scrape = before_scrape
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.add_routes(
            [
                web.get("/metrics", self._serve_metrics),
                web.get("/healthz", self._serve_health),
                web.get("/readyz", self._serve_readiness),
                *routes,
            ]
        )
        self._runner = web.AppRunner(application, access_log=None)

    async def listen(self, host: str, port: int) -> None:
        """Listen; raises OSError when the address is not available."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        if self._before_scrape is not None:
            self._before_scrape()
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _serve_health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _serve_readiness(self, _: web.Request) -> web.Response:
        reason = self._ready()
        return web.Response(text="ok\n") if reason is None else web.Response(status=503, text=f"{reason}\n")
