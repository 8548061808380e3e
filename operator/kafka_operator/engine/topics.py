"""Topic reconciler: one Admin request per kind for a batch, and one Kubernetes write per Topic.

Every round decides the next step of each Topic, and carries the steps out; Kafka is read again only after a change.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Unavailable
from kafka_operator.decide.steps import Apply, CancelReassignment, Claim, CreateReassignment
from kafka_operator.decide.tenants.ownership import winner
from kafka_operator.decide.tenants.quota import QUOTA_EXCEEDED
from kafka_operator.decide.tenants.tenancy import Refusal, refusal_of_topic
from kafka_operator.decide.topics.topic import Step, TopicView, decide_topic, decide_topic_unavailable, refused
from kafka_operator.decide.topics.topic_deletion import decide_topic_deletion, decide_topic_deletion_unavailable
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.engine.owned_reassignments import OwnedReassignments
from kafka_operator.engine.quota_ledger import QuotaLedger, is_limited
from kafka_operator.engine.tenants import Tenants
from kafka_operator.engine.topic_effects import TopicEffects
from kafka_operator.engine.topic_reads import query_topics
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.reassignment import Reassignment
from kafka_operator.resources.topic import Topic, TopicStatus
from reconciler.decide.pause import decide_pause
from reconciler.decide.steps import Done, Outcome, Release, ResourceEvent, Retry, Wait, WriteStatus
from reconciler.engine.retries import Retries
from reconciler.engine.writer import Writer
from reconciler.names import Key

MAX_ROUNDS = 8
"""Steps of one Topic in one reconciliation: the longest sequence (claim, alter, status, claim, done) needs five, and some spare for conflicts."""


@dataclass
class Batch:
    """State of one batch during reconciliation."""

    ref: ClusterRef
    reassignments: Mapping[str, Mapping[str, Reassignment]]
    """By namespace and name."""
    refusals: Mapping[Key, Refusal] = field(default_factory=dict)
    observed: Mapping[str, KafkaTopic] | None = None
    """None: read before the next decision."""
    unavailable: Unavailable | None = None
    pruned: bool = False
    """Whether Kafka was queried for counted topics that no Topic manages."""
    room_after_s: float | None = None
    """When the quota may have room for Topics that exceeded it."""
    applied: set[Key] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)
    """By the Kafka topic's name: failures of reading it, or of changing it."""
    asked: dict[Key, Failure] = field(default_factory=dict)
    """Failures of validation, for Topics that observe."""


