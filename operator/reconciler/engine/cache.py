"""Cache of resources, fed by watches, lists and responses to the operator's own writes.

The highest resource version wins, so that a late watch event cannot hide a newer write. Deleted objects are remembered as tombstones, so
that a late event cannot resurrect a resource and repeat its effects. Every write carries the version that it was decided on, and the
API server rejects it if that is not the current one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from typing import TypeVar

from reconciler.names import Key, Kind
from reconciler.resources.metadata import newer
from reconciler.resources.resource import Resource

ResourceT = TypeVar("ResourceT", bound=Resource)

MAX_TOMBSTONES = 20_000
"""Number of remembered uids of deleted resources, some 3 MB; no watch delivers an event after so many deletions."""


class Index:
    """Names of resources by one of their values; resources whose value is None are left out."""

    def __init__(self, value_of: Callable[[Resource], Hashable]) -> None:
        self._value_of = value_of
        self._keys: dict[Hashable, set[Key]] = defaultdict(set)

    def keys(self, value: Hashable) -> list[Key]:
        """Return the names of all resources with a value."""
        return list(self._keys.get(value, ()))

    def add(self, resource: Resource) -> None:
        """Add a resource."""
        value = self._value_of(resource)
        if value is not None:
            self._keys[value].add(resource.key)

    def remove(self, resource: Resource) -> None:
        """Remove a resource that was added with the same value."""
        value = self._value_of(resource)
        if value is None:
            return
        self._keys[value].discard(resource.key)
        if not self._keys[value]:
            del self._keys[value]


class ResourceCache:
    """All resources of the watched namespaces by kind and name; operators add indexes for their own queries."""

    def __init__(self, *indexes: Index) -> None:
        self._indexes = indexes
        self._tombstones: dict[str, None] = {}
        self._tables: dict[Kind, dict[Key, Resource]] = {}

    def store(self, resource: Resource) -> bool:
        """Store a resource unless a newer version or its deletion is known; return whether it was stored."""
        if resource.metadata.uid in self._tombstones:
            return False
        known = self.get(resource.key)
        if known is not None and not newer(resource.metadata.resource_version, known.metadata.resource_version):
            return False
        if known is not None:
            self._remove(known)
        self._tables.setdefault(resource.key.kind, {})[resource.key] = resource
        for index in self._indexes:
            index.add(resource)
        return True

    def delete(self, key: Key, uid: str | None = None) -> bool:
        """Remove a deleted resource (only with this uid, if one is given); return whether it was present."""
        known = self.get(key)
        self._add_tombstone(uid or (None if known is None else known.metadata.uid))
        if known is None or (uid is not None and known.metadata.uid != uid):
            return False
        self._remove(known)
        return True

    def get(self, key: Key) -> Resource | None:
        """Return a resource."""
        return self._tables.get(key.kind, {}).get(key)

    def get_as(self, resource_type: type[ResourceT], key: Key) -> ResourceT | None:
        """Return a resource of a type; None also for a key of another kind."""
        found = self.get(key)
        return found if isinstance(found, resource_type) else None

    def keys(self, kind: Kind) -> list[Key]:
        """Return the names of all resources of a kind."""
        return list(self._tables.get(kind, ()))

    def all_of(self, kind: Kind) -> list[Resource]:
        """Return all resources of a kind."""
        return list(self._tables.get(kind, {}).values())

    def _remove(self, resource: Resource) -> None:
        del self._tables[resource.key.kind][resource.key]
        for index in self._indexes:
            index.remove(resource)

    def _add_tombstone(self, uid: str | None) -> None:
        """Record the deletion of a uid; uids are never reused."""
        if uid is None:
            return
        self._tombstones[uid] = None
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
