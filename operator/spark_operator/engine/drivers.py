"""Drivers of engine Steward: pods, read with one list for all SparkApplications of a namespace.

A list is shared by concurrent readers; a list that started before a write is not used after it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Protocol

from reconciler.kube.port import ConflictError, NotFoundError, RefusedError
from reconciler.resources.metadata import RawObject
from spark_operator.decide.command import driver_name
from spark_operator.decide.driver import driver_pod
from spark_operator.decide.problems import SparkProblem, refused_problem
from spark_operator.kube.port import SparkKube
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.pods import DRIVER_CONTAINER, SparkPod, read_spark_pod

FRESH_S = 1.0
"""How long a list may be reused: half of the poll interval of one application."""

MAX_PARALLEL = 16
"""Concurrent creations and deletions: a thousand applications may be due in the same minute, and the API server has other clients."""

log = logging.getLogger(__name__)

Pods = Mapping[str, tuple[SparkPod, ...]]
"""Pods by the uid of their application."""


class Drivers(Protocol):
    """Creates, reads and ends drivers; calls to Kubernetes may raise KubeError."""

    async def pods(self, application: SparkApplication) -> tuple[SparkPod, ...]:
        """Return all pods of an application."""
        ...

    async def create(self, application: SparkApplication, attempt: int) -> SparkPod | SparkProblem:
        """Create the driver of an attempt, or return the existing one; a SparkProblem if it cannot be created."""
        ...

    async def delete(self, application: SparkApplication, pod: SparkPod) -> None:
        """Delete a pod."""
        ...

    async def log(self, application: SparkApplication, pod: SparkPod, lines: int) -> str:
        """Return the last lines that a driver wrote."""
        ...


class PodDrivers:
    """Drivers in separate pods."""

    def __init__(self, kube: SparkKube, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._listings: dict[str, tuple[float, Pods]] = {}
        self._writes: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._parallel = asyncio.Semaphore(MAX_PARALLEL)

    async def pods(self, application: SparkApplication) -> tuple[SparkPod, ...]:
        """Return all pods of an application."""
        namespace = application.key.namespace
        async with self._locks.setdefault(namespace, asyncio.Lock()):
            taken_s, found = self._listings.get(namespace, (-FRESH_S, {}))
            if self._clock() - taken_s >= FRESH_S:
                writes = self._writes.get(namespace, 0)
                found = _by_application(list(await self._kube.list_pods(namespace)))
                if self._writes.get(namespace, 0) == writes:
                    self._listings[namespace] = (self._clock(), found)
        return found.get(application.metadata.uid, ())

    async def create(self, application: SparkApplication, attempt: int) -> SparkPod | SparkProblem:
        """Create the driver of an attempt, or return the existing one."""
        namespace, name = application.key.namespace, driver_name(application, attempt)
        try:
            manifest = driver_pod(application, attempt)
        except ValueError as error:
            return SparkProblem("InvalidMemory", f"{error} (spec.driver).")
        try:
            async with self._parallel:
                raw = await self._kube.create_pod(manifest)
        except ConflictError:
            return _adopted(await self._kube.get_pod(namespace, name), name)
        except (RefusedError, NotFoundError) as error:
            return refused_problem(str(error))
        finally:
            self._written(namespace)
        return read_spark_pod(raw)

    async def delete(self, application: SparkApplication, pod: SparkPod) -> None:
        """Delete a pod; a pod that is already deleted or replaced is no error."""
        namespace = application.key.namespace
        try:
            async with self._parallel:
                await self._kube.delete_pod(namespace, pod.name, pod.uid)
        except (ConflictError, NotFoundError) as error:
            log.info("Pod already deleted", extra={"pod": f"{namespace}/{pod.name}", "error": str(error)})
        finally:
            self._written(namespace)

    async def log(self, application: SparkApplication, pod: SparkPod, lines: int) -> str:
        """Return the last lines that a driver wrote."""
        return await self._kube.read_log(application.key.namespace, pod.name, DRIVER_CONTAINER, lines)

    def _written(self, namespace: str) -> None:
        self._listings.pop(namespace, None)
        self._writes[namespace] = self._writes.get(namespace, 0) + 1


def _adopted(raw: RawObject, name: str) -> SparkPod | SparkProblem:
    """Return the existing pod with a driver's name; the decision checks its owner."""
    try:
        return read_spark_pod(raw)
    except (KeyError, ValueError):
        message = f"A pod {name} already exists and does not belong to this application. Delete it."
        return SparkProblem("DriverNameTaken", message)


def _by_application(listed: list[RawObject]) -> Pods:
    found: dict[str, tuple[SparkPod, ...]] = {}
    for raw in listed:
        try:
            pod = read_spark_pod(raw)
        except (KeyError, ValueError) as error:  # a pod of another owner has Steward's label
            log.warning("Ignoring invalid pod", extra={"pod": raw["metadata"]["name"], "error": repr(error)})
            continue
        found[pod.application_uid] = (*found.get(pod.application_uid, ()), pod)
    return found
