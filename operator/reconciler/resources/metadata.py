"""Metadata of resources: identity, finalizers, Steward's annotations, conditions.

A resource is read after the API server has validated it, so required fields exist; optional fields have a
default here. Foreign annotations, labels and managed fields are dropped: ten thousand resources stay resident.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reconciler.names import API_VERSION, FINALIZER, GROUP, PAUSE, Key, Kind

READY = "Ready"

RawObject = Mapping[str, Any]
"""A resource as JSON; read only."""

Patch = dict[str, Any]
"""A merge patch (RFC 7386): a value replaces, None takes away."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One metav1.Condition."""

    type: str
    status: str
    """"True", "False" or "Unknown"."""
    reason: str
    message: str
    observed_generation: int
    last_transition_time: str
    """RFC 3339, UTC, whole seconds: the last change of `status`."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "observedGeneration": self.observed_generation,
            "lastTransitionTime": self.last_transition_time,
        }


@dataclass(frozen=True, slots=True)
class Metadata:
    """The part of a resource's metadata that decisions need."""

    key: Key
    uid: str
    resource_version: str
    generation: int
    created: datetime
    deleted: datetime | None
    finalizers: tuple[str, ...]
    annotations: tuple[tuple[str, str], ...]
    """Only Steward's annotations, by name."""
    owner: Key | None = None
    """The resource of Steward that created and controls this one (ownerReferences, controller)."""

    @property
    def paused(self) -> bool:
        """Whether reconciliation is paused."""
        return self.annotation(PAUSE) == "true"

    @property
    def has_finalizer(self) -> bool:
        """Whether the operator's finalizer is set."""
        return FINALIZER in self.finalizers

    def annotation(self, name: str) -> str | None:
        """Return one of Steward's annotations."""
        return dict(self.annotations).get(name)


def owner_reference(kind: Kind, name: str, uid: str) -> dict[str, Any]:
    """Return an owner reference (metav1.OwnerReference), which deletes the object with its owner."""
    return {"apiVersion": API_VERSION, "kind": kind.name, "name": name, "uid": uid}


def controller_reference(owner: Metadata) -> dict[str, Any]:
    """Return a controller reference, which deletes the object with its owner without blocking the owner's deletion."""
    reference = owner_reference(owner.key.kind, owner.key.name, owner.uid)
    return {**reference, "controller": True, "blockOwnerDeletion": False}


def read_metadata(kind: Kind, raw: RawObject) -> Metadata:
    """Read `metadata`; KeyError or ValueError when it is not what the API server writes."""
    metadata = raw["metadata"]
    deleted = metadata.get("deletionTimestamp")
    annotations = metadata.get("annotations") or {}
    return Metadata(
        key=Key(kind, metadata["namespace"], metadata["name"]),
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=int(metadata.get("generation", 0)),
        created=read_time(metadata["creationTimestamp"]),
        deleted=None if deleted is None else read_time(deleted),
        finalizers=tuple(metadata.get("finalizers") or ()),
        annotations=tuple(sorted((k, v) for k, v in annotations.items() if k.startswith(f"{GROUP}/"))),
        owner=_read_owner(metadata),
    )


def _read_owner(metadata: RawObject) -> Key | None:
    """Return the owner in Steward's group; an owner is always in the same namespace."""
    for owner in metadata.get("ownerReferences") or ():
        if owner.get("controller") and owner["apiVersion"].partition("/")[0] == GROUP:
            return Key(Kind(owner["kind"]), metadata["namespace"], owner["name"])
    return None


def read_conditions(status: RawObject) -> tuple[Condition, ...]:
    """Read `status.conditions`."""
    return tuple(
        Condition(
            type=raw["type"],
            status=raw["status"],
            reason=raw["reason"],
            message=raw["message"],
            observed_generation=int(raw.get("observedGeneration", 0)),
            last_transition_time=raw["lastTransitionTime"],
        )
        for raw in status.get("conditions") or ()
    )


def read_time(text: str) -> datetime:
    """Read RFC 3339 as the API server writes it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def write_time(moment: datetime) -> str:
    """Write RFC 3339 in whole seconds, as metav1.Time does."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def newer(left: str, right: str) -> bool:
    """Return whether one resource version is newer than another of the same object.

    They are whole numbers that grow (KEP-5504); where a server writes something else, the one that came last counts as newer.
    """
    if left.isdecimal() and right.isdecimal():
        return int(left) > int(right)
    return left != right
