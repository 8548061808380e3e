"""Readings of a guard's limits from the state of the cluster: partitions under min.insync.replicas, offline partitions, ISR shrinks, lag."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller_core.model.partition_health import is_under_min_isr
from kafka_operator.decide.kafka.kafka_errors import message_of
from kafka_operator.decide.kafka.observed import NO_LEADER, Failure, KafkaPartition, KafkaTopic
from kafka_operator.decide.reassignments.guard import Reading
from kafka_operator.resources.move_guard import Guard, LagLimit, QueryLimit
from kafka_operator.resources.reassignment import Partition

SHRINKS_OF_S = 60.0
"""Shrinks are counted over this time: the limit is a number per minute. Readings that are further apart are not compared."""

UNDER_MIN_ISR, OFFLINE, SHRINKS = "partitions under min.insync.replicas", "offline partitions", "ISR shrinks per minute"

Topics = Mapping[str, KafkaTopic]
Isrs = Mapping[Partition, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Shrinks:
    """ISRs at the last reading, and the shrinks that were seen; times are on the monotonic clock, in seconds."""

    isrs: Isrs
    taken_s: float
    observed: tuple[tuple[float, int], ...] | None = None
    """Time and number of replicas; None at the first reading, which has nothing to compare with."""


def counted_shrinks(before: Shrinks | None, topics: Topics, now_s: float) -> Shrinks:
    """Return the shrinks of the last minute, with those since the previous reading.

    A replica counts if it left the ISR and is still one of the partition's replicas; one that a move removed does not.
    """
    isrs = {Partition(topic.name, item.index): item.isr for topic, item in _partitions(topics)}
    if before is None or now_s - before.taken_s >= SHRINKS_OF_S:
        return Shrinks(isrs, now_s)
    left = sum(
        broker not in item.isr and broker in item.replicas
        for topic, item in _partitions(topics)
        for broker in before.isrs.get(Partition(topic.name, item.index), ())
    )
    recent = tuple(entry for entry in before.observed or () if now_s - entry[0] < SHRINKS_OF_S)
    return Shrinks(isrs, now_s, (*recent, (now_s, left)) if left else recent)


def partition_readings(
    guard: Guard, topics: Topics, min_isr: Mapping[str, int], shrinks: Shrinks | None
) -> tuple[Reading, ...]:
    """Return the readings of the limits on partitions; `shrinks` is needed for the limit on them only."""
    readings = []
    if guard.max_under_min_isr is not None:
        readings.append(_under_min_isr(topics, min_isr, guard.max_under_min_isr))
    if guard.max_offline is not None:
        offline = sum(item.leader == NO_LEADER for _, item in _partitions(topics))
        readings.append(Reading(OFFLINE, offline, guard.max_offline))
    if guard.max_isr_shrinks_per_minute is not None:
        observed = None if shrinks is None else shrinks.observed
        count = None if observed is None else sum(number for _, number in observed)
        readings.append(Reading(SHRINKS, count, guard.max_isr_shrinks_per_minute, "two readings are needed."))
    return tuple(readings)


def lag_readings(limits: Sequence[LagLimit], lags: Mapping[str, int | Failure]) -> tuple[Reading, ...]:
    """Return the readings of the limits on consumer groups; lag is in records, over all partitions of a group."""
    return tuple(_lag(limit, lags.get(limit.group)) for limit in limits)


def unreadable(guard: Guard, why: str) -> tuple[Reading, ...]:
    """Return readings without a value for the consumer groups and queries of a guard."""
    lags = [Reading(_lag_name(limit), None, limit.max_records, why) for limit in guard.lags]
    return (*lags, *(query_reading(limit, None, why) for limit in guard.queries))


def query_reading(limit: QueryLimit, value: float | None, problem: str = "") -> Reading:
    """Return the reading of a Prometheus query; `problem` is the reason for which it has no value."""
    return Reading(f"query {limit.name}", value, limit.bound, problem, limit.is_minimum)


def _under_min_isr(topics: Topics, min_isr: Mapping[str, int], bound: int) -> Reading:
    unknown = sorted(topics.keys() - min_isr.keys())
    if unknown:
        message = f"min.insync.replicas of {len(unknown)} topics could not be read, {unknown[0]} for example."
        return Reading(UNDER_MIN_ISR, None, bound, message)
    under = sum(is_under_min_isr(len(item.isr), min_isr[topic.name]) for topic, item in _partitions(topics))
    return Reading(UNDER_MIN_ISR, under, bound)


def _lag(limit: LagLimit, found: int | Failure | None) -> Reading:
    name = _lag_name(limit)
    if isinstance(found, int):
        return Reading(name, found, limit.max_records)
    message = "no broker answered." if found is None else message_of(found)
    return Reading(name, None, limit.max_records, message)


def _lag_name(limit: LagLimit) -> str:
    return f"lag of group {limit.group}"


def _partitions(topics: Topics) -> Iterable[tuple[KafkaTopic, KafkaPartition]]:
    return ((topic, item) for topic in topics.values() for item in topic.partitions)
