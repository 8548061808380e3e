"""Faults between the operator and what it calls: answers that are none, are lost, or come twice; a watch and lists that lie.

In the world of fakes they are exact: the n-th call, the n-th event. `lab/faults/kubernetes_proxy.py` does the like to a real API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeVar

from kafka_operator.admin.port import ClusterUnreachableError, ControllerUnavailableError
from reconciler.kube.port import ConflictError, Listing, UnavailableError
from reconciler.names import Key, Kind
from reconciler.resources.metadata import RawObject
from tests.kafka_operator.world import WATCH_DELAY_S, World
from tests.reconciler.documents import copied
from tests.reconciler.fake_kube import FakeKube, WatchEvent
from tests.reconciler.gate import Gate

STALE_S = 3.0
"""Age of a stale list."""

LATE_S = 20.0
"""Delay of a late event."""

T = TypeVar("T")


class Fault(StrEnum):
    """What becomes of one call."""

    REFUSED = "refused"
    """Kubernetes answers 429, 503 or nothing, Kafka's brokers do not answer: without an effect."""
    LOST = "lost"
    """It has its effect, and the answer is lost (a time-out after success)."""
    CONFLICT = "conflict"
    """Kubernetes answers 409 though nothing has changed, Kafka's controller is being replaced: without an effect."""
    DOUBLED = "doubled"
    """It arrives twice; what the second is answered comes back."""


@dataclass
class FaultyGate(Gate):
    """A gate that applies `faults` to the calls of those numbers (from 1)."""

    faults: Mapping[int, Fault] = field(default_factory=dict)

    def heal(self) -> None:
        """End all faults and kills."""
        self.faults = {}
        self.kill_at = None

    def call(self, name: str, effect: Callable[[], T]) -> T:
        fault = self.faults.get(len(self.calls) + 1)
        if fault is None or self.dead:
            return super().call(name, effect)

        def with_fault() -> T:
            if fault is Fault.DOUBLED:
                effect()
                return effect()
            if fault is Fault.LOST:
                effect()
            raise _error(name, fault)

        return super().call(name, with_fault)


def _error(name: str, fault: Fault) -> Exception:
    if name.startswith("kube"):
        return ConflictError(name) if fault is Fault.CONFLICT else UnavailableError(name)
    return ClusterUnreachableError(name) if fault is Fault.REFUSED else ControllerUnavailableError(name)


class Watch(StrEnum):
    """Fault of the watch at one event, or from that event on."""

    GAP = "gap"
    """The event is lost."""
    LATE = "late"
    """It is delivered after later events."""
    CUT = "cut"
    """It and all further events are lost until the operator lists again."""


class FaultyWorld(World):
    """A world whose watch delivers every event twice, with the fault `watch` at the event of this number (from 1). Lists may be stale."""

    def __init__(
        self, gate: Gate | None = None, *, watch: Watch | None = None, event: int = 0, stale: bool = False
    ) -> None:
        super().__init__(gate)
        self.events_seen = 0
        self._watch = watch
        self._event = event
        if stale:
            self.kube = StaleKube(self.gate)

    def _watched(self, event: WatchEvent) -> None:
        if self._core is None:
            return
        self.events_seen += 1
        hit = self.events_seen == self._event
        if (hit and self._watch is Watch.GAP) or (self.events_seen >= self._event and self._watch is Watch.CUT):
            return
        self.bring(event, LATE_S if hit and self._watch is Watch.LATE else WATCH_DELAY_S)
        self.bring(event, WATCH_DELAY_S * 3)


class StaleKube(FakeKube):
    """Every second list is as things were some seconds ago."""

    def __init__(self, gate: Gate) -> None:
        super().__init__(gate)
        self._history: list[tuple[float, int, dict[Key, dict[str, Any]]]] = [(0.0, self._version, {})]
        self._lists = 0

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        current = await super().list_objects(kind, namespace)
        self._lists += 1
        if self._lists % 2:
            return current
        now_s = asyncio.get_running_loop().time()
        _, version, objects = [item for item in self._history if item[0] <= now_s - STALE_S or item[0] == 0][-1]
        found: list[RawObject] = [
            copied(held) for key, held in objects.items() if key.kind == kind and namespace in {None, key.namespace}
        ]
        return Listing(tuple(found), str(version))

    def _keep(self, key: Key, held: dict[str, Any], event: str) -> None:
        super()._keep(key, held, event)
        self._remember()

    def _drop(self, key: Key) -> None:
        super()._drop(key)
        self._remember()

    def _remember(self) -> None:
        now_s = asyncio.get_running_loop().time()
        self._history.append((now_s, self._version, copied(self.objects)))
