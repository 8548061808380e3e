"""Names in Kubernetes that all kinds share: group, finalizer, annotations; and the values that name kinds and resources.

All names on a user's object have the group's prefix, which shows their owner.
"""

from __future__ import annotations

from dataclasses import dataclass

GROUP = "steward.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"

FINALIZER = f"{GROUP}/operator"
"""Finalizer: on a resource from before the first effect outside of Kubernetes until the last one is reverted or kept on purpose."""

FRAMEWORK_FINALIZER = f"{GROUP}/framework"
"""Configured in kopf, and never set: kopf removes its configured finalizer from objects for which it has no handler."""

STARTED = f"{GROUP}/started"
"""Annotation of a resource that runs once: that it has started, written before its first effect; it outlives its status (started)."""

PAUSE = f"{GROUP}/pause-reconciliation"
"""Annotation that a user sets, to "true", on any resource: nothing is done for it as long as it is there."""

COMPONENT = "steward-operator"
"""Reporting component of events, and field manager of writes."""


@dataclass(frozen=True, slots=True, order=True)
class Kind:
    """A kind of resource in Steward's group; each operator has its own."""

    name: str

    @property
    def plural(self) -> str:
        """Return the name in URLs."""
        return f"{self.name.lower()}s"

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """The name of one resource: the only content of an event that is passed on."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class NamespacedName:
    """A name in a namespace, of a kind that the context names."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
