"""Batches of Topics of one cluster: one Admin call of each sort for all of them, one write each to Kubernetes.

Every round decides each Topic's next step on what is known, and carries the steps out; Kafka is looked at again only after something
was changed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafka_operator.admin.port import Refusals
from kafka_operator.decide.observed import Away, Failure, KafkaTopic
from kafka_operator.decide.ownership import winner
from kafka_operator.decide.steps import (
    AlterConfig,
    Apply,
    CreateTopic,
    Done,
    DropTopic,
    GrowTopic,
    Retry,
    StopMoves,
    TopicAction,
)
from kafka_operator.decide.topic import Step, TopicView, decide_topic, decide_topic_away
from kafka_operator.decide.topic_deletion import decide_topic_deletion, decide_topic_deletion_away
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.links import AwayError, Links
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.topic_look import look_at_topics
from kafka_operator.engine.writer import Outcome, Writer
from kafka_operator.names import ClusterRef, Key
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.topic import Topic

MAX_ROUNDS = 8
"""Steps of one Topic in one try: the longest way (claim, alter, status, claim, done) needs five; a conflict or two add to it."""


@dataclass
class Try:
    """What is known of one batch while it is worked on."""

    ref: ClusterRef
    seen: Mapping[str, KafkaTopic] | None = None
    """None: look before the next decision."""
    away: Away | None = None
    applied: set[Key] = field(default_factory=set)
    failures: dict[str, Failure] = field(default_factory=dict)
    """By the Kafka topic's name: of looking at it, or of changing it."""


class TopicReconciler:
    """Brings Topics to what they declare."""

    def __init__(
        self, cache: Cache, links: Links, writer: Writer, retries: Retries, now: Callable[[], datetime]
    ) -> None:
        self._cache = cache
        self._links = links
        self._writer = writer
        self._retries = retries
        self._now = now

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Try once for each Topic of a batch; all of them refer to one Cluster."""
        attempt = Try(ref)
        outcomes: dict[Key, Outcome] = {}
        pending = list(keys)
        for _ in range(MAX_ROUNDS):
            topics = [topic for key in pending if (topic := self._cache.topic(key)) is not None]
            await self._look(attempt, topics)
            steps = [(topic, self._decide(topic, attempt)) for topic in topics]
            outcomes.update({topic.key: step for topic, step in steps if isinstance(step, Done | Retry)})
            outcomes.update(await self._carry_out(attempt, steps))
            pending = [topic.key for topic in topics if topic.key not in outcomes]
            if not pending:
                break
        return {key: outcomes.get(key, Retry() if key in pending else Done()) for key in keys}

    async def _look(self, attempt: Try, topics: Sequence[Topic]) -> None:
        if attempt.seen is not None or attempt.away is not None or not topics:
            return
        try:
            looked = await self._links.use(attempt.ref, lambda admin: look_at_topics(admin, topics))
        except AwayError as error:
            attempt.away = error.away
            return
        attempt.seen = looked.topics
        attempt.failures = {**looked.failures, **attempt.failures}

    def _decide(self, topic: Topic, attempt: Try) -> Step:
        waited_s = self._retries.waited_s(topic.key)
        deleted = topic.metadata.deleted is not None
        if attempt.away is not None:
            if deleted:
                return decide_topic_deletion_away(topic, attempt.away, waited_s)
            return decide_topic_away(topic, attempt.away, self._now(), waited_s)
        assert attempt.seen is not None, attempt.ref
        owner = winner(self._cache.claims(topic) or [topic])
        view = TopicView(
            now=self._now(),
            waited_s=waited_s,
            owner=None if owner.key == topic.key else owner.key,
            seen=attempt.seen.get(topic.name),
            applied=topic.key in attempt.applied,
            failure=attempt.failures.get(topic.name),
        )
        return decide_topic_deletion(topic, view) if deleted else decide_topic(topic, view)

    async def _carry_out(self, attempt: Try, steps: Sequence[tuple[Topic, Step]]) -> Mapping[Key, Outcome]:
        """Carry out one step of each Topic; return the outcomes of those whose try ends with it."""
        writes = [(topic, step) for topic, step in steps if not isinstance(step, Apply | Done | Retry)]
        results = await asyncio.gather(*(self._writer.carry_out(topic, step) for topic, step in writes))
        outcomes = {
            topic.key: outcome for (topic, _), outcome in zip(writes, results, strict=True) if outcome is not None
        }
        applies = [(topic, step) for topic, step in steps if isinstance(step, Apply)]
        if applies:
            attempt.applied.update(topic.key for topic, _ in applies)
            await self._apply(attempt, [action for _, step in applies for action in step.actions])
            attempt.seen = None
        return outcomes

    async def _apply(self, attempt: Try, actions: Sequence[TopicAction]) -> None:
        """Make one Admin call for each sort of action."""
        creates = [action for action in actions if isinstance(action, CreateTopic)]
        grows = [action for action in actions if isinstance(action, GrowTopic)]
        alters = [action for action in actions if isinstance(action, AlterConfig)]
        drops = [action.name for action in actions if isinstance(action, DropTopic)]
        if creates:
            await self._call(attempt, lambda: self._links.use(attempt.ref, lambda admin: admin.create_topics(creates)))
        if grows:
            await self._call(attempt, lambda: self._links.use(attempt.ref, lambda admin: admin.grow_topics(grows)))
        if alters:
            await self._call(attempt, lambda: self._links.use(attempt.ref, lambda admin: admin.alter_configs(alters)))
        stops = [action for action in actions if isinstance(action, StopMoves)]
        if stops:
            await self._stop_moves(attempt, stops)
        if drops:
            await self._call(attempt, lambda: self._links.use(attempt.ref, lambda admin: admin.delete_topics(drops)))

    async def _stop_moves(self, attempt: Try, stops: Sequence[StopMoves]) -> None:
        """Cancel moves; one that cannot be cancelled only makes the deletion wait for its end."""
        targets = {Partition(stop.name, index): None for stop in stops for index in stop.partitions}

        async def stop() -> Refusals:
            await self._links.use(attempt.ref, lambda admin: admin.alter_reassignments(targets))
            return {}

        await self._call(attempt, stop)

    async def _call(self, attempt: Try, call: Callable[[], Awaitable[Refusals]]) -> None:
        if attempt.away is not None:
            return
        try:
            attempt.failures.update(await call())
        except AwayError as error:
            attempt.away = error.away
