"""Read of the Kafka topics of a batch: partitions, configuration and targets of moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_operator.admin.port import Admin
from kafka_operator.decide.kafka.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition, KafkaTopic, Moves
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.topic import Topic


@dataclass(frozen=True, slots=True)
class TopicSnapshot:
    """Existing topics with the configuration managed by their Topics, and errors of topics that could not be read."""

    topics: Mapping[str, KafkaTopic]
    failures: Mapping[str, Failure]


async def query_topics(admin: Admin, topics: Sequence[Topic]) -> TopicSnapshot:
    """Read all of them at once: Metadata, then DescribeConfigs for managed settings, then moves if they matter."""
    answers = await admin.describe_topics(sorted({topic.name for topic in topics}))
    failures = {name: answer for name, answer in answers.items() if isinstance(answer, Failure)}
    observed = {name: answer for name, answer in answers.items() if isinstance(answer, KafkaTopic)}
    wanted: dict[str, frozenset[str]] = {}
    for topic in topics:
        keys = frozenset(dict(topic.config)) | topic.managed_config
        if topic.name in observed and keys and topic.metadata.deleted is None:
            wanted[topic.name] = wanted.get(topic.name, frozenset()) | keys
    for name, config in (await admin.describe_configs(wanted)).items():
        if not isinstance(config, Failure):
            observed[name] = replace(observed[name], config=config)
        elif config.code == UNKNOWN_TOPIC_OR_PARTITION:
            del observed[name]  # it was deleted between the two calls
        else:
            failures[name] = config
    if any(_moves_matter(topic, observed.get(topic.name)) for topic in topics):
        moves = await admin.list_reassignments()
        observed = {name: _with_targets(topic, moves) for name, topic in observed.items()}
        differing = sorted({topic.name for topic in topics if _has_other_factor(topic, observed.get(topic.name))})
        for name, answer in (await admin.describe_topics(differing)).items():
            if isinstance(answer, KafkaTopic):
                observed[name] = _without_ended_moves(observed[name], answer, moves)
    return TopicSnapshot(observed, failures)


def _moves_matter(topic: Topic, observed: KafkaTopic | None) -> bool:
    """Return whether a move affects the decision: it explains a different replication factor, and delays a deletion."""
    if observed is None:
        return False
    if topic.metadata.deleted is not None:
        return topic.metadata.has_finalizer and not topic.retain
    return _has_other_factor(topic, observed)


def _has_other_factor(topic: Topic, observed: KafkaTopic | None) -> bool:
    """Return whether a partition has other replicas in number than declared; for a deletion that does not matter."""
    if observed is None or topic.metadata.deleted is not None:
        return False
    return any(len(partition.replicas) != topic.replication_factor for partition in observed.partitions)


def _with_targets(topic: KafkaTopic, moves: Moves) -> KafkaTopic:
    """Return the topic with the target replicas of its moves; during a move Metadata also lists the previous ones."""

    def settled(partition: KafkaPartition) -> KafkaPartition:
        move = moves.get(Partition(topic.name, partition.index))
        return partition if move is None else replace(partition, replicas=move.target)

    moving = tuple(item.index for item in topic.partitions if Partition(topic.name, item.index) in moves)
    return replace(topic, partitions=tuple(map(settled, topic.partitions)), moving=moving)


def _without_ended_moves(topic: KafkaTopic, again: KafkaTopic, moves: Moves) -> KafkaTopic:
    """Return the topic with the shorter replica list of two reads, one before and one after the moves were listed.

    A move that ended before the list is in the first read and not in the list: its previous replicas would count as added by another
    client. A move that started after the list is only in the second read.
    """

    def shorter(partition: KafkaPartition) -> KafkaPartition:
        later = again.partition(partition.index)
        if later is None or Partition(topic.name, partition.index) in moves:
            return partition
        return later if len(later.replicas) < len(partition.replicas) else partition

    if again.topic_id != topic.topic_id:
        return topic
    return replace(topic, partitions=tuple(map(shorter, topic.partitions)))
