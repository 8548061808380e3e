"""The controller's HTTP endpoints: those of every process (kafka_node.probes), and `/state`.

`/state` shows what the controller knows and has under way (`inside`), to callers on this machine only: it names topics, and a process
that may scrape metrics need not know these.

A standby is ready: it is doing its work, which is to wait. Whether it holds the cluster is a metric, not a reason to be taken
out of service.
"""

from collections.abc import Callable
from ipaddress import ip_address

from aiohttp import web

from controller_core.shell.inside import Document
from controller_core.shell.metrics import Metrics
from kafka_node.probes import ProbeServer


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
