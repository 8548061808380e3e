"""Port for the engine's calls to the Kubernetes API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from reconciler.names import Key, Kind
from reconciler.resources.metadata import Patch, RawObject


class KubeError(Exception):
    """A call that failed."""


class NotFoundError(KubeError):
    """The object does not exist, or its kind is not installed."""


class ConflictError(KubeError):
    """The object has changed since it was read, or is another one of the same name: read it again."""


class RefusedError(KubeError):
    """The API server rejects the call: no permission, or a different schema. An early retry does not help."""


class UnavailableError(KubeError):
    """No response, or a request to retry (429, 5xx); the call may have been carried out."""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A Kubernetes event to create, about an object."""

    key: Key
    uid: str
    resource_version: str
    warning: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of a kind at one moment, which `resource_version` names."""

    objects: tuple[RawObject, ...]
    resource_version: str


class Kube(Protocol):
    """The Kubernetes API; every call may raise KubeError."""

    async def list_objects(self, kind: Kind, namespace: str | None) -> Listing:
        """Return all objects of a kind, in one namespace or in all of them."""
        ...

    async def get_object(self, key: Key) -> RawObject:
        """Return an object."""
        ...

    async def create_object(self, key: Key, content: RawObject) -> RawObject:
        """Create an object of this name from its metadata and spec, and return it; ConflictError when there is one."""
        ...

    async def patch_object(self, key: Key, patch: Patch) -> RawObject:
        """Merge a patch into an object, its status excepted, and return it."""
        ...

    async def patch_status(self, key: Key, patch: Patch) -> RawObject:
        """Merge a patch into an object's status and return the object."""
        ...

    async def delete_object(self, key: Key, uid: str, resource_version: str | None = None) -> None:
        """Delete an object of this uid, and this version if given; ConflictError when it is another one, or has changed."""
        ...

    async def post_event(self, event: NewEvent) -> None:
        """Record an event."""
        ...

    async def get_secret(self, namespace: str, name: str) -> Mapping[str, bytes]:
        """Return the values of a Secret by key."""
        ...

    async def get_config_map(self, namespace: str, name: str) -> RawObject:
        """Return a ConfigMap."""
        ...

    async def create_config_map(self, namespace: str, content: RawObject) -> None:
        """Create a ConfigMap from its metadata and data; ConflictError when there is one of its name."""
        ...

    async def namespace_ends(self, name: str) -> bool:
        """Return whether a namespace is being deleted, or is gone."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
