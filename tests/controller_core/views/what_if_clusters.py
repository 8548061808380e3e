"""Snapshots of small clusters for tests of what-if."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.model.columns import pad
from controller_core.views.what_if import BrokerState, Columns, Snapshot, snapshot_of


@dataclass(frozen=True, slots=True)
class Given:
    """One partition; without an ISR all replicas are in sync, without a leader the first one leads."""

    replicas: Sequence[int]
    isr: Sequence[int] | None = None
    leader: int | None = None
    min_isr: int = 1
    size: int = 100
    target: Sequence[int] | None = None


def cluster(
    partitions: Sequence[Given],
    racks: Mapping[int, str | None],
    *,
    offline: Sequence[int] = (),
    free_bytes: Mapping[int, int] | None = None,
    sizes: bool = True,
) -> Snapshot:
    """Return a snapshot with one topic, `a`; `racks` has all brokers, `free_bytes` those whose disks are known (of 1,000 bytes)."""
    free = free_bytes or {}
    isr = [item.replicas if item.isr is None else item.isr for item in partitions]
    count = len(partitions)
    columns = Columns(
        topics=["a"] if count else [],
        topic=np.zeros(count, dtype=np.int32),
        partition=np.arange(count, dtype=np.int32),
        replicas=pad([item.replicas for item in partitions]),
        target=pad(
            [item.target or item.replicas for item in partitions], max((len(i.replicas) for i in partitions), default=1)
        ),
        isr=pad(isr),
        leader=np.array(
            [item.replicas[0] if item.leader is None else item.leader for item in partitions], dtype=np.int32
        ),
        min_isr=np.array([item.min_isr for item in partitions], dtype=np.int32),
        bytes=np.array([item.size for item in partitions], dtype=np.int64) if sizes else None,
    )
    states = [
        BrokerState(broker, rack, broker not in offline, 1_000 if broker in free else None, free.get(broker))
        for broker, rack in racks.items()
    ]
    return snapshot_of(columns, states)
