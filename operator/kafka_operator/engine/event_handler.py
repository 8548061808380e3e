"""Watch event handler: updates the cache and enqueues the names of affected resources."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from kafka_operator.decide.quota import QUOTA_EXCEEDED
from kafka_operator.engine.cache import Cache, Resource, read_resource
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic
from reconciler.decide.conditions import ready_of
from reconciler.engine.retries import Retries
from reconciler.engine.watch_lag import WatchLag
from reconciler.names import Key, Kind
from reconciler.resources.metadata import RawObject
from spark_operator.resources.application import SparkApplication

DELETED = "DELETED"

log = logging.getLogger(__name__)


class EventHandler:
    """Handler of watch events."""

    def __init__(
        self, cache: Cache, retries: Retries, watch_lag: WatchLag, submit: Callable[[Key], Awaitable[None]]
    ) -> None:
        self._cache = cache
        self._retries = retries
        self._watch_lag = watch_lag
        self._submit = submit

    async def handle(self, kind: Kind, event_type: str | None, raw: RawObject | Any) -> None:
        """Process one event: ADDED, MODIFIED, DELETED, or None for an item of a list."""
        try:
            resource = read_resource(kind, raw)
        except (KeyError, ValueError, TypeError) as error:
            log.warning("Ignoring invalid resource", extra={"kind": kind.value, "error": repr(error)})
            return
        if event_type == DELETED:
            await self._handle_deletion(resource)
            return
        self._watch_lag.delivered(resource.key, resource.metadata.resource_version)
        before = self._cache.get(resource.key)
        if not self._cache.store(resource):
            return
        await self._submit(resource.key)
        for key in list(self._affected_by(before, resource)):
            await self._submit(key)

    async def _handle_deletion(self, resource: Resource) -> None:
        self._watch_lag.deleted(resource.key)
        self._cache.delete(resource.key, resource.metadata.uid)
        self._retries.forget(resource.key)
        await self._submit(resource.key)
        for key in list(self._affected_by(None, resource)):
            await self._submit(key)

    def _affected_by(self, before: Resource | None, resource: Resource) -> Iterator[Key]:
        """Return the other resources whose decision may have changed."""
        if isinstance(resource, Topic):
            yield from self._affected_by_topic(before, resource)
        elif isinstance(resource, Reassignment):
            yield from _affected_by_reassignment(before, resource)
        elif isinstance(resource, SparkApplication):
            if resource.metadata.owner is not None:  # the schedule that owns the run
                yield resource.metadata.owner
        elif isinstance(resource, Cluster) and not (isinstance(before, Cluster) and before.serves_as(resource)):
            yield from (dependent.key for dependent in self._cache.dependents(resource.ref))

    def _affected_by_topic(self, before: Resource | None, topic: Topic) -> Iterator[Key]:
        """Return the Topics that may lose or gain the Kafka topic now, and those that may fit into released quota."""
        if isinstance(before, Topic) and before.metadata.generation == topic.metadata.generation:
            return
        if before is None or (isinstance(before, Topic) and before.policy is not topic.policy):
            yield from (key for key in self._cache.named(topic.name) if key != topic.key)
        cluster = self._cache.cluster(topic.cluster)
        if cluster is not None and cluster.has_quotas:
            for other in self._cache.dependents(topic.cluster):
                ready = ready_of(other.status.conditions)
                if other.key != topic.key and ready is not None and ready.reason == QUOTA_EXCEEDED:
                    yield other.key


def _affected_by_reassignment(before: Resource | None, item: Reassignment) -> Iterator[Key]:
    """Return its owner: a Topic mirrors its progress, a Cluster waits for its end."""
    owner = item.metadata.owner
    if owner is None:
        return
    stays = isinstance(before, Reassignment) and before.status.state is item.status.state
    if owner.kind is not Kind.CLUSTER or not stays:
        yield owner
