"""A holder frozen at every call that it makes, past its Lease; another takes over; the first is thawed and acts on what it knew.

A Lease does not fence: what is on its way when a process freezes goes out when it is thawed. The end is the same as without (O1, O3).
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
from kafka_operator.engine.fence import fenced
from kafka_operator.engine.leadership import Leadership, LeaseLostError
from kafka_operator.kube.leases_port import Leases
from kafka_operator.kube.port import Kube, UnavailableError
from kafka_operator.metrics import Metrics
from tests.kafka_operator.crash_stories import EXHAUSTIVE, SETTLE_S, Story, tell
from tests.kafka_operator.fake_kube import START, WatchEvent
from tests.kafka_operator.fake_leases import FakeLeases
from tests.kafka_operator.gate import Gate
from tests.kafka_operator.makers import raw_cluster
from tests.kafka_operator.patient_stories import cancel, change, conflict, create, delete, delete_running, reassign
from tests.kafka_operator.virtual_time import run_virtually
from tests.kafka_operator.world import RESYNC_S, WATCH_DELAY_S, World

STORIES: tuple[Story, ...] = (create, change, delete, conflict, reassign, cancel, delete_running)

READS = ("describe_", "list_")
"""Methods of the ports without an effect."""

FROZEN_S = 30.0
"""Twice as long as another needs to take over."""

PortT = TypeVar("PortT")


class Process:
    """One operator with the Lease between it and its work; all that it calls waits while it is frozen."""

    def __init__(self, world: World, leases: FakeLeases, identity: str, *, freeze_at: int | None = None) -> None:
        self.calls: list[str] = []
        self.ended = False
        self._freeze_at = freeze_at
        self._thawed = asyncio.Event()
        self._thawed.set()
        self._tasks: list[asyncio.Task[None]] = []
        loop = asyncio.get_running_loop()

        def now() -> Any:
            return START + timedelta(seconds=loop.time())

        metrics = Metrics()
        named = cast("Leases", Freezing(leases, self, counted=False))
        self.leadership = Leadership(named, ["operator"], identity, now=now, clock=loop.time, metrics=metrics)
        kube = fenced(cast("Kube", Freezing(world.kube, self)), self._holds, lambda: UnavailableError("no Lease"))
        kafka = cast("Admin", Freezing(world.kafka, self))
        admin = fenced(kafka, self._holds, lambda: ClusterUnreachableError("no Lease"))
        self.core = build_core(
            kube,
            lambda _servers, _security: admin,
            metrics,
            namespaces=(),
            resync_interval_s=RESYNC_S,
            now=now,
            clock=loop.time,
            rng=random.Random(1),
        )

    def start(self) -> None:
        """Stand by, work, and end when the Lease is lost."""
        self._tasks.append(asyncio.create_task(self._run()))

    async def kill(self) -> None:
        """End it with nothing tidied up."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.core.close()
        await self.leadership.release()

    def bring(self, event: WatchEvent) -> None:
        """Have its watch bring an event, once it has begun to watch."""
        if self.leadership.shard is not None:
            self._tasks.append(asyncio.create_task(self._take(event)))

    async def turn(self, name: str, *, counted: bool) -> None:
        """Pass a call, or wait in it while frozen; the call of the number freezes the process."""
        if counted:
            self.calls.append(name)
            if len(self.calls) == self._freeze_at:
                self._thawed.clear()
                asyncio.get_running_loop().call_later(FROZEN_S, self._thawed.set)
        await self._thawed.wait()

    def _holds(self) -> bool:
        return self.leadership.holds

    async def _take(self, event: WatchEvent) -> None:
        await asyncio.sleep(WATCH_DELAY_S)
        await self._thawed.wait()
        await self.core.front.take(event.kind, event.type, event.object)

    async def _run(self) -> None:
        await self.leadership.gain()
        resync = asyncio.create_task(self.core.resync.run())
        try:
            await self.leadership.lost()
        except LeaseLostError:
            resync.cancel()
            await self.core.close()
            self.ended = True


class Freezing:
    """A port whose calls wait for their process to be thawed."""

    def __init__(self, port: Any, process: Process, *, counted: bool = True) -> None:
        self._port = port
        self._process = process
        self._counted = counted

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if name != "close":
                await self._process.turn(name, counted=self._counted)
            return await method(*arguments, **named)

        return call


async def tell_frozen(story: Story, freeze_at: int | None) -> tuple[object, list[str], bool]:
    """Tell a story with two processes; return the end, the first one's calls, and whether that one has ended."""
    world, leases = World(), FakeLeases()
    processes = [Process(world, leases, "first", freeze_at=freeze_at), Process(world, leases, "second")]

    def watched(event: WatchEvent) -> None:
        for process in processes:
            process.bring(event)

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
@pytest.mark.timeout(300)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_a_thawed_holders_late_calls_change_no_end(story: Story) -> None:
    """O1, O3, O10: frozen before each of its calls for 30 s, while another works under the Lease; it ends, and the end is the same.

    Of several reads in a row, with no effect between them, the first stands for all; the soak has each.
    """
    expected, _ = run_virtually(tell(story, Gate()))
    undisturbed, calls, ended = run_virtually(tell_frozen(story, None))
    assert (undisturbed, ended) == (expected, False)
    last = max(
        number for number, name in enumerate(calls, 1) if name.startswith(("patch", "create", "alter", "delete"))
    )

    for number in range(1, last + 1):
        if not EXHAUSTIVE and all(name.startswith(READS) for name in (["", *calls])[number - 1 : number + 1]):
            continue
        state, _, ended = run_virtually(tell_frozen(story, number))
        assert (state, ended) == (expected, True), f"frozen before call {number}: {calls[number - 1]}"
