"""Partitions of a broker that leaves or returns, in KRaft mode.

The change of the partitions and the change of the broker's registration are in one decision, computed on the same state: who may lead
afterwards is passed to the election. Partitions come first when a broker leaves, so that a fenced broker never leads (C17), and last
when it returns.

    leaving     out of the ISRs, leads nothing; members of a small ISR become eligible (KIP-966)
    lost        as leaving, and not eligible either: the broker lost unflushed records
    returning   leads partitions without a leader that wait for it

Many partitions are taken in steps (`Decision.rest`). A broker that leaves gets no partitions in the meantime (`BrokerLeaving`), so that the
last step, which changes its registration, finds none that came back.

Source: ReplicationControlManager.generateLeaderAndIsrUpdates of Kafka 4.3.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from controller_core.model import Cluster, IntArray, changes, columns, quorum_changes
from controller_core.model.decision import Decision, decision
from controller_core.model.events import Event
from controller_core.model.quorum_events import ElectWaitingLeaders
from controller_core.rules.complete_change import Electing, Target, complete_change

WHOLE_STEPS = 2
"""A broker leaves in one step if its rows are those of at most so many: 10,000 partitions, which is one batch of the log. Kafka's brokers take over a batch as a whole, and the
next one only when they have made themselves leaders of its partitions: 6 s for 5,000 of them on two processors (K1)."""


class Step(NamedTuple):
    """What one decision changes of many partitions."""

    change: changes.PartitionStates | None
    is_last: bool
    """Whether no further partition needs a change."""


def leave_partitions(cluster: Cluster, broker: int, rows: IntArray | None = None, *, is_lost: bool = False) -> Step:
    """Move leaders and ISRs off a broker: in some rows, or in all that need it."""
    flags = cluster.columns.flags([broker])
    if rows is None:
        rows = cluster.columns.with_in_isr(flags)
        if is_lost:
            rows = np.union1d(rows, cluster.columns.with_in_elr(flags)).astype(np.int32)
    return _step(cluster, rows, leaving={broker}, lost={broker} if is_lost else ())


def leave_further(made: Iterable[changes.Change | None], broker: int, rest: Event) -> Decision[Any]:
    """Return the decision of a step that is not the last one, which replies: the broker gets no partitions until the next."""
    return replace(decision(*made, quorum_changes.BrokerLeaving(broker)), rest=(rest,))


def return_to_partitions(cluster: Cluster, broker: int) -> Step:
    """Elect leaders where there is none, now that a broker is back."""
    return _elect_waiting(cluster, {broker})


def decide_elect_waiting_leaders(cluster: Cluster, event: ElectWaitingLeaders) -> Decision[None]:
    """Elect leaders where there is none: the rest of a return, of this active controller or the one before."""
    change, is_last = _elect_waiting(cluster, ())
    return Decision(() if change is None else (change,), rest=() if is_last else (event,))


def _elect_waiting(cluster: Cluster, returning: Collection[int]) -> Step:
    rows = cluster.columns.without_live_leader(cluster.columns.flags(cluster.registered()))
    return _step(cluster, rows, returning=returning)


def _step(
    cluster: Cluster,
    rows: IntArray,
    leaving: Collection[int] = (),
    returning: Collection[int] = (),
    lost: Collection[int] = (),
) -> Step:
    """Change the first rows that need it."""
    may_lead = (set(cluster.may_lead()) | set(returning)) - set(leaving)
    is_first = cluster.shutting_down.isdisjoint(leaving)
    size = len(rows) if is_first and len(rows) <= WHOLE_STEPS * cluster.step_rows else cluster.step_rows
    for begin in range(0, len(rows), max(1, size)):
        end = begin + size
        some = rows[begin:end]
        isr = cluster.columns.isr[some]
        kept = columns.keep_ids(isr, ~np.isin(isr, list(leaving)))
        who = Electing(may_lead, cluster.unclean_allowed(some), lost=frozenset(lost))
        change = complete_change(cluster, some, Target(kept), who)
        if change is not None:
            return Step(change, is_last=end >= len(rows))
    return Step(None, is_last=True)
