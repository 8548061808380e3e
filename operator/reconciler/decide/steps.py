"""Steps that a decision on any kind of resource can return: exactly one, after which the state is read again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

StatusT_co = TypeVar("StatusT_co", covariant=True)

RETRY_SOON_S = 0.1
"""First delay where the cause is likely to pass by itself: metadata that is not visible yet, a controller's failover."""

RETRY_LATER_S = 2.0
"""First retry delay when a user has to act: a setting that the broker rejects, too few brokers."""

RETRY_CAP_S = 60.0
"""Longest retry delay; a user rarely acts sooner."""

DELETION_RETRY_CAP_S = 5.0
"""Longest retry delay of a deletion: a user waits for it, and its timeout is short."""


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """A Kubernetes event about the resource."""

    warning: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Note on a resource that runs once that it has started, before its first effect."""

    text: str


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    """Put the operator's finalizer on the resource, before its first effect outside of Kubernetes."""

    @property
    def annotations(self) -> Mapping[str, str | None]:
        """Return annotations to set in the same write; None removes one."""
        return {}


@dataclass(frozen=True, slots=True)
class Release:
    """Remove the operator's finalizer."""

    event: ResourceEvent | None = None


@dataclass(frozen=True, slots=True)
class DeleteResource:
    """Delete the resource itself, as it was seen: it has ended, and its time to live has expired."""


@dataclass(frozen=True, slots=True)
class WriteStatus(Generic[StatusT_co]):
    """Write a status that differs from the current one."""

    status: StatusT_co
    event: ResourceEvent | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry after a delay that doubles from `first_s` to `cap_s`, in seconds."""

    first_s: float = RETRY_SOON_S
    cap_s: float = RETRY_CAP_S


@dataclass(frozen=True, slots=True)
class Wait:
    """Work is in progress without a problem: reconcile again after this time, in seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing is left to do until something changes."""


Outcome = Done | Wait | Retry
"""End of a reconciliation."""
