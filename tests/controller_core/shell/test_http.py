"""HTTP endpoints for probes, Prometheus and /state."""

from collections.abc import AsyncIterator

import aiohttp
import pytest

from controller_core.shell.metrics import Metrics
from controller_core.shell.process import Probes, is_this_machine
from controller_core.views.debug_state import Document


class World:
    """Probes on a free port."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.why_not_ready: str | None = None
        self.scrapes = 0
        self.probes = Probes(self.metrics, self._scrape, lambda: self.why_not_ready, self._inside)

    def _scrape(self) -> None:
        self.scrapes += 1

    def _inside(self, topic: str | None) -> Document | None:
        return {None: {"active": True}, "orders": {"topic": "orders"}}.get(topic)

    @property
    def port(self) -> int:
        """Their port."""
        return int(self.probes._runner.addresses[0][1])

    async def ask(self, path: str, method: str = "GET", data: bytes | None = None) -> tuple[int, str, str]:
        """Send a request; returns status, content type and text."""
        async with aiohttp.ClientSession() as client:
            url = f"http://127.0.0.1:{self.port}{path}"
            async with client.request(method, url, data=data) as response:
                return response.status, response.content_type, await response.text()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """Probes that listen."""
    world = World()
    await world.probes.listen("127.0.0.1", 0)
    yield world
    await world.probes.close()


async def test_a_process_that_answers_is_healthy(world: World) -> None:
    """The event loop runs."""
    assert await world.ask("/healthz") == (200, "text/plain", "ok\n")


async def test_readiness_contains_the_reason(world: World) -> None:
    """503 takes a pod out of service; the text is for the user."""
    assert await world.ask("/readyz") == (200, "text/plain", "ok\n")
    world.why_not_ready = "no session with ZooKeeper"

    assert await world.ask("/readyz") == (503, "text/plain", "no session with ZooKeeper\n")


async def test_metrics_are_computed_for_each_scrape(world: World) -> None:
    """Passes over all columns belong to a scrape, not to a decision."""
    status, content_type, text = await world.ask("/metrics")

    assert (status, content_type, world.scrapes) == (200, "text/plain", 1)
    assert "kafka_controller_kafkacontroller_activecontrollercount 0.0" in text


async def test_the_state_is_served_as_json(world: World) -> None:
    """The whole state, or that of one topic."""
    assert await world.ask("/state") == (200, "application/json", '{"active": true}')
    assert await world.ask("/state?topic=orders") == (200, "application/json", '{"topic": "orders"}')


async def test_an_unknown_topic_is_not_found(world: World) -> None:
    """The name is misspelled, or the process is a standby."""
    status, _, text = await world.ask("/state?topic=order")

    assert (status, text) == (404, "topic order does not exist, or another process is the active controller\n")


@pytest.mark.parametrize(
    ("remote", "is_served"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("10.0.0.7", False), (None, False), ("unknown", False)],
)
def test_the_state_is_served_to_local_callers_only(remote: str | None, is_served: bool) -> None:
    """It names topics, which a process that scrapes metrics need not know."""
    assert is_served is is_this_machine(remote)


async def test_only_get_requests_of_known_paths_are_served(world: World) -> None:
    """Nothing can be changed over HTTP."""
    assert (await world.ask("/metrics", "POST", b"x" * 100_000))[0] == 405
    assert (await world.ask("/"))[0] == 404
    assert (await world.ask("/metrics/../secret"))[0] == 404


async def test_probes_that_never_listened_can_be_closed() -> None:
    """Their port was in use."""
    await World().probes.close()
