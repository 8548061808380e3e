"""Throttle rates: the minimum for the write traffic, and the adaptive rate.

A moving partition's new replica has to receive new writes in addition to the copied data. So a broker's throttle has to be
above what all partitions together are written that move to it, or from it, at once; else the move never ends.

An adaptive one is raised while brokers keep up and the moves use what they have, or come no nearer to their end, and halved as soon as replicas that do not move fall
out of sync or behind: those carry the traffic of the moment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kafka_operator.decide.kafka.observed import NO_LEADER
from kafka_operator.decide.reassignments.move_progress import Measured
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.resources.reassignment import Assignment, Partition
from kafka_operator.resources.reassignment_records import written_bytes
from kafka_operator.resources.reassignment_terms import Concurrency
from kafka_operator.resources.throttle import ThrottleRecord, ThrottleSpec

HEADROOM = 1.25
"""Minimum ratio of the throttle to the traffic: with less than a fifth of it left for the move, the move takes too long."""

RAISE, LOWER = 1.5, 0.5
"""Raised by half at each sample, so that it grows tenfold in half a minute; halved at once, since traffic suffers in the meantime."""

USED = 0.5
"""Share of the throttle that the moves use before it is worth raising: below it something else holds them up."""

LAG_ALLOWED_S = 2.0
"""Replicas that do not move may be behind by what the throttle lets through in this time, before they count as held up by it."""


@dataclass(frozen=True, slots=True)
class Need:
    """The bytes per second that a broker has to send or receive for moves that go on at once, at the traffic of the moment."""

    broker_id: int
    bytes_per_second: float


def need_of(
    items: Iterable[Assignment],
    partitions: PartitionProgress,
    growth: Mapping[Partition, float],
    concurrency: Concurrency,
) -> Need | None:
    """Return the largest need of any broker when the busiest of these moves go on at once; None where nothing grows."""
    sent: dict[int, list[float]] = defaultdict(list)
    received: dict[int, list[float]] = defaultdict(list)
    for item in items:
        known, rate = partitions.current.get(item.partition), growth.get(item.partition, 0.0)
        if item.log_dirs and rate > 0:
            for broker in partitions.brokers_of(item):
                received[broker].append(rate)
        adding = set(item.replicas) - set(known.replicas if known is not None else ())
        if known is None or not adding or rate <= 0:
            continue
        if known.leader != NO_LEADER:
            sent[known.leader].append(rate * len(adding))
        for broker in adding:
            received[broker].append(rate)
    sums = [
        Need(broker, sum(sorted(rates, reverse=True)[: concurrency.per_broker]))
        for side in (sent, received)
        for broker, rates in side.items()
    ]
    return max(sums, key=lambda need: (need.bytes_per_second, -need.broker_id), default=None)


def too_low(spec: ThrottleSpec, need: Need | None) -> str | None:
    """Return why a move would never end with this throttle, None where it does."""
    if need is None or spec.max_bytes_per_second >= need.bytes_per_second * HEADROOM:
        return None
    least = int(need.bytes_per_second * HEADROOM) + 1
    return (
        f"The partitions to move at the same time receive {int(need.bytes_per_second)} bytes per second on broker "
        f"{need.broker_id}, and the throttle allows {spec.max_bytes_per_second}: the move would hardly ever complete. Set at "
        f"least {least} bytes per second ({written_bytes(least)}), lower concurrency.perBroker, or wait for less traffic."
    )


def rate_of(spec: ThrottleSpec, record: ThrottleRecord | None, measured: Measured | None, need: Need | None) -> int:
    """Return the desired rate; `record` has the current one, `measured` is a new sample or None."""
    least = spec.min_bytes_per_second
    if need is not None:
        least = max(least, int(need.bytes_per_second * HEADROOM) + 1)
    least = min(least, spec.max_bytes_per_second)
    if record is None:
        return least
    current = min(max(record.bytes_per_second, spec.min_bytes_per_second), spec.max_bytes_per_second)
    if not spec.adaptive or measured is None or measured.speed is None or measured.used is None:
        return current
    behind = measured.lag > max(measured.lag_before, current * LAG_ALLOWED_S)
    if measured.fallen or behind:
        return max(spec.min_bytes_per_second, int(current * LOWER))
    if measured.used >= current * USED or measured.speed <= 0:
        return min(spec.max_bytes_per_second, int(current * RAISE) + 1)
    return current
