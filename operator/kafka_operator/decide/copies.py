"""Health of replicas: effects of the loss of a broker on its partitions, as pure functions.

rolling.py and scaling.py decide on them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller_core.model.partition_health import is_under_min_isr
from kafka_operator.resources.reassignment import Partition

MAX_NAMED = 5
"""Partitions that a message names; it gives the number of all of them as well."""

UNKNOWN_MIN_ISR = 32767
"""Represents an unknown min.insync.replicas: more than any partition has (the most replicas in Kafka's records)."""


@dataclass(frozen=True, slots=True)
class Copies:
    """One partition: the brokers that hold it (while it moves, those of before and after), and those in sync."""

    partition: Partition
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """What a cluster shows of all its partitions.

    `min_isr` is min.insync.replicas by topic, the cluster's default where a topic sets none; None until it is requested.
    """

    controller_id: int
    broker_ids: tuple[int, ...]
    copies: tuple[Copies, ...]
    min_isr: Mapping[str, int] | None = None


def behind(copies: Iterable[Copies], *, without: Collection[int] = ()) -> list[Copies]:
    """Return the partitions that miss a replica in their ISR, other than those of the brokers `without`."""
    return [
        item for item in copies if any(broker not in item.isr and broker not in without for broker in item.replicas)
    ]


def endangered(health: Health, broker_id: int) -> list[Copies]:
    """Return the partitions that would be under their min.insync.replicas without this broker, or are so with it already.

    One that the broker is not in sync for loses nothing by its going. A partition with a single copy is always among them.
    """
    assert health.min_isr is not None, broker_id
    limits = health.min_isr
    return [
        item
        for item in health.copies
        if broker_id in item.isr
        and is_under_min_isr(len(item.isr) - 1, limits.get(item.partition.topic, UNKNOWN_MIN_ISR))
    ]


def held_by(copies: Iterable[Copies], broker_ids: Collection[int]) -> list[Copies]:
    """Return the partitions that have a replica on any of these brokers."""
    leaving = frozenset(broker_ids)
    return [item for item in copies if not leaving.isdisjoint(item.replicas)]


def named(copies: Sequence[Copies]) -> str:
    """Return the partitions' names, the first few of them, in order.

    >>> named([Copies(Partition("b", 0), (1,), (1,)), Copies(Partition("a", 2), (1,), (1,))])
    'a-2, b-0'
    """
    names = [str(partition) for partition in sorted(item.partition for item in copies)]
    listed = ", ".join(names[:MAX_NAMED])
    return listed if len(names) <= MAX_NAMED else f"{listed} and {len(names) - MAX_NAMED} more"
