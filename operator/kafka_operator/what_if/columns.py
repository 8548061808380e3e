"""Columns of a what-if from the answers of the Admin port."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import repeat

import numpy as np

from controller_core.model.columns import pad
from controller_core.views.what_if import UNKNOWN_MIN_ISR, BrokerState, Columns
from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Disks, Layout
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition, Moves
from kafka_operator.resources.reassignment import Partition
from move_planner.request import LoadArray


def columns_of(layout: Layout, moves: Moves, min_isr: Mapping[str, int], sizes: BrokerSizes) -> Columns:
    """Return the partitions of all topics, topics by name."""
    topics = sorted(layout.topics)
    items = [item for name in topics for item in layout.topics[name].partitions]
    counts = [len(layout.topics[name].partitions) for name in topics]
    names = [Partition(name, item.index) for name in topics for item in layout.topics[name].partitions]
    replicas = pad([item.replicas for item in items])
    return Columns(
        topics=topics,
        topic=np.repeat(np.arange(len(topics), dtype=np.int32), counts),
        partition=np.array([item.index for item in items], dtype=np.int32),
        replicas=replicas,
        target=pad(list(map(_target, names, items, repeat(moves))), replicas.shape[1]) if moves else replicas,
        isr=pad([item.isr for item in items]),
        leader=np.array([item.leader for item in items], dtype=np.int32),
        min_isr=np.repeat(np.array([min_isr.get(name, UNKNOWN_MIN_ISR) for name in topics], dtype=np.int32), counts),
        bytes=_bytes(names, sizes),
    )


def brokers_of(layout: Layout, disks: BrokerDisks) -> list[BrokerState]:
    """Return the live brokers, with their disks where they report them."""
    known = {broker: found for broker, found in disks.items() if isinstance(found, Disks)}
    return [
        BrokerState(broker, rack, True, known[broker].capacity_bytes, known[broker].free_bytes)
        if broker in known
        else BrokerState(broker, rack)
        for broker, rack in layout.racks.items()
    ]


def _target(name: Partition, item: KafkaPartition, moves: Moves) -> tuple[int, ...]:
    move = moves.get(name)
    return item.replicas if move is None else move.target


def _bytes(names: list[Partition], sizes: BrokerSizes) -> LoadArray | None:
    """Return the size of each partition, that of its largest replica (see `layout.size_of`); None if no broker returned sizes."""
    answers = [found for found in sizes.values() if not isinstance(found, Failure)]
    if not answers and (sizes or names):
        return None
    rows = {name: row for row, name in enumerate(names)}
    largest: LoadArray = np.zeros(
        len(names) + 1, dtype=np.int64
    )  # the last one takes partitions that were created since
    for logs in answers:
        found = np.fromiter(map(rows.get, logs, repeat(-1)), dtype=np.intp, count=len(logs))
        np.maximum.at(largest, found, np.fromiter(logs.values(), dtype=np.int64, count=len(logs)))
    return largest[:-1]
