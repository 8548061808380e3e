"""ScheduledSparkApplication reconciler: creates and deletes runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from reconciler.decide.cron_times import read_times
from reconciler.decide.pause import decide_pause
from reconciler.decide.steps import Done, Outcome, Retry, Wait, WriteStatus
from reconciler.engine.cache import ResourceCache
from reconciler.engine.writer import Writer
from reconciler.kube.port import ConflictError, KubeError, NotFoundError, RefusedError
from reconciler.names import Key, NamespacedName
from reconciler.resources.metadata import read_time
from spark_operator import kinds
from spark_operator.decide.problems import SparkProblem
from spark_operator.decide.refusals import refused_namespace
from spark_operator.decide.schedule import CreateRun, ScheduleView, Step, decide_schedule
from spark_operator.engine.effects import delete_run, not_carried_out
from spark_operator.kube.port import SparkKube
from spark_operator.metrics import SparkMetrics
from spark_operator.resources.application import SparkApplication, read_spark_application
from spark_operator.resources.schedule import ScheduledSparkApplication

MAX_ROUNDS = 10
"""Steps in one reconciliation: history, replacement, run, status, and some spare for conflicts."""

AGAIN_S = 0.5
"""Delay after a reconciliation that exceeded the number of steps."""

log = logging.getLogger(__name__)


class ScheduleReconciler:
    """Reconciler of ScheduledSparkApplications."""

    def __init__(
        self,
        cache: ResourceCache,
        kube: SparkKube,
        writer: Writer,
        metrics: SparkMetrics,
        now: Callable[[], datetime],
        wake: Callable[[Key], None],
        namespaces: frozenset[str] = frozenset(),
    ) -> None:
        """`wake` enqueues a run: the watch does not report the operator's own writes.

        Schedules run only in `namespaces`; empty for all served namespaces.
        """
        self._namespaces = namespaces
        self._cache = cache
        self._kube = kube
        self._writer = writer
        self._metrics = metrics
        self._now = now
        self._wake = wake

    async def reconcile(self, ref: NamespacedName, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Reconcile each resource of a batch once; each schedule has its own queue partition."""
        assert all((key.namespace, key.name) == (ref.namespace, ref.name) for key in keys), ref
        return {key: await self._reconcile(key) for key in keys}

    async def _reconcile(self, key: Key) -> Outcome:
        refusal = refused_namespace(key.namespace, self._namespaces)
        view = ScheduleView(self._now(), refusal=refusal)
        for _ in range(MAX_ROUNDS):
            item = self._cache.get_as(ScheduledSparkApplication, key)
            if item is None:
                return Done()
            view = replace(view, runs=self._runs(key))
            step = self._decide(item, view)
            if isinstance(step, Done | Wait | Retry):
                return step
            if isinstance(step, WriteStatus):
                outcome = await self._writer.carry_out(item, step)
                if outcome is not None:
                    return outcome
                self._count(item)
                view = ScheduleView(self._now(), refusal=refusal)
                continue
            try:
                if isinstance(step, CreateRun):
                    view = replace(view, created=await self._create(item, step))
                else:
                    for run in step.runs:
                        log.info("Deleting scheduled run", extra={"resource": str(run.key)})
                        await delete_run(self._kube, self._cache, run)
            except KubeError as error:
                return not_carried_out(key, error)
        return Wait(AGAIN_S)

    def _decide(self, item: ScheduledSparkApplication, view: ScheduleView) -> Step:
        return decide_pause(item.metadata, item.status, view.now) or decide_schedule(item, view)

    def _runs(self, schedule: Key) -> list[SparkApplication]:
        """Return the SparkApplications that a schedule owns."""
        applications = self._cache.all_of(kinds.SPARK_APPLICATION)
        return [run for run in applications if isinstance(run, SparkApplication) and run.metadata.owner == schedule]

    async def _create(self, item: ScheduledSparkApplication, step: CreateRun) -> str | SparkProblem:
        """Create a run, or find the one that an earlier process created; it is cached at once."""
        key = Key(kinds.SPARK_APPLICATION, item.key.namespace, step.name)
        try:
            raw = await self._kube.create_run(key, step.content)
        except ConflictError:
            found = self._cache.get_as(SparkApplication, key)
            if found is None:  # the watch delivers it, or its deletion
                raise
            if found.metadata.owner != item.key:
                message = (
                    f"A SparkApplication {step.name} already exists and does not belong to this schedule. Delete it."
                )
                return SparkProblem("RunNameTaken", message)
            return step.name
        except (RefusedError, NotFoundError) as error:
            return SparkProblem("RunRefused", f"The API server rejected the run: {error}. Check spec.template.")
        self._cache.store(read_spark_application(raw))
        self._wake(key)
        return step.name

    def _count(self, before: ScheduledSparkApplication) -> None:
        item = self._cache.get_as(ScheduledSparkApplication, before.key)
        if item is None or item.status.last_schedule_time in {None, before.status.last_schedule_time}:
            return
        if item.status.last_run_name != before.status.last_run_name:
            self._metrics.spark_runs.inc()
        last = item.status.last_schedule_time
        assert last is not None, item.key
        times = read_times(item.schedule, item.time_zone, before.since)
        missed = times.missed(before.since, read_time(last))
        if missed is not None and missed.count > 1:
            self._metrics.spark_missed.inc(missed.count - 1)
