"""Watches by kopf: raw events of Steward's kinds, no other function of kopf.

kopf lists, watches, reconnects and backs off; it keeps no state on the resources, posts no events and sets no finalizer. Its storages
keep nothing. Those of kopf copy each resource at each event, to compare it with the version that they have stored, which takes half of
the processor time of an event.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import kopf
from kopf._core.engines.peering import Identity  # the type of one argument, which has no public name

from reconciler.names import COMPONENT, FRAMEWORK_FINALIZER, GROUP, VERSION, Kind

WATCH_SERVER_TIMEOUT_S = 300
"""Whole seconds, as the API requires. Length of one watch request before it is renewed: the longest lifetime of an undetected dead stream."""

WATCH_CLIENT_TIMEOUT_S = 330.0
"""Client-side limit of the same, for a server that does not end the request."""

CONNECT_TIMEOUT_S = 10.0
"""Connection timeout to the API server."""

LISTED_AT_ONCE = 500
"""Page size of lists, as in kubectl: a list of ten thousand resources in one response takes 100 MB, which the process keeps."""

IDLE_TIMEOUT_S = 0.5
"""How long kopf keeps a task for an object without events. Its default of 5 s would end the tasks of all objects at once after a list."""

EXIT_TIMEOUT_S = 20.0
"""Time limit of a stop: less than the 30 s that Kubernetes grants a pod."""

Login = Callable[[], Awaitable[kopf.ConnectionInfo]]

TakeEvent = Callable[[Kind, str | None, Any], Awaitable[None]]
"""Processes one event of a kind: its type, which is None for an item of a list, and the raw object."""


def make_registry(
    take: TakeEvent, login: Login, cleanup: Callable[[], Awaitable[None]], kinds: Iterable[Kind]
) -> kopf.OperatorRegistry:
    """Return the handlers: one for each kind, the login, and the shutdown before kopf's own."""
    registry = kopf.OperatorRegistry()

    async def log_in(**_: Any) -> kopf.ConnectionInfo:
        return await login()

    async def clean_up(**_: Any) -> None:
        await cleanup()

    kopf.on.login(registry=registry)(log_in)
    kopf.on.cleanup(registry=registry)(clean_up)
    for kind in kinds:
        kopf.on.event(GROUP, VERSION, kind.plural, registry=registry, id=kind.plural)(_handler(take, kind))
    return registry


def _handler(take: TakeEvent, kind: Kind) -> Callable[..., Awaitable[None]]:
    async def handle(event: Any, **_: Any) -> None:
        await take(kind, event["type"], event["object"])

    return handle


def make_settings() -> kopf.OperatorSettings:
    """Return kopf's settings."""
    settings = kopf.OperatorSettings()
    settings.process.ultimate_exiting_timeout = EXIT_TIMEOUT_S
    settings.persistence.finalizer = FRAMEWORK_FINALIZER
    settings.persistence.progress_storage = NoProgress()
    settings.persistence.diffbase_storage = NoDifferences()
    settings.queueing.idle_timeout = IDLE_TIMEOUT_S
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Kinds and namespaces are fixed at the start, and a missing kind ends the process with a message; no rights on CRDs are needed.
    settings.scanning.disabled = True
    settings.watching.chunk_size = LISTED_AT_ONCE
    settings.watching.server_timeout = WATCH_SERVER_TIMEOUT_S
    settings.watching.client_timeout = WATCH_CLIENT_TIMEOUT_S
    settings.networking.connect_timeout = CONNECT_TIMEOUT_S
    settings.networking.enforce_retry_after = True
    return settings


class NoDifferences(kopf.DiffBaseStorage):
    """A storage for the last handled version of a resource, which handlers of raw events do not use."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        """Return the part of a resource that is compared: nothing."""
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> kopf.BodyEssence | None:
        """Return the last handled version: none."""
        return None

    def store(self, **_: Any) -> None:
        """Store nothing."""


class NoProgress(kopf.ProgressStorage):
    """A storage for retries of handlers, which those of raw events do not have."""

    def fetch(self, **_: Any) -> kopf.ProgressRecord | None:
        """Return the progress of a handler: none."""
        return None

    def store(self, **_: Any) -> None:
        """Store nothing."""

    def purge(self, **_: Any) -> None:
        """Delete nothing."""

    def touch(self, **_: Any) -> None:
        """Change nothing."""

    def clear(self, *, essence: kopf.BodyEssence) -> kopf.BodyEssence:
        """Return the compared part of a resource unchanged."""
        return essence


async def watch(registry: kopf.OperatorRegistry, namespaces: Sequence[str]) -> None:
    """Watch until a signal or a cancellation ends it."""
    await kopf.operator(
        registry=registry,
        settings=make_settings(),
        standalone=True,
        # By default kopf reads the user's name, which a container's user may lack.
        identity=Identity(COMPONENT),
        clusterwide=not namespaces,
        namespaces=list(namespaces),
    )
