"""Election reconciler: reads the topics of a batch once, then processes each Election, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from kafka_operator.admin.port import Admin
from kafka_operator.decide.elections.election import (
    Elect,
    ElectionView,
    Step,
    decide_election,
    decide_election_unavailable,
)
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Unavailable
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.connection_pool import ClusterUnavailableError, ConnectionPool
from kafka_operator.engine.oldest_first import OldestFirst
from kafka_operator.engine.tenants import Tenants
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.election import Election
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.pause import decide_pause
from reconciler.decide.started import decide_started, marked_first
from reconciler.decide.steps import Done, Outcome, Retry, Wait, WriteStatus
from reconciler.engine.retries import Retries
from reconciler.engine.writer import Writer
from reconciler.names import Key

MAX_ROUNDS = 6
"""Steps in one reconciliation: the longest sequence (record, mark, elect, end) needs four, and some spare for conflicts."""

MAX_ASKED = 1_000
"""Partitions in one ElectLeaders: as many as Kafka's own leader rebalance elects at once."""

Topics = Mapping[str, KafkaTopic]


@dataclass(slots=True)
class Batch:
    """State of a cluster during a batch."""

    ref: ClusterRef
    snapshot: Topics | Unavailable


class ElectionReconciler(OldestFirst[Election, Batch]):
    """Reconciler of Elections."""

    def __init__(
        self, cache: Cache, connections: ConnectionPool, writer: Writer, retries: Retries, now: Callable[[], datetime]
    ) -> None:
        self._cache = cache
        self._tenants = Tenants(cache)
        self._connections = connections
        self._writer = writer
        self._retries = retries
        self._now = now

    def _find(self, key: Key) -> Election | None:
        return self._cache.election(key)

    def _is_finished(self, item: Election) -> bool:
        return item.metadata.deleted is not None or (item.status.state is not None and item.status.state.ended)

    async def _begin(self, ref: ClusterRef, unfinished: Sequence[Election]) -> Batch:
        return Batch(ref, await self._read(ref, unfinished) if unfinished else {})

    async def _process(self, batch: Batch, key: Key) -> Outcome:
        ref, snapshot = batch.ref, batch.snapshot
        asked, failures = False, dict[Partition, Failure]()
        for _ in range(MAX_ROUNDS):
            item = self._cache.election(key)
            if item is None:
                return Done()
            step = self._decide(item, snapshot, asked=asked, failures=failures)
            if isinstance(step, Done | Retry | Wait):
                return step
            if isinstance(step, Elect):
                answer = await self._ask(item, step)
                if isinstance(answer, Unavailable):
                    snapshot = answer
                    continue
                asked, failures = True, answer
                snapshot = await self._read(ref, [item])
                continue
            outcome = await self._writer.carry_out(item, step)
            if outcome is not None:
                return outcome
        return Retry()

    def _decide(
        self, item: Election, snapshot: Topics | Unavailable, *, asked: bool, failures: Mapping[Partition, Failure]
    ) -> Step:
        paused = decide_pause(item.metadata, item.status, self._now())
        if paused is not None:
            return paused
        restored = decide_started(item.metadata, item.status, self._now())
        if restored is not None:
            return restored
        step = self._decide_allowed(item, snapshot, asked=asked, failures=failures)
        effect = isinstance(step, Elect) or (self._is_finished(item) and not isinstance(step, WriteStatus))
        return marked_first(item.metadata, step, effect=effect)

    def _decide_allowed(
        self, item: Election, snapshot: Topics | Unavailable, *, asked: bool, failures: Mapping[Partition, Failure]
    ) -> Step:
        waited_s, refusal = self._retries.waited_s(item.key), self._tenants.refusal_of_election(item)
        if isinstance(snapshot, Unavailable):
            if refusal is None:
                return decide_election_unavailable(item, snapshot, self._now(), waited_s)
            snapshot = {}  # a namespace without a right gets no information about the cluster
        view = ElectionView(self._now(), waited_s, snapshot, refusal, asked, failures)
        return decide_election(item, view)

    async def _read(self, ref: ClusterRef, items: Sequence[Election]) -> Topics | Unavailable:
        wanted = [item.selection.topic_names for item in items]

        async def read(admin: Admin) -> Topics:
            if any(names is None for names in wanted):
                return (await admin.describe_layout(None)).topics
            answers = await admin.describe_topics(sorted({name for names in wanted for name in names or ()}))
            return {name: answer for name, answer in answers.items() if isinstance(answer, KafkaTopic)}

        try:
            return await self._connections.use(ref, read)
        except ClusterUnavailableError as error:
            return error.unavailable

    async def _ask(self, item: Election, step: Elect) -> dict[Partition, Failure] | Unavailable:
        """Elect leaders in chunks; partitions whose response was lost are elected again at the next attempt.

        The right is checked before each request, since it may be revoked between two of them.
        """
        failures: dict[Partition, Failure] = {}
        partitions = iter(step.partitions)
        while chunk := tuple(islice(partitions, MAX_ASKED)):
            if self._tenants.refusal_of_election(item) is not None:
                return failures
            asked = Elect(step.type, chunk)
            try:
                failures |= await self._connections.use(
                    item.cluster,
                    lambda admin, asked=asked: admin.elect_leaders(asked),  # type: ignore[misc]
                )
            except ClusterUnavailableError as error:
                return error.unavailable
        return failures
