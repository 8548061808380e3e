"""Automatic rebalances of a Cluster: one Reassignment at a time, in state Proposed until it is approved.

    needed ─► created ─► recorded as open ─► ended: recorded, and evaluated again
                              │  no longer what is needed, and nothing has moved: withdrawn (cancelled)
                              └► another one is made when it has ended

The name follows from a number in the status that is raised only when the Reassignment was seen, so that a process that died after it
created one finds it, and two that both run for a moment make one. What it moves, when and how fast is its own affair.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from kafka_operator.decide.clusters.rebalance_need import (
    CurrentState,
    Measure,
    Need,
    ReadHolders,
    find_imbalance,
    find_need,
    new_brokers,
    noted,
)
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.resources.auto_rebalance import AutoRebalance, OpenRebalance, RebalanceRecord
from kafka_operator.resources.cluster import Cluster, ClusterStatus
from kafka_operator.resources.reassignment import Reassignment, State
from kafka_operator.resources.reassignment_terms import Action
from reconciler.decide.conditions import FALSE, TRUE, with_condition, without_condition
from reconciler.decide.steps import Done, ResourceEvent, Wait, WriteStatus
from reconciler.resources.metadata import write_time

REBALANCED = "Rebalanced"

POLL_INTERVAL_S = 10.0
"""Interval of checks whether a rebalance is needed: the poll interval of brokers."""

MAX_NAME_LENGTH = 200
"""Of the Cluster's name within the Reassignment's: with the rest it stays below the 253 characters of an object's name."""


@dataclass(frozen=True, slots=True)
class RebalanceView:
    """Input of a decision: the cluster, the Reassignments of the Cluster's namespace by name, and others on the same Kafka."""

    now: datetime
    current: CurrentState
    reassignments: Mapping[str, Reassignment] = field(default_factory=dict)
    others: tuple[Reassignment, ...] = ()


Step = CreateReassignment | CancelReassignment | WriteStatus[ClusterStatus] | ReadHolders | Measure | Wait | Done


def decide_rebalance(cluster: Cluster, view: RebalanceView) -> Step:
    """Return the next step for a Cluster that is reachable and not being deleted."""
    spec, record = cluster.auto_rebalance, cluster.status.auto_rebalance
    if spec is None:
        return _switched_off(cluster)
    if record is None:
        return _first_record(cluster, view)
    step = _follow(cluster, record, view)
    if step is not None:
        return step
    changed = noted(cluster, spec, record, view.current)
    if changed != record:
        return _note(cluster, changed)
    need = find_need(cluster, spec, record, view.current)
    if isinstance(need, ReadHolders):
        return need
    if record.open is not None:
        return _open(cluster, record, record.open, need, view)
    return _make(cluster, spec, record, need, view)


def _make(
    cluster: Cluster, spec: AutoRebalance, record: RebalanceRecord, need: Need | None, view: RebalanceView
) -> Step:
    """Create the Reassignment that is needed, if no other one is in progress."""
    wanted = need or find_imbalance(spec, record, view.current, view.now)
    if isinstance(wanted, Measure):
        return wanted
    if wanted is None:
        return _report(cluster, view, *_at_rest(cluster, spec, record, view.current)) or Wait(POLL_INTERVAL_S)
    busy = next((other for other in view.others if other.status.begun or _is_goal(other)), None)
    if busy is not None:
        message = f"A Reassignment is needed that {wanted}; it will be created when {busy.key} has ended."
        return _report(cluster, view, FALSE, "WaitingForReassignment", message) or Wait(POLL_INTERVAL_S)
    return CreateReassignment(name_of(cluster, record.made + 1), _spec(cluster, spec, wanted))


def name_of(cluster: Cluster, number: int) -> str:
    """Return the name of the Reassignment with this number."""
    stem = cluster.key.name
    if len(stem) > MAX_NAME_LENGTH:
        stem = f"{stem[:MAX_NAME_LENGTH]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"
    return f"{stem}-auto-{number}"


def _switched_off(cluster: Cluster) -> Step:
    conditions = without_condition(cluster.status.conditions, REBALANCED)
    status = replace(cluster.status, auto_rebalance=None, conditions=conditions)
    return Done() if status == cluster.status else WriteStatus(status)


def _first_record(cluster: Cluster, view: RebalanceView) -> Step:
    """Record the known brokers when rebalancing is switched on: those that hold replicas, or all if none does."""
    if view.current.holders is None:
        return ReadHolders()
    made = 0
    while name_of(cluster, made + 1) in view.reassignments:
        made += 1
    brokers = tuple(sorted(view.current.holders or view.current.alive))
    return WriteStatus(replace(cluster.status, auto_rebalance=RebalanceRecord(made, brokers)))


