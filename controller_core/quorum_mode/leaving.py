"""Partitions of a broker that leaves or returns, in KRaft mode.

The change of the partitions and the change of the broker's registration are in one decision, computed on the same state: who may lead
afterwards is passed to the election. Partitions come first when a broker leaves, so that a fenced broker never leads (C17), and last
when it returns.

    leaving     out of the ISRs, leads nothing; members of a small ISR become eligible (KIP-966)
    lost        as leaving, and not eligible either: the broker lost unflushed records
    returning   leads partitions without a leader that wait for it

Source: ReplicationControlManager.generateLeaderAndIsrUpdates of Kafka 4.3.
"""

from collections.abc import Collection

import numpy as np

from controller_core.model import Cluster, IntArray, changes
from controller_core.model.columns import keep_ids
from controller_core.rules.complete_change import Electing, Target, complete_change


def leave_partitions(
    cluster: Cluster, broker: int, rows: IntArray | None = None, *, is_lost: bool = False
) -> changes.PartitionStates | None:
    """Move leaders and ISRs off a broker: in some rows, or in all that need it."""
    flags = cluster.columns.flags([broker])
    if rows is None:
        rows = cluster.columns.with_in_isr(flags)
        if is_lost:
            rows = np.union1d(rows, cluster.columns.with_in_elr(flags)).astype(np.int32)
    return _change(cluster, rows, leaving={broker}, lost={broker} if is_lost else ())


def return_to_partitions(cluster: Cluster, broker: int) -> changes.PartitionStates | None:
    """Elect leaders where there is none, now that a broker is back."""
    rows = cluster.columns.without_live_leader(cluster.columns.flags(cluster.registered()))
    return _change(cluster, rows, returning={broker})


def _change(
    cluster: Cluster,
    rows: IntArray,
    leaving: Collection[int] = (),
    returning: Collection[int] = (),
    lost: Collection[int] = (),
) -> changes.PartitionStates | None:
    isr = cluster.columns.isr[rows]
    kept = keep_ids(isr, ~np.isin(isr, list(leaving)))
    may_lead = (set(cluster.may_lead()) | set(returning)) - set(leaving)
    return complete_change(
        cluster, rows, Target(kept), Electing(may_lead, cluster.unclean_allowed(rows), lost=frozenset(lost))
    )
