"""Election reconciler: reads the topics of a batch once, then processes each Election, the oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from kafka_operator.admin.port import Admin
from kafka_operator.decide.election import Elect, ElectionView, Step, decide_election, decide_election_away
from kafka_operator.decide.observed import Away, Failure, KafkaTopic
from kafka_operator.decide.pause import decide_pause
from kafka_operator.decide.steps import Done, Retry
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.links import AwayError, Links
from kafka_operator.engine.oldest_first import OldestFirst
from kafka_operator.engine.retries import Retries
from kafka_operator.engine.tenants import Tenants
from kafka_operator.engine.writer import Outcome, Writer
from kafka_operator.names import ClusterRef, Key
from kafka_operator.resources.election import Election
from kafka_operator.resources.reassignment import Partition

MAX_ROUNDS = 6
"""Steps in one try: the longest way (record, ask, end) needs three; conflicts add to it."""

MAX_ASKED = 1_000
"""Partitions in one ElectLeaders: as many as Kafka's own leader rebalance elects at once."""

Topics = Mapping[str, KafkaTopic]


@dataclass(slots=True)
class Batch:
    """What is known of a cluster while a batch is worked on."""

    ref: ClusterRef
    look: Topics | Away


class ElectionReconciler(OldestFirst[Election, Batch]):
    """Carries out Elections."""

    def __init__(
        self, cache: Cache, links: Links, writer: Writer, retries: Retries, now: Callable[[], datetime]
    ) -> None:
        self._cache = cache
        self._tenants = Tenants(cache)
        self._links = links
        self._writer = writer
        self._retries = retries
        self._now = now

    def _find(self, key: Key) -> Election | None:
        return self._cache.election(key)

    def _rests(self, item: Election) -> bool:
        return item.metadata.deleted is not None or (item.status.state is not None and item.status.state.ended)

    async def _begin(self, ref: ClusterRef, unfinished: Sequence[Election]) -> Batch:
        return Batch(ref, await self._look(ref, unfinished) if unfinished else {})

    async def _bring_on(self, batch: Batch, key: Key) -> Outcome:
        ref, look = batch.ref, batch.look
        asked, failures = False, dict[Partition, Failure]()
        for _ in range(MAX_ROUNDS):
            item = self._cache.election(key)
            if item is None:
                return Done()
            step = self._decide(item, look, asked=asked, failures=failures)
            if isinstance(step, Done | Retry):
                return step
            if isinstance(step, Elect):
                answer = await self._ask(item, step)
                if isinstance(answer, Away):
                    look = answer
                    continue
                asked, failures = True, answer
                look = await self._look(ref, [item])
                continue
            outcome = await self._writer.carry_out(item, step)
            if outcome is not None:
                return outcome
        return Retry()

    def _decide(
        self, item: Election, look: Topics | Away, *, asked: bool, failures: Mapping[Partition, Failure]
    ) -> Step:
        paused = decide_pause(item.metadata, item.status, self._now())
        if paused is not None:
            return paused
        waited_s, refusal = self._retries.waited_s(item.key), self._tenants.refusal_of_election(item)
        if isinstance(look, Away):
            if refusal is None:
                return decide_election_away(item, look, self._now(), waited_s)
            look = {}  # a namespace without a right learns nothing of the cluster
        view = ElectionView(self._now(), waited_s, look, refusal, asked, failures)
        return decide_election(item, view)

    async def _look(self, ref: ClusterRef, items: Sequence[Election]) -> Topics | Away:
        wanted = [item.selection.topic_names for item in items]

        async def look(admin: Admin) -> Topics:
            if any(names is None for names in wanted):
                return (await admin.describe_layout(None)).topics
            answers = await admin.describe_topics(sorted({name for names in wanted for name in names or ()}))
            return {name: answer for name, answer in answers.items() if isinstance(answer, KafkaTopic)}

        try:
            return await self._links.use(ref, look)
        except AwayError as error:
            return error.away

    async def _ask(self, item: Election, step: Elect) -> dict[Partition, Failure] | Away:
        """Ask for all partitions, some at a time; what is asked after an answer that was lost is asked again at the next try.

        The right is checked before each request: it may be taken away between two of them.
        """
        failures: dict[Partition, Failure] = {}
        partitions = iter(step.partitions)
        while chunk := tuple(islice(partitions, MAX_ASKED)):
            if self._tenants.refusal_of_election(item) is not None:
                return failures
            asked = Elect(step.type, chunk)
            try:
                failures |= await self._links.use(item.cluster, lambda admin, asked=asked: admin.elect_leaders(asked))  # type: ignore[misc]
            except AwayError as error:
                return error.away
        return failures
