"""Writes to Kubernetes: finalizer, annotation and status, each guarded by the resource version that it was decided on.

Responses of the API server update the cache immediately, so that the next decision and the following watch event see no change.
"""

from __future__ import annotations

import asyncio
import logging

from reconciler.decide.steps import (
    RETRY_LATER_S,
    RETRY_SOON_S,
    AddFinalizer,
    DeleteResource,
    Done,
    Mark,
    Outcome,
    Release,
    ResourceEvent,
    Retry,
    WriteStatus,
)
from reconciler.engine.cache import ResourceCache
from reconciler.engine.event_recorder import EventRecorder
from reconciler.engine.kinds import Kinds
from reconciler.kube.port import ConflictError, Kube, NotFoundError, RefusedError, UnavailableError
from reconciler.names import FINALIZER, STARTED, Key
from reconciler.resources.metadata import Patch, RawObject
from reconciler.resources.resource import Resource
from reconciler.resources.status import Status

MAX_PARALLEL_WRITES = 16
"""Concurrent writes: fewer keep two cores and one API server busy, and a busy API server answers more with 429."""

KubeStep = AddFinalizer | Release | DeleteResource | Mark | WriteStatus[Status]

log = logging.getLogger(__name__)


class Writer:
    """Carries out the steps that are writes to Kubernetes."""

    def __init__(self, kube: Kube, cache: ResourceCache, event_recorder: EventRecorder, kinds: Kinds) -> None:
        self._kube = kube
        self._cache = cache
        self._event_recorder = event_recorder
        self._kinds = kinds
        self._parallel = asyncio.Semaphore(MAX_PARALLEL_WRITES)

    async def carry_out(self, resource: Resource, step: KubeStep) -> Outcome | None:
        """Carry out a step; return the outcome if the reconciliation ends with it, None to continue with the updated cache."""
        async with self._parallel:
            try:
                await self._write(resource, step)
            except NotFoundError:
                self._cache.delete(resource.key, resource.metadata.uid)
                return Done()
            except ConflictError:
                return await self._read_again(resource.key)
            except RefusedError as error:
                log.warning("API server rejected write", extra={"resource": str(resource.key), "error": str(error)})
                return Retry(RETRY_LATER_S)
            except UnavailableError as error:
                log.info("Write failed; retrying", extra={"resource": str(resource.key), "error": str(error)})
                return Retry(RETRY_SOON_S)
        ends = isinstance(step, DeleteResource) or (isinstance(step, Release) and resource.metadata.deleted is not None)
        return Done() if ends else None

    async def record_event(self, resource: Resource, event: ResourceEvent) -> None:
        """Create an event without a write."""
        await self._event_recorder.record(resource, event)

    async def _write(self, resource: Resource, step: KubeStep) -> None:
        event: ResourceEvent | None = None
        if isinstance(step, AddFinalizer):
            self._store(resource.key, await self._kube.patch_object(resource.key, _finalizer_patch(resource, step)))
        elif isinstance(step, Release):
            raw = await self._kube.patch_object(resource.key, _release_patch(resource))
            if raw["metadata"].get("finalizers") or "deletionTimestamp" not in raw["metadata"]:
                self._store(resource.key, raw)
            else:
                self._cache.delete(resource.key, resource.metadata.uid)
            event = step.event
        elif isinstance(step, Mark):
            self._store(resource.key, await self._kube.patch_object(resource.key, _mark_patch(resource, step)))
        elif isinstance(step, DeleteResource):
            metadata = resource.metadata
            await self._kube.delete_object(resource.key, metadata.uid, metadata.resource_version)
            log.info("Deleted resource: TTL expired", extra={"resource": str(resource.key)})
        else:
            self._store(resource.key, await self._kube.patch_status(resource.key, _status_patch(resource, step.status)))
            event = step.event
        if event is not None:
            await self._event_recorder.record(resource, event)

    async def _read_again(self, key: Key) -> Outcome | None:
        try:
            self._store(key, await self._kube.get_object(key))
        except NotFoundError:
            self._cache.delete(key)
            return Done()
        except (ConflictError, RefusedError, UnavailableError) as error:
            log.info("Read failed; retrying", extra={"resource": str(key), "error": str(error)})
            return Retry(RETRY_SOON_S)
        return None

    def _store(self, key: Key, raw: RawObject) -> None:
        self._cache.store(self._kinds.read(key.kind, raw))


def _finalizer_patch(resource: Resource, step: AddFinalizer) -> Patch:
    metadata: Patch = {"resourceVersion": resource.metadata.resource_version}
    if not resource.metadata.has_finalizer:
        metadata["finalizers"] = [*resource.metadata.finalizers, FINALIZER]
    changed = {name: text for name, text in step.annotations.items() if text != resource.metadata.annotation(name)}
    if changed:
        metadata["annotations"] = changed
    return {"metadata": metadata}


def _mark_patch(resource: Resource, mark: Mark) -> Patch:
    return {"metadata": {"resourceVersion": resource.metadata.resource_version, "annotations": {STARTED: mark.text}}}


def _release_patch(resource: Resource) -> Patch:
    remaining = [finalizer for finalizer in resource.metadata.finalizers if finalizer != FINALIZER]
    return {"metadata": {"resourceVersion": resource.metadata.resource_version, "finalizers": remaining}}


def _status_patch(resource: Resource, status: Status) -> Patch:
    """Return the difference; a plan of thousands of partitions is not sent again with each second's progress."""
    before, after = resource.status.to_patch(), status.to_patch()
    changed = {name: value for name, value in after.items() if value != before[name]}
    return {
        "metadata": {"resourceVersion": resource.metadata.resource_version, "uid": resource.metadata.uid},
        "status": changed,
    }
