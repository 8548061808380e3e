"""What probes and Prometheus ask over HTTP: `/metrics`, `/healthz` (the loop turns), `/readyz` (this process can serve).

A standby is ready: it is doing its work, which is to wait. Whether it holds the cluster is a metric, not a reason to be taken
out of service. Leaves out anything that a caller could change.
"""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from controller_core.shell.metrics import Metrics

MAX_REQUEST_BYTES = 4096
"""Nobody has anything to send here."""


class Probes:
    """A small HTTP server."""

    def __init__(self, metrics: Metrics, before_scrape: Callable[[], None], ready: Callable[[], str | None]) -> None:
        """`ready` returns why the process is not ready, or None."""
        self._metrics = metrics
        self._before_scrape = before_scrape
        self._ready = ready
        application = web.Application(client_max_size=MAX_REQUEST_BYTES)
        application.add_routes(
            [
                web.get("/metrics", self._serve_metrics),
                web.get("/healthz", self._serve_health),
                web.get("/readyz", self._serve_readiness),
            ]
        )
        self._runner = web.AppRunner(application, access_log=None)

    async def listen(self, host: str, port: int) -> None:
        """Listen; OSError when the address cannot be had."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port).start()

    async def close(self) -> None:
        """Stop listening."""
        await self._runner.cleanup()

    async def _serve_metrics(self, _: web.Request) -> web.Response:
        self._before_scrape()
        return web.Response(body=generate_latest(self._metrics.registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def _serve_health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _serve_readiness(self, _: web.Request) -> web.Response:
        why = self._ready()
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")
