"""Reads of a cluster for Reassignments: partitions, planner input, sizes of logs, throttles. Contains no decisions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.layout import Layout, Sizes, sizes_of
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic, Moves
from kafka_operator.decide.plans.desired_plan import Material
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.decide.plans.plan_document import Document
from kafka_operator.decide.reassignments.reassignment_steps import AlterThrottle, ReadThrottle
from kafka_operator.decide.reassignments.throttle import LISTS, LOG_DIRS_RATE, RATES, ObservedThrottle, Values
from kafka_operator.resources.reassignment import Partition, Reassignment

MAX_NAMED_PARTITIONS = 2_000
"""Partitions that DescribeLogDirs requests by name; beyond this number all are requested, which costs less than their names."""

FEW_TOPICS = 200
"""Number of topics that every poll reads: their Metadata is parsed in a tenth of a second."""

FULL_EVERY_S = 30.0
"""Interval between full reads of a large plan's topics: moves made by other clients are seen within this time."""

SIZED_PARTITIONS = 5_000
"""Number of partitions whose sizes are always queried before a plan starts: brokers answer in a fraction of a second."""


@dataclass(frozen=True, slots=True)
class PartitionSnapshot:
    """Brokers, moves and topics, read in this order: a move that is not listed has ended, and the topics show its result."""

    cluster_id: str = ""
    broker_ids: tuple[int, ...] = ()
    moves: Moves = field(default_factory=dict)
    topics: Mapping[str, KafkaTopic] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Kept:
    """Topics as last read, topics with moves at that time, and the time of the last full read."""

    topics: Mapping[str, KafkaTopic]
    moving: frozenset[str]
    full_s: float


class PartitionReader:
    """Partition states of a cluster. In large clusters, topics that the operator does not move are only read at intervals."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: _Kept | None = None

    async def read(self, admin: Admin, topics: frozenset[str], changed: Collection[str] = ()) -> PartitionSnapshot:
        """Read the state; `changed` are topics that have just been changed."""
        observed = await admin.describe_cluster()
        moves = await admin.list_reassignments()
        moving = frozenset(partition.topic for partition in moves)
        kept, now_s = self._kept, self._clock()
        if kept is None or self._full(kept, topics, moving, now_s):
            names, before, full_s = topics, {}, now_s
        else:
            names = topics - kept.topics.keys() | (topics & (moving | kept.moving | frozenset(changed)))
            before, full_s = {name: kept.topics[name] for name in topics - names}, kept.full_s
        answers = await admin.describe_topics(sorted(names))
        found = {name: topic for name, topic in answers.items() if isinstance(topic, KafkaTopic)}
        self._kept = _Kept({**before, **found}, moving, full_s)
        return PartitionSnapshot(observed.cluster_id, observed.broker_ids, moves, self._kept.topics)

    def record(self, topics: Mapping[str, KafkaTopic]) -> None:
        """Store topics that were read for a plan, so that the poll after its first moves need not read all of them."""
        kept = self._kept or _Kept({}, frozenset(), self._clock())
        self._kept = replace(kept, topics={**kept.topics, **topics})

    @staticmethod
    def _full(kept: _Kept, topics: frozenset[str], moving: frozenset[str], now_s: float) -> bool:
        """Return whether a full read is due: few topics, no moves, or the last one is long ago."""
        return (
            len(topics) <= FEW_TOPICS or topics.isdisjoint(moving | kept.moving) or now_s - kept.full_s >= FULL_EVERY_S
        )


async def query_material(
    admin: Admin, topics: Sequence[str] | None, document: Document | PlanProblem | None, *, sized: bool, log_dirs: bool
) -> Material:
    """Read the planner's input for these topics, or (None) all; sizes are None if no broker returns them.

    With `log_dirs`, the log directories of all brokers are read with all of their logs. Without `sized`, sizes are queried only for few partitions: a plan without approval can start before it is measured.
    """
    if isinstance(document, PlanProblem):
        return Material(document=document)
    layout = await admin.describe_layout(topics)
    if log_dirs:
        return Material(layout, dirs=await admin.describe_replica_dirs(sorted(layout.racks), None))
    few = sum(len(topic.partitions) for topic in layout.topics.values()) <= SIZED_PARTITIONS
    return Material(layout, await sizes_in(admin, layout) if sized or few else None, document)


async def query_sizes(admin: Admin, brokers: Collection[int], partitions: Collection[Partition]) -> Sizes:
    """Query sizes of logs; brokers that do not return them are omitted."""
    named = partitions if len(partitions) <= MAX_NAMED_PARTITIONS else None
    return sizes_of(await admin.describe_log_dirs(sorted(brokers), named))


async def query_throttle(admin: Admin, step: ReadThrottle, before: ObservedThrottle) -> ObservedThrottle:
    """Read throttles of brokers and topics, in addition to those read before."""
    brokers = dict(before.brokers)
    if step.broker_ids:
        brokers |= await admin.describe_broker_configs(step.broker_ids, (*RATES, LOG_DIRS_RATE))
    topics: dict[str, Values | Failure] = dict(before.topics)
    if step.topics:
        answers = await admin.describe_configs({name: frozenset(LISTS) for name in step.topics})
        for name in step.topics:
            answer = answers.get(name, {})
            topics[name] = (
                answer
                if isinstance(answer, Failure)
                else {key: found.value for key, found in answer.items() if found.value is not None}
            )
    return ObservedThrottle(brokers, topics)


async def alter_throttle(admin: Admin, step: AlterThrottle) -> Mapping[object, Failure]:
    """Change throttles, those of brokers first when they are set; return the brokers and topics that rejected it."""
    refused: dict[object, Failure] = {}
    if step.brokers:
        refused.update((await admin.alter_broker_configs(step.brokers)).items())
    if step.topics:
        refused.update((await admin.alter_configs(step.topics)).items())
    return refused


def topics_of(item: Reassignment, document: Document | PlanProblem | None) -> Sequence[str] | None:
    """Return the topics of a plan; None for all of them."""
    if item.goal is not None:
        return sorted(item.goal.topics) or None
    plan = document.plan if isinstance(document, Document) else item.plan
    return sorted({entry.partition.topic for entry in plan} | {entry.topic for entry in item.topics})


async def sizes_in(admin: Admin, layout: Layout) -> Sizes | None:
    """Return the sizes of all of these topics; None if no broker returns them."""
    partitions = [Partition(topic.name, held.index) for topic in layout.topics.values() for held in topic.partitions]
    if not partitions:
        return {}
    return await query_sizes(admin, layout.racks.keys(), partitions) or None
