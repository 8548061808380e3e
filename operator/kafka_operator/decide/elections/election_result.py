"""Results of an Election: selected partitions, partitions that need an election, and a bounded list of results.

selection        Preferred                                        Unclean
topics           all their partitions                             the same
partitions       those                                            the same
brokers          those whose preferred leader one of them is      those with a replica on one of them
all              every partition                                  the same
needs it         led by another than its preferred leader         without a leader
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_operator.decide.kafka.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION, reason_of
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure, KafkaPartition, KafkaTopic
from kafka_operator.resources.election import WHOLE_TOPIC, Counts, Election, ElectionType, Result
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.listed import listed

MAX_RESULTS = 500
"""Maximum partitions in status.results: some 60 kB, still readable; the counts cover all of them. Failed ones come first."""

MAX_NAME, MAX_MESSAGE = 64, 1_024
"""Characters of an error's name and message, as the schema has them: a broker's long answer must not cost the whole status."""

MAX_NAMED = 5
"""Partitions named in a message."""

ELECTED, ASKED = "ELECTED", "ASKED"
"""Results that are no errors of Kafka: it has a leader by this Election; it is about to be asked for."""

MISSING = Failure(UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION", "The topic or partition does not exist.")

Topics = Mapping[str, KafkaTopic]


@dataclass(frozen=True, slots=True)
class Chosen:
    """How many partitions are selected, those of them that need an election, ascending, and what was named and is not there."""

    selected: int
    needing: tuple[Partition, ...]
    missing: Mapping[Partition, Failure]

    @property
    def missing_text(self) -> str:
        """Return what is missing, for a message; a topic as a whole has no index."""
        names = [item.topic if item.index < 0 else str(item) for item in self.missing]
        return f"topic or partition {listed(names, MAX_NAMED)}"


def select(election: Election, topics: Topics) -> Chosen:
    """Return the partitions selected by an Election; 200,000 partitions take a tenth of a second."""
    selection, election_type = election.selection, election.type
    named: dict[str, set[int]] = defaultdict(set)
    for partition in selection.partitions:
        named[partition.topic].add(partition.index)
    brokers = frozenset(selection.brokers)
    selected = 0
    needing: list[Partition] = []
    for topic in [topics[name] for name in selection.topic_names or topics if name in topics]:
        for seat in topic.partitions:
            if named and seat.index not in named[topic.name]:
                continue
            if brokers and not _concerns(seat, brokers, election_type):
                continue
            selected += 1
            if _needs(seat, election_type):
                needing.append(Partition(topic.name, seat.index))
    missing = [Partition(name, WHOLE_TOPIC) for name in selection.topics if name not in topics]
    for name, indexes in named.items():
        there = {seat.index for seat in topics[name].partitions} if name in topics else set()
        missing += [Partition(name, index) for index in indexes - there]
    return Chosen(selected, tuple(sorted(needing)), dict.fromkeys(sorted(missing), MISSING))


def result_of(
    partitions: Iterable[Partition], failures: Mapping[Partition, Failure], topics: Topics, *, ended: bool = True
) -> tuple[Result, ...]:
    """Return the results of partitions, those that failed first, as many as are shown."""
    ordered = sorted(partitions, key=lambda item: (item not in failures, item))[:MAX_RESULTS]
    results = []
    for partition in ordered:
        failure = failures.get(partition)
        leader = _leader(partition, topics)
        if failure is None:
            results.append(Result(partition, ELECTED if ended else ASKED, leader))
        else:
            results.append(Result(partition, failure.name[:MAX_NAME], leader, failure.message[:MAX_MESSAGE]))
    return tuple(results)


def find(failures: Mapping[Partition, Failure]) -> str:
    """Return the reason of most failures."""
    counts = Counter(reason_of(failure) for failure in failures.values())
    return min(counts, key=lambda reason: (-counts[reason], reason))


def sentence(election_type: ElectionType, counts: Counts, failures: Mapping[Partition, Failure]) -> str:
    """Return what happened, for the Ready condition and the event."""
    if not counts.needed:
        why = "is led by its preferred leader" if election_type is ElectionType.PREFERRED else "has a leader"
        return f"No election was needed: each of the {counts.selected} partitions {why}."
    loss = " Records that only other replicas contained are lost." if election_type is ElectionType.UNCLEAN else ""
    elected = f"{counts.elected} of {counts.needed} partitions that needed an election have an elected leader.{loss}"
    if not failures:
        return elected
    named = [f"{item.topic if item.index < 0 else item}: {failure.name}" for item, failure in sorted(failures.items())]
    return f"{elected} Not elected: {listed(named, MAX_NAMED)}."


def _concerns(seat: KafkaPartition, brokers: frozenset[int], election_type: ElectionType) -> bool:
    held = seat.replicas[:1] if election_type is ElectionType.PREFERRED else seat.replicas
    return not brokers.isdisjoint(held)


def _needs(seat: KafkaPartition, election_type: ElectionType) -> bool:
    if election_type is ElectionType.UNCLEAN:
        return seat.leader == NO_LEADER
    return seat.leader != seat.replicas[0]


def _leader(partition: Partition, topics: Topics) -> int | None:
    topic = topics.get(partition.topic)
    leaders = [] if topic is None else [seat.leader for seat in topic.partitions if seat.index == partition.index]
    return leaders[0] if leaders and leaders[0] != NO_LEADER else None
