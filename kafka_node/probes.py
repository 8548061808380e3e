"""What probes and Prometheus ask over HTTP: `/metrics`, `/healthz` (the loop turns), `/readyz` (this process can serve).

`ProbeServer` has these three for any process. `/state` tells what the controller knows and has under way (`inside`), to callers on
this machine alone: it names topics, and whoever may scrape metrics need not know these.

A standby is ready: it is doing its work, which is to wait. Whether it holds the cluster is a metric, not a reason to be taken
out of service. Leaves out anything that a caller could change.
"""

from collections.abc import Callable, Iterable
from ipaddress import ip_address

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from controller_core.shell.inside import Document
from controller_core.shell.metrics import Metrics

MAX_REQUEST_BYTES = 4096
"""Nobody has anything to send here."""


class ProbeServer:
    """A small HTTP server for one process: the three paths, and `routes` besides."""

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
        """Listen; OSError when the address cannot be had."""
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
        why = self._ready()
        return web.Response(text="ok\n") if why is None else web.Response(status=503, text=f"{why}\n")


class Probes(ProbeServer):
    """The controller's, with `/state`."""

    def __init__(
        self,
        metrics: Metrics,
        before_scrape: Callable[[], None],
        ready: Callable[[], str | None],
        inside: Callable[[str | None], Document | None],
    ) -> None:
        """`ready` returns why the process is not ready, or None; `inside` tells its state, or that of the topic named."""
        self._inside = inside
        state = web.get("/state", self._serve_state)
        super().__init__(metrics.registry, ready, before_scrape=before_scrape, routes=[state])

    async def _serve_state(self, request: web.Request) -> web.Response:
        if not is_this_machine(request.remote):
            return web.Response(status=403, text="the state is told to callers on this machine alone\n")
        topic = request.query.get("topic")
        document = self._inside(topic)
        if document is None:
            return web.Response(status=404, text=f"there is no topic {topic}, or another process holds the cluster\n")
        return web.json_response(document)


def is_this_machine(remote: str | None) -> bool:
    """Whether an address is one of this machine's own."""
    try:
        return remote is not None and ip_address(remote).is_loopback
    except ValueError:
        return False
