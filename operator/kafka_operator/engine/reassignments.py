"""Reassignments of one cluster: one look at all moves for a batch, then each on its own, the oldest first.

The order makes two plans that overlap and come together end the same way each time: the older one begins, the other is told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kafka_operator.admin.port import Admin
from kafka_operator.decide.observed import Away, Failure, KafkaTopic, Moves
from kafka_operator.decide.reassignment import ReassignmentView, Step, decide_reassignment, decide_reassignment_away
from kafka_operator.decide.reassignment_deletion import decide_reassignment_deletion, decide_reassignment_deletion_away
from kafka_operator.decide.steps import Done, Retry, Submit, Wait
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.links import AwayError, Links
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.writer import Outcome, Writer
from kafka_operator.names import ClusterRef, Key
from kafka_operator.resources.reassignment import Partition, Reassignment

MAX_ROUNDS = 10
"""Steps in one try: the longest way (claim, record, submit, take back, end) needs five; conflicts add to it."""


@dataclass(frozen=True, slots=True)
class ClusterLook:
    """Brokers, moves and topics, in this order: a move that is not listed has ended, so the topics show where."""

    broker_ids: tuple[int, ...]
    moves: Moves
    topics: Mapping[str, KafkaTopic]


class ReassignmentReconciler:
    """Carries out Reassignments."""

    def __init__(
        self, cache: Cache, links: Links, writer: Writer, retries: Retries, now: Callable[[], datetime]
    ) -> None:
        self._cache = cache
        self._links = links
        self._writer = writer
        self._retries = retries
        self._now = now

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Try once for each Reassignment of a batch; all of them refer to one Cluster."""
        found = [item for key in keys if (item := self._cache.reassignment(key)) is not None]
        outcomes: dict[Key, Outcome] = {key: Done() for key in keys}
        unfinished = [item for item in found if not _rests(item)]
        look = await self._look(ref, unfinished) if unfinished else ClusterLook((), {}, {})
        for item in sorted(found, key=lambda item: (item.metadata.created, item.metadata.uid)):
            outcomes[item.key] = await self._reconcile(ref, item.key, look)
        return outcomes

    async def _reconcile(self, ref: ClusterRef, key: Key, look: ClusterLook | Away) -> Outcome:
        submitted = False
        failures: Mapping[Partition, Failure] = {}
        for _ in range(MAX_ROUNDS):
            item = self._cache.reassignment(key)
            if item is None:
                return Done()
            step = self._decide(item, look, submitted=submitted, failures=failures)
            if isinstance(step, Done | Retry | Wait):
                return step
            if isinstance(step, Submit):
                refused = await self._submit(ref, step)
                if isinstance(refused, Away):
                    look = refused
                    continue
                failures = failures or refused
                submitted = True
                look = await self._look(ref, [item])
                continue
            outcome = await self._writer.carry_out(item, step)
            if outcome is not None:
                return outcome
        return Retry()

    def _decide(
        self,
        item: Reassignment,
        look: ClusterLook | Away,
        *,
        submitted: bool,
        failures: Mapping[Partition, Failure],
    ) -> Step:
        waited_s = self._retries.waited_s(item.key)
        deleted = item.metadata.deleted is not None
        if isinstance(look, Away):
            if deleted:
                return decide_reassignment_deletion_away(item, look, waited_s)
            return decide_reassignment_away(item, look, self._now(), waited_s)
        view = ReassignmentView(
            now=self._now(),
            waited_s=waited_s,
            broker_ids=look.broker_ids,
            topics=look.topics,
            moves=look.moves,
            rivals=self._rivals(item),
            submitted=submitted,
            failures=failures,
        )
        return decide_reassignment_deletion(item, view) if deleted else decide_reassignment(item, view)

    async def _look(self, ref: ClusterRef, items: Sequence[Reassignment]) -> ClusterLook | Away:
        names = sorted({name for item in items for name in item.topic_names})
        fresh = any(item.status.plan is None for item in items)

        async def look(admin: Admin) -> ClusterLook:
            broker_ids = (await admin.describe_cluster()).broker_ids if fresh else ()
            moves = await admin.list_reassignments()
            answers = await admin.describe_topics(names)
            topics = {name: topic for name, topic in answers.items() if isinstance(topic, KafkaTopic)}
            return ClusterLook(broker_ids, moves, topics)

        try:
            return await self._links.use(ref, look)
        except AwayError as error:
            return error.away

    async def _submit(self, ref: ClusterRef, step: Submit) -> Mapping[Partition, Failure] | Away:
        try:
            return await self._links.use(ref, lambda admin: admin.alter_reassignments(step.targets))
        except AwayError as error:
            return error.away

    def _rivals(self, item: Reassignment) -> Mapping[Partition, Key]:
        """Return the partitions of other Reassignments that have begun and not ended, on the same Kafka cluster."""
        return {
            assignment.partition: other.key
            for ref in self._cache.same_cluster(item.cluster)
            for other in self._cache.dependents(ref)
            if isinstance(other, Reassignment) and other.key != item.key and not _ended(other)
            for assignment in other.status.plan or ()
        }


def _ended(item: Reassignment) -> bool:
    return item.status.state is not None and item.status.state.ended


def _rests(item: Reassignment) -> bool:
    return _ended(item) or (item.metadata.deleted is not None and not item.metadata.held)
