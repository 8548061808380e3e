"""Reassignment reconciler: reads all moves once per batch, then processes each Reassignment, the oldest first.

Of two overlapping plans the older one starts, and the other one fails with a message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from kafka_operator.admin.port import Admin
from kafka_operator.decide.clusters.cordon import brokers_to_empty, missing_cordons, remaining_cordons
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.replica_dirs import ReplicaDirs
from kafka_operator.decide.plans.desired_plan import Checked
from kafka_operator.decide.plans.goals import without_cordoned
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.guard import Reading
from kafka_operator.decide.reassignments.move_progress import Measured
from kafka_operator.decide.reassignments.plan_preparation import plan_for
from kafka_operator.decide.reassignments.reassignment import decide_reassignment, decide_reassignment_unavailable
from kafka_operator.decide.reassignments.reassignment_deletion import (
    decide_reassignment_deletion,
    decide_reassignment_deletion_unavailable,
)
from kafka_operator.decide.reassignments.reassignment_refused import decide_refused, decide_refused_unavailable
from kafka_operator.decide.reassignments.reassignment_steps import (
    AlterThrottle,
    MakePlan,
    ReadThrottle,
    StorePlan,
    ThrottleInForce,
)
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView, Step
from kafka_operator.decide.reassignments.throttle import ObservedThrottle
from kafka_operator.decide.steps import MoveLogDirs, Submit
from kafka_operator.decide.tenants.tenancy import NOT_ALLOWED, Refusal, refusal_of_topic, refusal_of_whole_cluster
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.engine.guard_reader import GuardReader, is_guarded
from kafka_operator.engine.move_progress import MoveProgress
from kafka_operator.engine.oldest_first import OldestFirst
from kafka_operator.engine.plan_store import PlanStore
from kafka_operator.engine.reassignment_reads import (
    PartitionReader,
    PartitionSnapshot,
    alter_throttle,
    query_material,
    query_throttle,
    topics_of,
)
from kafka_operator.engine.replica_dir_reader import ReplicaDirReader
from kafka_operator.engine.tenants import Tenants
from kafka_operator.resources.cluster_ref import ClusterRef, cluster_key
from kafka_operator.resources.reassignment import Partition, Reassignment, State
from kafka_operator.resources.reassignment_terms import Approval
from reconciler.decide.pause import decide_pause
from reconciler.decide.started import decide_started, marked_first
from reconciler.decide.steps import Done, Outcome, Retry, Wait, WriteStatus
from reconciler.engine.retries import Retries
from reconciler.engine.writer import Writer
from reconciler.names import Key

MAX_ROUNDS = 30
"""Steps in one reconciliation: the longest sequence (plan, claim, store, record, read, write, mark, throttle, read, submit, read) needs fifteen."""

CarriedOut = MakePlan | StorePlan | ReadThrottle | AlterThrottle | ThrottleInForce | Submit | MoveLogDirs
"""Steps whose result is the input of the next decision."""

T = TypeVar("T")


@dataclass
class Batch:
    """State of a cluster during a batch; every change to the cluster is followed by another read."""

    ref: ClusterRef
    topics: frozenset[str]
    snapshot: PartitionSnapshot | Unavailable = field(default_factory=PartitionSnapshot)
    dirs: dict[Key, ReplicaDirs] = field(default_factory=dict)
    """Directories of replicas, by the Reassignment that moves them between directories."""


class ReassignmentReconciler(OldestFirst[Reassignment, Batch]):
    """Reconciler of Reassignments."""

    def __init__(
        self,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        retries: Retries,
        now: Callable[[], datetime],
        plans: PlanStore,
        move_progress: MoveProgress,
        guards: GuardReader,
        wake: Callable[[Key], None],
    ) -> None:
        """`wake` enqueues a Cluster that has to change the cordon of brokers."""
        self._cache = cache
        self._tenants = Tenants(cache)
        self._connections = connections
        self._writer = writer
        self._retries = retries
        self._now = now
        self._plans = plans
        self._move_progress = move_progress
        self._guards = guards
        self._wake = wake
        self._in_force: dict[Key, Hashable] = {}
        self._dir_reader = ReplicaDirReader(move_progress.clock)
        self._readers: dict[ClusterRef, PartitionReader] = {}

    def _find(self, key: Key) -> Reassignment | None:
        return self._cache.reassignment(key)

    def _is_finished(self, item: Reassignment) -> bool:
        if item.metadata.deleted is not None:
            return not item.metadata.has_finalizer
        return item.is_finished

    async def _begin(self, ref: ClusterRef, unfinished: Sequence[Reassignment]) -> Batch:
        batch = Batch(ref, _topics([await self._plans.load(item) for item in unfinished if item.status.recorded]))
        if unfinished:
            batch.snapshot = await self._read(batch)
        return batch

    async def _process(self, batch: Batch, key: Key) -> Outcome:
        view = ReassignmentView(now=self._now(), waited_s=self._retries.waited_s(key))
        for _ in range(MAX_ROUNDS):
            item = self._cache.reassignment(key)
            if item is None:
                self._forget(key)
                return Done()
            item = self._tenants.with_bounded_throttle(item)
            view = await self._seen(batch, item, view)
            step = self._decide(batch, item, view)
            if isinstance(step, Done | Retry | Wait):
                if isinstance(step, Retry) and (view.missing_cordons or view.remaining_cordons):
                    self._wake(cluster_key(item.cluster))
                return step
            if isinstance(step, CarriedOut):
                view = await self._carry_out(batch, item, step, view)
                continue
            outcome = await self._writer.carry_out(item, step)
            if isinstance(step, WriteStatus) and step.status.state != item.status.state and brokers_to_empty(item):
                self._wake(cluster_key(item.cluster))
            if outcome is not None:
                return outcome
        return Retry()

    def _decide(self, batch: Batch, item: Reassignment, view: ReassignmentView) -> Step:
        refusal = self._refusal(item, view)
        paused = decide_pause(item.metadata, item.status, view.now)
        if paused is not None and (refusal is None or item.status.throttle is None or not isinstance(paused, Done)):
            return paused
        restored = decide_started(item.metadata, item.status, view.now)
        if restored is not None:
            return restored
        step = self._decide_allowed(batch, item, view, refusal)
        effect = isinstance(step, AlterThrottle | Submit | MoveLogDirs) or (
            item.is_finished and not isinstance(step, WriteStatus)
        )
        return marked_first(item.metadata, step, effect=effect, digest=item.status.digest)

    def _decide_allowed(
        self, batch: Batch, item: Reassignment, view: ReassignmentView, refusal: Refusal | None
    ) -> Step:
        deleted = item.metadata.deleted is not None
        if refusal is not None and not item.is_finished:
            if isinstance(batch.snapshot, Unavailable):
                return decide_refused_unavailable(item, batch.snapshot, refusal, view)
            if item.status.recorded or item.status.throttle is not None or deleted:
                return decide_refused(item, view, refusal)
        if isinstance(batch.snapshot, Unavailable):
            if deleted:
                return decide_reassignment_deletion_unavailable(item, batch.snapshot, view.waited_s)
            return decide_reassignment_unavailable(item, batch.snapshot, view.now, view.waited_s)
        return decide_reassignment_deletion(item, view) if deleted else decide_reassignment(item, view)

    def _refusal(self, item: Reassignment, view: ReassignmentView) -> Refusal | None:
        """Return why its namespace lacks the right; there is no await between this check and the step that depends on it."""
        if item.key.namespace == item.cluster.namespace:
            return None
        return self._tenants.refusal_of_move(item, _topics([] if view.recorded is None else [view.recorded]))

    async def _seen(self, batch: Batch, item: Reassignment, view: ReassignmentView) -> ReassignmentView:
        """Return the view with the current state of the cluster and of other Reassignments."""
        if isinstance(batch.snapshot, Unavailable):
            return view
        snapshot = batch.snapshot
        is_finished = self._is_finished(item)
        recorded = await self._plans.load(item) if item.status.recorded and not is_finished else None
        cluster = self._cache.cluster(item.cluster)
        view = replace(
            view,
            cluster_id=snapshot.cluster_id,
            broker_ids=snapshot.broker_ids,
            topics=snapshot.topics,
            moves=snapshot.moves,
            recorded=recorded,
            rivals={}
            if is_finished or (item.status.begun and item.status.state is not State.ROLLING_BACK)
            else await self._rivals(item),
            in_force=self._in_force.get(item.key),
            other_throttles=self._tenants.other_throttles(item),
            missing_cordons=missing_cordons(item, cluster),
            remaining_cordons=remaining_cordons(item, cluster),
        )
        if item.is_between_log_dirs and isinstance(recorded, Recorded):
            view = replace(view, dirs=await self._dirs(batch, item, recorded))
        if view.measured is None and isinstance(recorded, Recorded) and item.metadata.deleted is None:
            view = replace(view, measured=await self._measured(batch, item, view))
        if isinstance(recorded, Recorded) and is_guarded(item):
            view = replace(view, guard=await self._readings(batch, item, recorded))
        else:
            self._guards.forget(item.key)
        return view

    async def _carry_out(
        self,
        batch: Batch,
        item: Reassignment,
        step: CarriedOut,
        view: ReassignmentView,
    ) -> ReassignmentView:
        """Carry out a step; return the view with the result."""
        if isinstance(step, MakePlan):
            return replace(view, wanted=await self._make_plan(batch, item, view))
        if isinstance(step, StorePlan):
            stored = await self._plans.keep(item, step)
            return replace(view, stored={**view.stored, step.digest: stored})
        if isinstance(step, ThrottleInForce):
            self._in_force[item.key] = step.seen_as
            return view
        if isinstance(step, ReadThrottle):
            observed = await self._use(batch, lambda admin: query_throttle(admin, step, view.throttle))
            return view if observed is None else replace(view, throttle=observed)
        if isinstance(step, AlterThrottle):
            self._in_force.pop(item.key, None)
            refused = await self._use(batch, lambda admin: alter_throttle(admin, step))
            return replace(view, altered=True, unaltered=refused or {}, throttle=ObservedThrottle())
        if isinstance(step, MoveLogDirs):
            rejected = await self._use(batch, lambda admin: admin.move_log_dirs(step.targets))
            batch.dirs.pop(item.key, None)
            return replace(view, submitted=True, failures=view.failures or rejected or {})
        failures = await self._use(batch, lambda admin: admin.alter_reassignments(step.targets))
        if failures is not None:
            batch.snapshot = await self._read(batch, {partition.topic for partition in step.targets})
        return replace(view, submitted=True, failures=view.failures or failures or {})

    async def _make_plan(
        self, batch: Batch, item: Reassignment, view: ReassignmentView
    ) -> Checked | PlanProblem | None:
        """Compute the plan, and read its topics from now on; a Cluster of another namespace may allow only some plans."""
        cluster = self._cache.cluster(item.cluster)
        assert cluster is not None, item.key
        if item.goal is not None and not item.goal.topics:
            refusal = refusal_of_whole_cluster(cluster, item.key.namespace)
            if refusal is not None:
                return PlanProblem(refusal.reason, refusal.message, may_pass=True)
        if item.is_between_log_dirs and item.key.namespace != item.cluster.namespace:
            return PlanProblem(NOT_ALLOWED, "goal.balanceLogDirs can be used only in the namespace of the Cluster.")
        document = None if item.plan_from is None else await self._plans.read(item.key.namespace, item.plan_from)
        names = topics_of(item, document)
        sized = item.goal is not None or item.approval is Approval.REQUIRED
        for name in names or ():
            refusal = refusal_of_topic(cluster, item.key.namespace, name)
            if refusal is not None:
                return PlanProblem(refusal.reason, refusal.message, may_pass=True)
        material = await self._use(
            batch, lambda admin: query_material(admin, names, document, sized=sized, log_dirs=item.is_between_log_dirs)
        )
        if material is None or isinstance(batch.snapshot, Unavailable):
            return None
        if item.goal is not None:
            cordoned = [cordon.broker_id for cordon in cluster.status.cordons]
            material = replace(material, layout=without_cordoned(material.layout, item.goal, cordoned))
        batch.snapshot = replace(batch.snapshot, topics={**batch.snapshot.topics, **material.layout.topics})
        self._reader_of(batch.ref).record(material.layout.topics)
        plan = plan_for(item, material, replace(view, topics=material.layout.topics))
        batch.topics |= _topics([] if isinstance(plan, PlanProblem) else [plan.recorded])
        return plan

    async def _dirs(self, batch: Batch, item: Reassignment, recorded: Recorded) -> ReplicaDirs:
        """Return the directories of the replicas, as read since the last change of them in this batch."""
        if item.key not in batch.dirs and isinstance(batch.snapshot, PartitionSnapshot):
            alive = batch.snapshot.broker_ids
            found = await self._use(batch, lambda admin: self._dir_reader.read(admin, item, recorded, alive))
            if found is not None:
                batch.dirs[item.key] = found
        return batch.dirs.get(item.key, {})

    async def _measured(self, batch: Batch, item: Reassignment, view: ReassignmentView) -> Measured | None:
        if not self._move_progress.due(item):
            return None
        return await self._use(batch, lambda admin: self._move_progress.measure(admin, item, view))

    async def _readings(self, batch: Batch, item: Reassignment, recorded: Recorded) -> tuple[Reading, ...] | None:
        latest = self._guards.latest(item)
        if latest is not None:
            return latest
        return await self._use(batch, lambda admin: self._guards.read(admin, item, _topics([recorded])))

    async def _read(self, batch: Batch, changed: Collection[str] = ()) -> PartitionSnapshot | Unavailable:
        reader = self._reader_of(batch.ref)
        try:
            return await self._connections.use(batch.ref, lambda admin: reader.read(admin, batch.topics, changed))
        except ClusterUnavailableError as error:
            return error.unavailable

    def _reader_of(self, ref: ClusterRef) -> PartitionReader:
        return self._readers.setdefault(ref, PartitionReader(self._move_progress.clock))

    async def _use(self, batch: Batch, call: Callable[[Admin], Awaitable[T]]) -> T | None:
        """Make a call; if the cluster is unreachable, record that and return None."""
        try:
            return await self._connections.use(batch.ref, call)
        except ClusterUnavailableError as error:
            batch.snapshot = error.unavailable
            return None

    async def _rivals(self, item: Reassignment) -> Mapping[Partition, Key]:
        """Return the partitions of other active Reassignments that are allowed to move them."""
        rivals: dict[Partition, Key] = {}
        for other in self._tenants.moves(item.cluster):
            if other.key == item.key or not other.status.begun:
                continue
            if item.key.namespace == item.cluster.namespace and self._tenants.yields(other, item.cluster):
                continue
            recorded = await self._plans.load(other)
            named = {name for name in _topics([recorded]) if self._tenants.may_name(item.cluster, other, name)}
            if isinstance(recorded, Recorded):
                found = (entry.partition for entry in recorded.plan if entry.partition.topic in named)
                rivals |= dict.fromkeys(found, other.key)
        return rivals

    def _forget(self, key: Key) -> None:
        self._in_force.pop(key, None)
        self._move_progress.forget(key)
        self._dir_reader.forget(key)
        self._guards.forget(key)


def _topics(plans: Iterable[Recorded | PlanProblem]) -> frozenset[str]:
    """Return the topics of plans and of their bases."""
    return frozenset(
        entry.partition.topic
        for recorded in plans
        if isinstance(recorded, Recorded)
        for entries in (recorded.plan, recorded.base)
        for entry in entries
    )
