"""SparkApplication reconciler: one step at a time, with the state read again after every effect."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from reconciler.decide.pause import decide_pause
from reconciler.decide.started import decide_started, marked_first
from reconciler.decide.steps import DeleteResource, Done, Mark, Outcome, Retry, Wait, WriteStatus
from reconciler.engine.cache import ResourceCache
from reconciler.engine.writer import Writer
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from reconciler.names import Key, NamespacedName
from spark_operator import kinds
from spark_operator.decide.application import decide_spark
from spark_operator.decide.kubeflow import GROUP as KUBEFLOW
from spark_operator.decide.kubeflow import PLURAL, decide_kubeflow
from spark_operator.decide.problems import SparkProblem
from spark_operator.decide.refusals import refused_namespace
from spark_operator.decide.steps import (
    CreateDriver,
    CreateMirror,
    DeletePods,
    NoMirror,
    ReadLog,
    ReadMirror,
    ReadPods,
    SparkView,
    Step,
    SuspendMirror,
)
from spark_operator.engine.drivers import Drivers, PodDrivers
from spark_operator.engine.effects import delete_run, not_carried_out
from spark_operator.engine.local import LocalDrivers
from spark_operator.kube.port import SparkKube
from spark_operator.metrics import SparkMetrics
from spark_operator.resources.application import Engine, RestartType, SparkApplication
from spark_operator.resources.status import SparkState

MAX_ROUNDS = 12
"""Steps in one reconciliation: the longest sequence (read, log, failure, deletion, read) needs seven, and some spare for conflicts."""

AGAIN_S = 0.5
"""Delay after a reconciliation that exceeded the number of steps."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SparkPorts:
    """Ports and metrics for SparkApplications; None for engines that are switched off."""

    kube: SparkKube
    metrics: SparkMetrics
    local: LocalDrivers | None = None
    kubeflow: bool = False
    """Whether resources of Kubeflow's operator may be created."""
    namespaces: frozenset[str] = frozenset()
    """Namespaces in which SparkApplications run; empty for all served namespaces."""


