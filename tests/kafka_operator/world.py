"""The engine in a world of fakes, on virtual time: users act, the operator runs, dies and comes back."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from typing import TypeVar, cast

from kafka_operator.admin.port import Admin
from kafka_operator.engine.core import build_core
from kafka_operator.metrics import KafkaMetrics
from kafka_operator.resources.security import Security
from reconciler.engine.core import Core
from reconciler.engine.queue import CAPACITY
from spark_operator.engine.applications import SparkPorts
from tests.kafka_operator.fake_kafka import FakeKafka, GuardedKafka
from tests.kafka_operator.fake_pods import FakePods
from tests.kafka_operator.fake_prometheus import FakePrometheus
from tests.kafka_operator.makers import raw_cluster
from tests.reconciler.fake_kube import START, FakeKube, WatchEvent
from tests.reconciler.gate import Gate

WATCH_DELAY_S = 0.01
"""Delay of the watch."""

RESYNC_S = 120.0

T = TypeVar("T")


class World:
    """One API server, one Kafka cluster at kafka:9092, and at most one operator."""

    def __init__(self, gate: Gate | None = None) -> None:
        self.gate = gate or Gate()
        self.kube = FakeKube(self.gate)
        self.kafka = FakeKafka(self.gate)
        self.prometheus = FakePrometheus(self.gate)
        self.others: dict[str, FakeKafka] = {}
        """Further clusters by bootstrap server."""
        self.pods: FakePods | None = None
        self.spark: SparkPorts | None = None
        self.connected: list[Security] = []
        """As what connections were made, in order."""
        self.metrics = KafkaMetrics()
        self.lose_watch_events = False
        self.resync_s = RESYNC_S
        self.capacity = CAPACITY
        """Of the queue."""
        self._core: Core | None = None
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def core(self) -> Core:
        """Return the engine that runs."""
        assert self._core is not None, "the operator does not run"
        return self._core

    def start(self) -> None:
        """Start the operator."""
        loop = asyncio.get_running_loop()
        self._core = build_core(
            self.kube,
            self._connect,
            self.metrics,
            prometheus=self.prometheus,
            namespaces=(),
            resync_interval_s=self.resync_s,
            now=lambda: START + timedelta(seconds=loop.time()),
            clock=loop.time,
            rng=random.Random(1),
            pods=self.pods,
            drain=True,
            capacity=self.capacity,
            spark=self.spark,
        )
        self.kube.watcher = self._watched
        self._tasks = [asyncio.create_task(self._resync(self._core))]

    async def kill(self) -> None:
        """End the operator with nothing tidied up."""
        self.kube.watcher = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._core is not None:
            await self._core.close()
        self._core = None

    async def check_that_writes_have_ended(self) -> None:
        """Fail if anything is written in the time of a whole resync."""
        self.kube.writes.clear()
        await self.run(self.resync_s + 30)
        assert self.kube.writes == [], "something is still being written"

    async def run(self, seconds: float) -> None:
        """Let time pass; an operator that the gate killed is started again."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + seconds
        while loop.time() < until_s:
            # Once nothing can be killed any more, there is nothing to check.
            step_s = 0.05 if self.gate.kill_at is not None else seconds
            await asyncio.sleep(min(step_s, until_s - loop.time()))
            if self.gate.dead:
                await self.kill()
                self.gate.revive()
                self.start()

    async def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> float:
        """Let time pass until a condition holds; return how much did."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        while not condition():
            assert loop.time() - began_s < seconds, f"not within {seconds} s"
            await self.run(0.05)
        return loop.time() - began_s

    def state(self) -> tuple[dict[str, object], dict[str, object]]:
        """Return what users of both see."""
        return self.kube.state(), self.kafka.state()

    def _connect(self, bootstrap_servers: Sequence[str], security: Security) -> Admin:
        kafka = self.others.get(bootstrap_servers[0], self.kafka)
        self.connected.append(security)
        return kafka if kafka.security is None else cast("Admin", GuardedKafka(kafka, security))

    def _watched(self, event: WatchEvent) -> None:
        if self.lose_watch_events or self._core is None:
            return
        self.bring(event, WATCH_DELAY_S)

    def bring(self, event: WatchEvent, delay_s: float) -> None:
        """Have the watch bring an event to the operator that runs now."""
        core = self.core

        async def take() -> None:
            await asyncio.sleep(delay_s)
            await core.event_handler.handle(event.kind, event.type, event.object)

        self._tasks.append(asyncio.create_task(take()))

    @staticmethod
    async def _resync(core: Core) -> None:
        await core.resync.run()


@contextlib.asynccontextmanager
async def running(gate: Gate | None = None, *, cluster: bool = True) -> AsyncIterator[World]:
    """A world with the operator running and Cluster `main` applied."""
    world = World(gate)
    if cluster:
        world.kube.apply(raw_cluster())
    world.start()
    try:
        yield world
    finally:
        await world.kill()