def _follow(cluster: Cluster, record: RebalanceRecord, view: RebalanceView) -> Step | None:
    """Note the Reassignment that was made, or that it has ended; None where there is nothing of that."""
    if record.open is not None:
        found = view.reassignments.get(record.open.name)
        return None if found is not None and not _ended(found) else _note(cluster, _closed(record, found, view.now))
    name = name_of(cluster, record.made + 1)
    found = view.reassignments.get(name)
    if found is None:
        return None
    made = replace(record, made=record.made + 1)
    if found.metadata.owner != cluster.key or found.goal is None:  # owned by another client: the next number is free
        return _note(cluster, made)
    need = Need(found.goal.add_brokers, found.goal.remove_brokers)
    event = ResourceEvent(warning=False, reason="RebalanceMade", message=f"Reassignment {name} {need}.")
    return _note(cluster, replace(made, open=OpenRebalance(name, need.added, need.removed)), event)


def _closed(record: RebalanceRecord, found: Reassignment | None, now: datetime) -> RebalanceRecord:
    """Note an end: new brokers have had their chance, and a removal that moved nothing, or was not to be, is not tried again."""
    ended = record.open
    assert ended is not None, record
    state = None if found is None else found.status.state
    if ended.withdrawn and state is not State.COMPLETED:
        return replace(record, open=None)
    progress = None if found is None else found.status.progress
    emptied = state is State.COMPLETED and progress is not None and progress.total > 0
    return replace(
        record,
        open=None,
        brokers=tuple(sorted({*record.brokers, *ended.added})),
        declined=record.declined if emptied else tuple(sorted({*record.declined, *ended.removed})),
        last_end_time=write_time(now),
    )


def _open(
    cluster: Cluster, record: RebalanceRecord, made: OpenRebalance, need: Need | None, view: RebalanceView
) -> Step:
    """Look after the one that is open: withdrawn where something else is needed and nothing has moved, else followed."""
    item = view.reassignments[made.name]
    purpose = Need(made.added, made.removed)
    levels = purpose == Need()
    still_needed = need == purpose or (levels and need is None) or (need is None and not view.current.settled)
    if not item.status.begun and item.action is Action.EXECUTE and (made.withdrawn or not still_needed):
        if not made.withdrawn:
            return _note(cluster, replace(record, open=replace(made, withdrawn=True)))
        return CancelReassignment(made.name, item.metadata.resource_version)
    if item.status.state is State.PROPOSED:
        reason, text = (
            "RebalanceProposed",
            "review its proposal, then set its spec.approvedDigest to its status.digest",
        )
        message = f"Reassignment {made.name} {purpose}, and waits for approval: {text}."
    else:
        reason, message = "Rebalancing", f"Reassignment {made.name} {purpose}; it is in progress."
    return _report(cluster, view, FALSE, reason, message) or Wait(POLL_INTERVAL_S)


def _at_rest(
    cluster: Cluster, spec: AutoRebalance, record: RebalanceRecord, current: CurrentState
) -> tuple[str, str, str]:
    """Return status, reason and message where nothing is to be made."""
    new = new_brokers(cluster, record, current) if spec.on_brokers_added else []
    if new:
        message = f"Brokers {', '.join(map(str, new))} are new. A Reassignment is created when the set of brokers has not changed for some time."
        return FALSE, "WaitingForBrokers", message
    if record.declined:
        message = (
            f"Brokers {', '.join(map(str, record.declined))} hold replicas and are to be removed; their Reassignment did not complete. "
            "Create a Reassignment, or declare these brokers again for a moment to retry."
        )
        return FALSE, "RemovalEnded", message
    return TRUE, "NothingToDo", "No broker was added or removed, and no rebalance is needed."


def _spec(cluster: Cluster, spec: AutoRebalance, need: Need) -> dict[str, Any]:
    return {
        "clusterRef": {"name": cluster.key.name},
        "goal": need.goal(spec),
        "approval": spec.approval.value,
        **spec.terms,
    }


def _note(cluster: Cluster, record: RebalanceRecord, event: ResourceEvent | None = None) -> Step:
    return WriteStatus(replace(cluster.status, auto_rebalance=record), event)


def _report(cluster: Cluster, view: RebalanceView, status: str, reason: str, message: str) -> Step | None:
    conditions = with_condition(
        cluster.status.conditions,
        REBALANCED,
        status=status,
        reason=reason,
        message=message,
        generation=cluster.metadata.generation,
        now=view.now,
    )
    if conditions == cluster.status.conditions:
        return None
    return WriteStatus(replace(cluster.status, conditions=conditions))


def _is_goal(item: Reassignment) -> bool:
    """Return whether an active Reassignment may move what one of this Cluster's goals would move."""
    return item.goal is not None and not _ended(item)


def _ended(item: Reassignment) -> bool:
    return item.status.state is not None and item.status.state.ended