class SparkReconciler:
    """Reconciler of SparkApplications."""

    def __init__(
        self,
        cache: ResourceCache,
        ports: SparkPorts,
        writer: Writer,
        now: Callable[[], datetime],
        clock: Callable[[], float],
        wake: Callable[[Key], None],
    ) -> None:
        """`wake` enqueues a schedule when one of its runs changes: the watch does not report the operator's own writes."""
        self._cache = cache
        self._kube = ports.kube
        self._local = ports.local
        self._writer = writer
        self._metrics = ports.metrics
        self._now = now
        self._wake = wake
        self._pods = PodDrivers(ports.kube, clock)
        self._refusals = _refusals(ports)
        self._namespaces = ports.namespaces

    async def reconcile(self, ref: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Reconcile each resource of a batch once; each SparkApplication has its own queue partition."""
        assert all((key.namespace, key.name) == (ref.namespace, ref.name) for key in keys), ref
        return {key: await self._reconcile(key) for key in keys}

    async def close(self) -> None:
        """End child processes."""
        if self._local is not None:
            await self._local.close()

    async def _reconcile(self, key: Key) -> Outcome:
        view: SparkView | None = None
        for _ in range(MAX_ROUNDS):
            item = self._cache.get_as(SparkApplication, key)
            if item is None:
                await self._end_orphans()
                return Done()
            view = view or SparkView(self._now(), self._refusal(item))
            step = self._decide(item, view)
            if isinstance(step, Done | Wait | Retry):
                return step
            if isinstance(step, WriteStatus | Mark):
                outcome = await self._writer.carry_out(item, step)
                if outcome is not None:
                    return outcome
                self._count_transition(item)
                continue
            try:
                view = await self._do(item, view, step)
            except KubeError as error:
                return not_carried_out(key, error)
        return Wait(AGAIN_S)

    def _refusal(self, item: SparkApplication) -> SparkProblem | None:
        return refused_namespace(item.key.namespace, self._namespaces) or self._refusals.get(item.spec.engine)

    def _decide(self, item: SparkApplication, view: SparkView) -> Step:
        paused = decide_pause(item.metadata, item.status, view.now)
        if paused is not None:
            return paused
        decide = decide_kubeflow if item.spec.engine is Engine.SPARK_OPERATOR else decide_spark
        if item.spec.restart_policy.type is RestartType.ALWAYS:  # a service, which runs again wherever it is created
            return decide(item, view)
        restored = decide_started(item.metadata, item.status, view.now, status_follows=True)
        if restored is not None:
            return restored
        step = decide(item, view)
        return marked_first(item.metadata, step, effect=isinstance(step, CreateDriver | CreateMirror))

    async def _do(self, item: SparkApplication, view: SparkView, step: Step) -> SparkView:
        """Carry out a step; return the view after it, without pods after a write."""
        drivers = self._drivers(item)
        if isinstance(step, ReadPods):
            return replace(view, pods=await drivers.pods(item))
        if isinstance(step, CreateDriver):
            log.info("Creating driver", extra={"resource": str(item.key), "attempt": step.attempt})
            return replace(view, created=await drivers.create(item, step.attempt), pods=None)
        if isinstance(step, DeletePods):
            for pod in step.pods:
                await drivers.delete(item, pod)
            return replace(view, pods=None)
        if isinstance(step, ReadLog):
            return replace(view, log=await self._read_log(item, drivers, step))
        if isinstance(step, DeleteResource):
            log.info("Deleting SparkApplication: TTL expired", extra={"resource": str(item.key)})
            await delete_run(self._kube, self._cache, item)
            return view
        return await self._mirror(item, view, step)

    async def _read_log(self, item: SparkApplication, drivers: Drivers, step: ReadLog) -> str:
        """Return the end of a driver's log, empty if it is no longer available; a failure must not block the application."""
        try:
            return await drivers.log(item, step.pod, step.lines)
        except KubeError as error:
            log.info("Failed to read driver log", extra={"resource": str(item.key), "error": str(error)})
            return ""

    async def _mirror(self, item: SparkApplication, view: SparkView, step: Step) -> SparkView:
        namespace, name = item.key.namespace, item.key.name
        if isinstance(step, CreateMirror):
            try:
                await self._kube.create_kubeflow(step.manifest)
            except ConflictError as error:
                log.info(
                    "Kubeflow SparkApplication already exists", extra={"resource": str(item.key), "error": str(error)}
                )
            except (RefusedError, NotFoundError) as error:
                message = f"Kubeflow's operator is not installed, or rejects the application: {error}."
                return replace(view, mirror=SparkProblem("NotHandedOver", message))
        elif isinstance(step, SuspendMirror):
            assert isinstance(view.mirror, Mapping), item.key
            version = view.mirror["metadata"]["resourceVersion"]
            await self._kube.suspend_kubeflow(namespace, name, version, suspend=step.suspend)
        else:
            assert isinstance(step, ReadMirror), step
        try:
            return replace(view, mirror=await self._kube.get_kubeflow(namespace, name))
        except NotFoundError:
            return replace(view, mirror=NoMirror())

    async def _end_orphans(self) -> None:
        """End the processes of deleted applications; Kubernetes itself deletes their pods."""
        if self._local is not None:
            found = self._cache.all_of(kinds.SPARK_APPLICATION)
            await self._local.keep({item.metadata.uid for item in found})

    def _drivers(self, item: SparkApplication) -> Drivers:
        if item.spec.engine is Engine.LOCAL:
            assert self._local is not None, item.key  # its rejection comes before any step
            return self._local
        return self._pods

    def _count_transition(self, before: SparkApplication) -> None:
        """Count a state transition, and enqueue the schedule of the run."""
        item = self._cache.get_as(SparkApplication, before.key)
        if item is None or item.status.state is None or item.status.state is before.status.state:
            return
        if item.metadata.owner is not None:
            self._wake(item.metadata.owner)
        self._metrics.spark_transitions.labels(item.spec.engine.value, item.status.state.value).inc()
        if item.status.state is SparkState.SUBMITTED and item.status.attempts == 1:
            age_s = (self._now() - item.metadata.created).total_seconds()
            self._metrics.spark_submission.observe(max(0.0, age_s))


def _refusals(ports: SparkPorts) -> dict[Engine, SparkProblem]:
    """Return why engines are not available."""
    found: dict[Engine, SparkProblem] = {}
    if ports.local is None:
        message = "Engine Local runs programs with the rights of the operator: start the operator with --spark-local to allow it."
        found[Engine.LOCAL] = SparkProblem("EngineSwitchedOff", message)
    if not ports.kubeflow:
        message = (
            f"Engine SparkOperator creates {PLURAL}.{KUBEFLOW}: start the operator with --spark-operator to allow it."
        )
        found[Engine.SPARK_OPERATOR] = SparkProblem("EngineSwitchedOff", message)
    return found
