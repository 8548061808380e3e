"""Kinds that a process serves: each operator registers a description of each of its kinds (KindSpec)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from reconciler.engine.loop import QueuePartition, Reconciler
from reconciler.names import Key, Kind, NamespacedName
from reconciler.resources.metadata import RawObject
from reconciler.resources.resource import Resource

ResourceT = TypeVar("ResourceT", bound=Resource)


def _none(_before: object, _after: object) -> Iterable[Key]:
    return ()


def _ignored(_served: object) -> None:
    """Show nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindSpec(Generic[ResourceT]):
    """All that the generic parts need to know of a kind."""

    kind: Kind
    read: Callable[[RawObject], ResourceT]
    """Parses a resource; KeyError, TypeError or ValueError when it does not follow the schema."""
    reconciler: Reconciler
    queue_of: Callable[[ResourceT], NamespacedName] | None = None
    """Returns the key for queueing, sharding and the limit of events, which resources of one kind share (their Cluster); with None each
    resource has its own, also after its deletion."""
    affected: Callable[[ResourceT | None, ResourceT], Iterable[Key]] = _none
    """Returns the other resources whose decision may have changed, from the resource before (None: new or deleted) and after an event."""
    show: Callable[[Sequence[ResourceT]], None] = _ignored
    """Sets the gauges of the kind from the resources that this process serves."""


class Kinds:
    """The kinds in the order of their registration, in which they are also listed."""

    def __init__(self) -> None:
        self._specs: dict[Kind, KindSpec[Any]] = {}
        self._reconcilers: dict[Kind, Reconciler] = {}

    @property
    def reconcilers(self) -> Mapping[Kind, Reconciler]:
        """Return the reconciler of each kind; the mapping has later registrations, too."""
        return self._reconcilers

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._specs)

    def register(self, spec: KindSpec[Any]) -> None:
        """Add a kind; ValueError when it is registered already."""
        if spec.kind in self._specs:
            raise ValueError(f"kind {spec.kind} is registered twice")
        self._specs[spec.kind] = spec
        self._reconcilers[spec.kind] = spec.reconciler

    def read(self, kind: Kind, raw: RawObject) -> Resource:
        """Parse a resource of a kind; KeyError, TypeError or ValueError when it does not follow the schema."""
        resource: Resource = self._specs[kind].read(raw)
        return resource

    def queue_of(self, resource: Resource) -> NamespacedName:
        """Return the key for queueing, sharding and the limit of events."""
        queue_of = self._specs[resource.key.kind].queue_of
        return _own_queue(resource.key) if queue_of is None else queue_of(resource)

    def queue_partition(self, key: Key, resource: Resource | None) -> QueuePartition | None:
        """Return the queue partition of a resource; None if its kind is not served, or it is unknown and has no partition of its own."""
        spec = self._specs.get(key.kind)
        if spec is None:
            return None
        if resource is not None:
            return QueuePartition(key.kind, self.queue_of(resource))
        return QueuePartition(key.kind, _own_queue(key)) if spec.queue_of is None else None

    def affected(self, before: Resource | None, resource: Resource) -> list[Key]:
        """Return the other resources whose decision may have changed by an event."""
        return list(self._specs[resource.key.kind].affected(before, resource))

    def show(self, kind: Kind, served: Sequence[Resource]) -> None:
        """Set the gauges of a kind."""
        self._specs[kind].show(served)


def _own_queue(key: Key) -> NamespacedName:
    return NamespacedName(key.namespace, key.name)