class TopicReconciler:
    """Reconciler of Topics."""

    def __init__(
        self,
        cache: Cache,
        connections: ConnectionPool,
        writer: Writer,
        owned: OwnedReassignments,
        retries: Retries,
        now: Callable[[], datetime],
    ) -> None:
        self._cache = cache
        self._tenants = Tenants(cache)
        self._ledger = QuotaLedger(cache, connections, writer)
        self._connections = connections
        self._writer = writer
        self._owned = owned
        self._recorded_events: dict[Key, ResourceEvent] = {}
        """Recorded events of effects that may have to be repeated until Kafka shows them."""
        self._retries = retries
        self._now = now

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Reconcile each Topic of a batch once; all of them refer to one Cluster."""
        batch = Batch(ref, self._reassignments())
        outcomes: dict[Key, Outcome] = {}
        pending = list(keys)
        for _ in range(MAX_ROUNDS):
            topics = [topic for key in pending if (topic := self._cache.topic(key)) is not None]
            batch.refusals = self._refusals(batch, topics)
            if any(self._lacks_room(batch, topic) for topic in topics) and not batch.pruned:
                batch.pruned = True
                batch.room_after_s = await self._ledger.prune(ref, self._now())
                continue
            await self._read(batch, topics)
            steps = [(topic, self._decide(topic, batch)) for topic in topics]
            outcomes.update({topic.key: step for topic, step in steps if isinstance(step, Done | Retry | Wait)})
            outcomes.update(await self._carry_out(batch, steps))
            pending = [topic.key for topic in topics if topic.key not in outcomes]
            if not pending:
                break
        ended = {key: outcomes.get(key, Retry() if key in pending else Done()) for key in keys}
        if batch.room_after_s is not None:
            waiting = {key for key in ended if key in batch.refusals and isinstance(ended[key], Done)}
            ended |= dict.fromkeys(waiting, Wait(batch.room_after_s))
        for key, outcome in ended.items():
            if not isinstance(outcome, Retry):
                self._recorded_events.pop(key, None)
        return ended

    def _refusals(self, batch: Batch, topics: Sequence[Topic]) -> Mapping[Key, Refusal]:
        """Return why Topics of other namespaces are not allowed on the Cluster, by the current rules."""
        ref, cluster = batch.ref, self._cache.cluster(batch.ref)
        if cluster is None or all(topic.key.namespace == ref.namespace for topic in topics):
            return {}
        refusals = dict(self._ledger.refusals(ref))
        for topic in topics:
            refusal = refusal_of_topic(cluster, topic.key.namespace, topic.name)
            if refusal is not None:
                refusals[topic.key] = refusal
        return refusals

    def _reassignments(self) -> Mapping[str, Mapping[str, Reassignment]]:
        """Return all Reassignments by namespace and name."""
        found: dict[str, dict[str, Reassignment]] = defaultdict(dict)
        for key in self._cache.keys(kinds.REASSIGNMENT):
            item = self._cache.reassignment(key)
            if item is not None:
                found[key.namespace][key.name] = item
        return found

    async def _read(self, batch: Batch, topics: Sequence[Topic]) -> None:
        wanted = [topic for topic in topics if topic.key not in batch.refusals or topic.metadata.deleted is not None]
        if batch.observed is not None or batch.unavailable is not None or not wanted:
            return
        try:
            snapshot = await self._connections.use(batch.ref, lambda admin: query_topics(admin, wanted))
        except ClusterUnavailableError as error:
            batch.unavailable = error.unavailable
            return
        batch.observed = snapshot.topics
        batch.failures = {**snapshot.failures, **batch.failures}

    def _decide(self, topic: Topic, batch: Batch) -> Step:
        paused = decide_pause(topic.metadata, topic.status, self._now())
        if paused is not None:
            return paused
        waited_s = self._retries.waited_s(topic.key)
        refusal = batch.refusals.get(topic.key)
        deleted = topic.metadata.deleted is not None
        if refusal is not None and not deleted:
            return refused(topic, refusal, self._now())
        if batch.unavailable is not None:
            if deleted:
                return decide_topic_deletion_unavailable(topic, batch.unavailable, waited_s)
            return decide_topic_unavailable(topic, batch.unavailable, self._now(), waited_s)
        assert batch.observed is not None, batch.ref
        view = TopicView(
            now=self._now(),
            waited_s=waited_s,
            refusal=refusal,
            owner=self._other_owner(topic),
            observed=batch.observed.get(topic.name),
            applied=topic.key in batch.applied,
            failure=batch.asked.get(topic.key) or batch.failures.get(topic.name),
            reassignments=batch.reassignments.get(topic.key.namespace, {}),
        )
        return decide_topic_deletion(topic, view) if deleted else decide_topic(topic, view)

    def _other_owner(self, topic: Topic) -> Key | None:
        """Return the other Topic that owns the Kafka topic; None when it is this one, or when this one only observes."""
        if topic.observes:
            return None
        claims = [
            claim
            for claim in self._cache.claims(topic)
            if not claim.observes and self._tenants.may_name(topic.cluster, claim, topic.name)
        ]
        owner = winner(claims or [topic])
        return None if owner.key == topic.key else owner.key

    async def _carry_out(self, batch: Batch, steps: Sequence[tuple[Topic, Step]]) -> Mapping[Key, Outcome]:
        """Carry out one step of each Topic; return the outcomes of the Topics that are finished."""
        steps = await self._noted(batch, steps)
        writes = [(topic, step) for topic, step in steps if not isinstance(step, Apply | Done | Retry | Wait)]
        results = await asyncio.gather(*(self._write(topic, step) for topic, step in writes))
        outcomes = {
            topic.key: outcome for (topic, _), outcome in zip(writes, results, strict=True) if outcome is not None
        }
        asks = {topic.name: (topic, step) for topic, step in steps if isinstance(step, Apply) and step.asks_only}
        batch.applied.update(topic.key for topic, step in steps if isinstance(step, Apply) and step.asks_only)
        if asks:
            await self._ask(batch, list(asks.values()))
        applies = [(topic, step) for topic, step in steps if isinstance(step, Apply) and not step.asks_only]
        if applies:
            await self._apply(batch, applies)
        return outcomes

    async def _noted(self, batch: Batch, steps: Sequence[tuple[Topic, Step]]) -> Sequence[tuple[Topic, Step]]:
        """Record what counts for quotas; return the steps that may be carried out: others wait until their topics are recorded."""
        if batch.observed is None or not self._ledger.is_kept(batch.ref):
            return steps
        owned = [
            (topic, step)
            for topic, step in steps
            if topic.key not in batch.refusals and topic.name not in batch.failures and self._other_owner(topic) is None
        ]
        if await self._ledger.note(batch.ref, owned, batch.observed):
            return steps
        cluster = self._cache.cluster(batch.ref)
        return [(topic, step) for topic, step in steps if not is_limited(cluster, topic.key.namespace)]

    def _lacks_room(self, batch: Batch, topic: Topic) -> bool:
        refusal = batch.refusals.get(topic.key)
        return refusal is not None and refusal.reason == QUOTA_EXCEEDED

    async def _write(
        self, topic: Topic, step: Claim | Release | WriteStatus[TopicStatus] | CreateReassignment | CancelReassignment
    ) -> Outcome | None:
        if isinstance(step, CreateReassignment | CancelReassignment):
            return await self._owned.carry_out(topic, step)
        return await self._writer.carry_out(topic, step)

    async def _ask(self, batch: Batch, asks: Sequence[tuple[Topic, Apply]]) -> None:
        """Validate Topics with policy Observe with the brokers; a rejection does not affect other Topics."""
        effects = await TopicEffects(self._connections, batch.ref, self._tenants.may_have).carry_out(asks)
        batch.asked.update(
            {topic.key: effects.failures[topic.name] for topic, _ in asks if topic.name in effects.failures}
        )
        batch.unavailable = effects.unavailable

    async def _apply(self, batch: Batch, applies: Sequence[tuple[Topic, Apply]]) -> None:
        effects = await TopicEffects(self._connections, batch.ref, self._tenants.may_have).carry_out(applies)
        batch.applied.update(topic.key for topic, _ in applies)
        batch.failures.update(effects.failures)
        batch.unavailable = effects.unavailable
        batch.observed = None
        if effects.unavailable is not None:
            return
        for topic, step in applies:
            if (
                step.event is not None
                and topic.name not in effects.failures
                and self._recorded_events.get(topic.key) != step.event
            ):
                self._recorded_events[topic.key] = step.event
                await self._writer.record_event(topic, step.event)
