"""How kopf is used: it watches, and leaves nothing on anybody's object."""

from __future__ import annotations

import kopf

from kafka_operator.engine.cache import Cache
from kafka_operator.engine.front import Front
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.watch_lag import WatchLag
from kafka_operator.names import FINALIZER, GROUP, Key, Kind
from kafka_operator.watching import IDLE_TIMEOUT_S, LISTED_AT_ONCE, make_registry, make_settings
from tests.kafka_operator.makers import raw_topic


def test_nothing_of_kopfs_own_names_is_left() -> None:
    """Own finalizer and annotation prefixes; and its finalizer is not ours, which it would take off."""
    settings = make_settings()

    assert settings.persistence.finalizer.startswith(f"{GROUP}/")
    assert settings.persistence.finalizer != FINALIZER
    assert settings.persistence.progress_storage.prefix == GROUP  # type: ignore[attr-defined]
    assert settings.persistence.diffbase_storage.prefix == GROUP  # type: ignore[attr-defined]
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    assert settings.peering.standalone


def test_lists_come_in_pages_and_no_task_outlives_its_news() -> None:
    """Benchmark P8: ten thousand Topics at a start are neither in one answer nor in as many tasks at once."""
    settings = make_settings()

    assert settings.watching.chunk_size == LISTED_AT_ONCE
    assert IDLE_TIMEOUT_S == settings.queueing.idle_timeout < 1.0


def test_only_raw_events_are_handled() -> None:
    """Handlers of changes would make kopf write to the objects."""

    async def login() -> kopf.ConnectionInfo:
        raise NotImplementedError

    async def submit(key: Key) -> None:
        raise NotImplementedError(str(key))

    async def cleanup() -> None:
        raise NotImplementedError

    front = Front(Cache(), Retries(float, None), WatchLag(float), submit)  # type: ignore[arg-type]

    registry = make_registry(front, login, cleanup)

    kinds = {"clusters", "topics", "reassignments", "elections"}
    assert kinds == {handler.id for handler in registry._watching.get_all_handlers()}
    assert list(registry._changing.get_all_handlers()) == []
    assert list(registry._spawning.get_all_handlers()) == []


async def test_a_resource_that_is_not_understood_is_left_alone() -> None:
    """A definition that differs from ours must not end the watch."""
    submitted: list[Key] = []

    async def submit(key: Key) -> None:
        submitted.append(key)

    front = Front(Cache(), Retries(float, None), WatchLag(float), submit)  # type: ignore[arg-type]
    await front.take(Kind.TOPIC, "ADDED", raw_topic())

    assert submitted == []
