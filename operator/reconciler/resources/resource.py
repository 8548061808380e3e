"""A resource, as far as all kinds have the same fields; each kind is a frozen dataclass of its operator."""

from __future__ import annotations

from typing import Protocol

from reconciler.names import Key
from reconciler.resources.metadata import Metadata
from reconciler.resources.status import Status


class Resource(Protocol):
    """A resource of any kind."""

    @property
    def metadata(self) -> Metadata:
        """Return `metadata`."""
        ...

    @property
    def status(self) -> Status:
        """Return `status`."""
        ...

    @property
    def key(self) -> Key:
        """Return the kind, the namespace and the name."""
        ...
