"""Use of kopf: it only watches, and writes nothing to the watched objects."""

from __future__ import annotations

from typing import Any

import kopf

from kafka_operator import kinds
from reconciler.engine.event_handler import EventHandler
from reconciler.engine.watch_lag import WatchLag
from reconciler.names import FINALIZER, GROUP, Key, Kind
from reconciler.resources.metadata import RawObject, write_time
from reconciler.watching import IDLE_TIMEOUT_S, LISTED_AT_ONCE, make_registry, make_settings
from tests.kafka_operator.idle_core import idle_core
from tests.kafka_operator.makers import raw_topic, topic


def test_none_of_kopfs_default_names_are_used() -> None:
    """The finalizer has Steward's prefix, and differs from Steward's own, which kopf would otherwise remove. The storages write nothing."""
    settings = make_settings()

    assert settings.persistence.finalizer.startswith(f"{GROUP}/")
    assert settings.persistence.finalizer != FINALIZER
    body, patch = kopf.Body(raw_topic()), kopf.Patch()
    differences, progress = settings.persistence.diffbase_storage, settings.persistence.progress_storage
    essence = differences.build(body=body)
    differences.store(body=body, patch=patch, essence=essence)
    progress.store(key=kopf.HandlerId("topics"), record=kopf.ProgressRecord(), body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    assert (dict(essence), dict(patch), differences.fetch(body=body)) == ({}, {}, None)
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert settings.peering.standalone


def test_lists_are_paged_and_idle_tasks_end_soon() -> None:
    """Benchmark P8: at a start, ten thousand Topics are neither in one response nor in ten thousand tasks at once."""
    settings = make_settings()

    assert settings.watching.chunk_size == LISTED_AT_ONCE
    assert settings.queueing.idle_timeout == IDLE_TIMEOUT_S < 1.0


async def test_only_raw_events_are_handled() -> None:
    """Handlers of changes would make kopf write to the objects."""
    calls: list[tuple[Any, ...]] = []

    async def take(kind: Kind, event_type: str | None, raw: Any) -> None:
        calls.append((kind.plural, event_type, raw))

    async def login() -> kopf.ConnectionInfo:
        calls.append(("login",))
        return kopf.ConnectionInfo(server="https://kubernetes")

    async def cleanup() -> None:
        calls.append(("cleanup",))

    registry = make_registry(take, login, cleanup, kinds.KINDS)

    handlers = list(registry._watching.get_all_handlers())
    assert {handler.id for handler in handlers} == {"clusters", "topics", "reassignments", "elections"}
    assert list(registry._changing.get_all_handlers()) == []
    assert list(registry._spawning.get_all_handlers()) == []

    for activity in registry._activities.get_all_handlers():
        activity_function: Any = activity.fn
        await activity_function()
    for handler in handlers:
        handler_function: Any = handler.fn
        await handler_function(event={"type": "ADDED", "object": "raw"})
    assert calls == [("login",), ("cleanup",), *((str(handler.id), "ADDED", "raw") for handler in handlers)]


async def test_an_invalid_resource_is_ignored() -> None:
    """A resource of another version of the CRD must not end the watch."""
    submitted: list[Key] = []

    async def submit(key: Key) -> None:
        submitted.append(key)

    core = idle_core()
    event_handler = EventHandler(core.cache, core.kinds, core.retries, core.watch_lag, submit)
    await event_handler.handle(kinds.TOPIC, "ADDED", raw_topic())

    assert submitted == []


async def test_a_version_that_the_cache_has_is_not_read_again() -> None:
    """Benchmark P8: the watch delivers each write of the operator, whose response the cache already has."""
    submitted: list[Key] = []

    async def submit(key: Key) -> None:
        submitted.append(key)

    core = idle_core()
    core.cache.store(topic())
    now_s = [0.0]
    watch_lag = WatchLag(lambda: now_s[0])
    watch_lag.listed(kinds.TOPIC, [(topic().key, "7")])
    event_handler = EventHandler(core.cache, core.kinds, core.retries, watch_lag, submit)

    await event_handler.handle(kinds.TOPIC, "MODIFIED", _delivered("7"))
    now_s[0], unchanged = 60.0, list(submitted)
    lag_s = watch_lag.lag_s
    await event_handler.handle(kinds.TOPIC, "MODIFIED", _delivered("8"))

    assert (unchanged, lag_s) == ([], 0.0)
    assert submitted[:1] == [topic().key]


def _delivered(version: str) -> RawObject:
    raw = raw_topic()
    made = topic().metadata
    raw["metadata"] |= {
        "namespace": made.key.namespace,
        "uid": made.uid,
        "resourceVersion": version,
        "creationTimestamp": write_time(made.created),
    }
    return raw
