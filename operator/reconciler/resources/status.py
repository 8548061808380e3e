"""Status of a resource, as far as all kinds have the same fields; each kind's own is a frozen dataclass."""

from __future__ import annotations

from dataclasses import Field
from typing import Any, ClassVar, Protocol

from reconciler.resources.metadata import Condition, Patch


class Status(Protocol):
    """Status of a resource of any kind."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def observed_generation(self) -> int | None:
        """Return `status.observedGeneration`; None before the first reconciliation."""
        ...

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return `status.conditions`."""
        ...

    def to_patch(self) -> Patch:
        """Return all fields in the API's form; None removes a field."""
        ...


class JobStatus(Status, Protocol):
    """Status of a resource that runs once."""

    @property
    def state(self) -> object | None:
        """Return `status.state`; None before the first reconciliation."""
        ...
