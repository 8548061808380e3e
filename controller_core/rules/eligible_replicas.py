"""Eligible leader replicas (KIP-966): replicas that have all committed records although they are not in the ISR.

A record is committed when min.insync.replicas replicas have it. Once an ISR is smaller than that, nothing more is committed, so members
that leave it from then on have every committed record and may lead without loss: they are eligible. When the ISR has
min.insync.replicas members again, records are committed without them, and they no longer are. A replica whose broker lost unflushed records
(an unclean shutdown) is never eligible.

Worked example, min.insync.replicas 2: the ISR 1, 2 shrinks to 1, so 2 is eligible. Then 1 leaves as well: the ISR is empty, 1 and 2
are eligible, and the first of them that returns leads with itself as the ISR.

>>> from controller_core.model.columns import pad
>>> eligible_after(pad([(1,)]), pad([(2,)]), pad([()]), np.array([2]), pad([(1, 2, 3)]), None).tolist()
[[1, 2]]

Source: PartitionChangeBuilder.maybePopulateTargetElr of Kafka 4.3. Kafka leaves a replica that a move removes among the eligible ones;
here it is dropped (C20).
"""

import numpy as np

from controller_core.model import NO_BROKER, BoolArray, IntArray, columns

_LAST = np.iinfo(np.int32).max
"""Sorts behind every broker id."""


def eligible_after(
    isr_before: IntArray,
    elr_before: IntArray,
    isr: IntArray,
    min_isr: IntArray,
    replicas: IntArray,
    lost: BoolArray | None,
) -> IntArray:
    """Return the eligible replicas when ISRs change: shape (rows, any width), ids ascending, padded with -1.

    `min_isr` has shape (rows,). `lost` are flags by broker id: brokers that lost unflushed records.
    """
    candidates = np.concatenate([isr_before, elr_before], axis=1)
    kept = (
        (candidates != NO_BROKER) & ~columns.contained_in(candidates, isr) & columns.contained_in(candidates, replicas)
    )
    kept &= ((isr != NO_BROKER).sum(axis=1) < min_isr)[:, None]
    if lost is not None:
        kept &= ~lost[candidates]
    if not kept.any():
        return np.full((len(isr), 1), NO_BROKER, dtype=np.int32)
    ordered = np.sort(np.where(kept, candidates, _LAST), axis=1)
    repeated = np.zeros(ordered.shape, dtype=np.bool_)
    repeated[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    eligible = columns.keep_ids(ordered, (ordered != _LAST) & ~repeated)
    width = int((eligible != NO_BROKER).sum(axis=1).max())
    return eligible[:, :width]


def in_service(isr: IntArray, elr: IntArray) -> IntArray:
    """Return the replicas that may lead without loss: the ISR or, where that is empty, the eligible replicas."""
    width = max(isr.shape[1], elr.shape[1])
    serving = columns.widen(isr, width).copy()
    empty = ~columns.any_of(isr != NO_BROKER)
    serving[empty] = columns.widen(elr, width)[empty]
    return serving
