"""A made-up kind: a Greeting, whose status is to repeat its text. It depends only on the reconciler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reconciler.decide.conditions import TRUE, with_ready
from reconciler.decide.steps import AddFinalizer, Done, Outcome, Release, WriteStatus
from reconciler.engine.core import Core
from reconciler.engine.kinds import KindSpec
from reconciler.names import Key, Kind, NamespacedName
from reconciler.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata

GREETING = Kind("Greeting")

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "greetings.steward.dev"},
    "spec": {
        "group": "steward.dev",
        "scope": "Namespaced",
        "names": {"kind": "Greeting", "plural": "greetings"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""The kind for a real API server."""


@dataclass(frozen=True, slots=True)
class GreetingStatus:
    """`status`."""

    text: str | None = None
    observed_generation: int | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the API's form."""
        return {
            "text": self.text,
            "observedGeneration": self.observed_generation,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Greeting:
    """The resource."""

    metadata: Metadata
    text: str
    status: GreetingStatus = field(default_factory=GreetingStatus)

    @property
    def key(self) -> Key:
        """Return the name."""
        return self.metadata.key


def read_greeting(raw: RawObject) -> Greeting:
    """Read a Greeting; KeyError when it has no text."""
    status = raw.get("status") or {}
    return Greeting(
        read_metadata(GREETING, raw),
        raw["spec"]["text"],
        GreetingStatus(status.get("text"), status.get("observedGeneration"), read_conditions(status)),
    )


class GreetingReconciler:
    """Puts on the finalizer, repeats the text, and lets a deleted Greeting go."""

    def __init__(self, core: Core, now: datetime) -> None:
        self._core = core
        self._now = now

    async def reconcile(self, _: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Reconcile each resource."""
        return {key: await self._reconcile(key) for key in keys}

    async def _reconcile(self, key: Key) -> Outcome:
        while (item := self._core.cache.get_as(Greeting, key)) is not None:
            step = self._decide(item)
            if isinstance(step, Done):
                return step
            outcome = await self._core.writer.carry_out(item, step)
            if outcome is not None:
                return outcome
        return Done()

    def _decide(self, item: Greeting) -> AddFinalizer | Release | WriteStatus[GreetingStatus] | Done:
        if item.metadata.deleted is not None:
            return Release()
        if not item.metadata.has_finalizer:
            return AddFinalizer()
        generation = item.metadata.generation
        conditions = with_ready(
            item.status.conditions, status=TRUE, reason="Greeted", message="", generation=generation, now=self._now
        )
        wanted = replace(item.status, text=item.text, observed_generation=generation, conditions=conditions)
        return Done() if wanted == item.status else WriteStatus(wanted)


def register_greetings(core: Core, now: datetime) -> None:
    """Register the kind: all that adding one takes."""
    core.kinds.register(KindSpec(kind=GREETING, read=read_greeting, reconciler=GreetingReconciler(core, now)))


def raw_greeting(text: str, name: str = "hello", namespace: str = "shop") -> dict[str, Any]:
    """A Greeting as a user applies it."""
    return {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Greeting",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"text": text},
    }
