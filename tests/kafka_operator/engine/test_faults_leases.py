"""A holder that is paused at each of its calls for longer than its Lease, and resumes with outdated state after another has taken over.

A Lease does not fence: calls in flight at the pause are sent after it. The final state is the same as without a pause (O1, O3).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeVar, cast

import pytest

from kafka_operator.admin.port import Admin, ClusterUnreachableError
from kafka_operator.engine.core import build_core
from kafka_operator.metrics import KafkaMetrics
from reconciler.engine.fence import fenced
from reconciler.engine.leadership import Leadership, LeaseLostError
from reconciler.kube.leases_port import Leases
from reconciler.kube.port import Kube, UnavailableError
from tests.effort import EXHAUSTIVE
from tests.kafka_operator.crash_stories import SETTLE_S, Story, run_story
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.patient_stories import cancel, change, conflict, create, delete, delete_running, reassign
from tests.kafka_operator.world import RESYNC_S, WATCH_DELAY_S, World
from tests.reconciler.fake_kube import START, WatchEvent
from tests.reconciler.fake_leases import FakeLeases
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually

STORIES: tuple[Story, ...] = (create, change, delete, conflict, reassign, cancel, delete_running)

READS = ("describe_", "list_")
"""Methods of the ports without an effect."""

PAUSE_S = 30.0
"""Length of a pause: twice the time of a takeover."""

PortT = TypeVar("PortT")


class Process:
    """One operator process with a Lease; its calls wait while it is paused."""

    def __init__(self, world: World, leases: FakeLeases, identity: str, *, pause_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.ended = False
        self._pause_at = pause_at
        self._resumed = asyncio.Event()
        self._resumed.set()
        self._tasks: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()

        def now() -> Any:
            return START + timedelta(seconds=loop.time())

        metrics = KafkaMetrics()
        named = cast("Leases", PausablePort(leases, self, counted=False))
        self.leadership = Leadership(named, ["operator"], identity, now=now, clock=loop.time, metrics=metrics)
        kube = fenced(
            cast("Kube", PausablePort(world.kube, self)), self._is_active, lambda: UnavailableError("no Lease")
        )
        kafka = cast("Admin", PausablePort(world.kafka, self))
        admin = fenced(kafka, self._is_active, lambda: ClusterUnreachableError("no Lease"))
        self.core = build_core(
            kube,
            lambda _servers, _security: admin,
            metrics,
            prometheus=world.prometheus,
            namespaces=(),
            resync_interval_s=RESYNC_S,
            now=now,
            clock=loop.time,
            rng=random.Random(1),
        )

    def start(self) -> None:
        """Wait for the Lease, work, and end when the Lease is lost."""
        self._tasks.append(asyncio.create_task(self._run()))

    async def kill(self) -> None:
        """End it at any point of its work."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.core.close()
        await self.leadership.release()

    def deliver(self, event: WatchEvent) -> None:
        """Deliver a watch event, if the process has begun to watch."""
        if self.leadership.shard is not None:
            self._tasks.append(asyncio.create_task(self._take(event)))

    async def await_call(self, name: str, *, counted: bool) -> None:
        """Wait while the process is paused; the call with the number `pause_at` pauses it."""
        if counted:
            self.calls.append(name)
            if len(self.calls) == self._pause_at:
                self._resumed.clear()
                asyncio.get_running_loop().call_later(PAUSE_S, self._resumed.set)
        await self._resumed.wait()

    def _is_active(self) -> bool:
        return self.leadership.is_active

    async def _take(self, event: WatchEvent) -> None:
        await asyncio.sleep(WATCH_DELAY_S)
        await self._resumed.wait()
        await self.core.event_handler.handle(event.kind, event.type, event.object)

    async def _run(self) -> None:
        await self.leadership.acquire()
        resync = asyncio.create_task(self.core.resync.run())
        try:
            await self.leadership.lost()
        except LeaseLostError:
            resync.cancel()
            await self.core.close()
            self.ended = True


class PausablePort:
    """A port whose calls wait while their process is paused."""

    def __init__(self, port: Any, process: Process, *, counted: bool = True) -> None:
        self._port = port
        self._process = process
        self._counted = counted

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if name != "close":
                await self._process.await_call(name, counted=self._counted)
            return await method(*arguments, **named)

        return call


async def run_paused(story: Story, pause_at: int | None) -> tuple[object, list[str], bool]:
    """Run a story with two processes; return the final state, the first one's calls, and whether it has ended."""
    world, leases = World(), FakeLeases()
    processes = [Process(world, leases, "first", pause_at=pause_at), Process(world, leases, "second")]

    def watched(event: WatchEvent) -> None:
        for process in processes:
            process.deliver(event)

    world.kube.watcher = watched
    world.kube.apply(raw_cluster())
    try:
        for process in processes:
            process.start()
            await asyncio.sleep(0.01)
        await world.run(0.5)
        await story(world)
        await world.run(SETTLE_S + RESYNC_S)
        calls = list(processes[0].calls)
        await world.check_that_writes_have_ended()
        return world.state(), calls, processes[0].ended
    finally:
        for process in processes:
            await process.kill()


@pytest.mark.slow
@pytest.mark.shows("F36", "O10")
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_late_calls_of_a_resumed_holder_do_not_change_the_final_state(story: Story) -> None:
    """O1, O3, O10: paused for 30 s before each of its calls while another holds the Lease; it ends, and the final state is the same.

    Of consecutive reads without a write between them only the first is tried; the soak tries each.
    """
    expected, _ = run_virtually(run_story(story, Gate()))
    undisturbed, calls, ended = run_virtually(run_paused(story, None))
    assert (undisturbed, ended) == (expected, False)
    last = max(
        number for number, name in enumerate(calls, 1) if name.startswith(("patch", "create", "alter", "delete"))
    )

    for number in range(1, last + 1):
        if not EXHAUSTIVE and all(name.startswith(READS) for name in (["", *calls])[number - 1 : number + 1]):
            continue
        state, _, ended = run_virtually(run_paused(story, number))
        assert (state, ended) == (expected, True), f"paused before call {number}: {calls[number - 1]}"
