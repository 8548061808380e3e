"""A goal as a plan: the planner of controller_core asked in its terms, and its answer in ours.

    removeBrokers, racks, replicationFactor    what they need moves, and nothing else
    addBrokers, rebalance                      bytes and preferred leaders of all brokers are levelled

They may be joined. Where only some topics are chosen, the others count for nothing. Sizes are the bytes of logs; where brokers do
not tell them every replica counts one. A broker that holds replicas and is away is waited for, unless it is to be removed: what it
holds is not to be copied elsewhere because it restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controller_core.cluster.planner import Plan as MovePlan
from controller_core.cluster.planner import PlanRequest, Reason, plan_moves
from controller_core.model.columns import pad, unpad
from kafka_operator.decide.layout import Layout, Sizes, size_of
from kafka_operator.decide.observed import KafkaPartition
from kafka_operator.decide.plan import MAX_LISTED, Plan, Trouble, listed
from kafka_operator.resources.reassignment import Assignment, Partition
from kafka_operator.resources.reassignment_terms import Goal


@dataclass(frozen=True, slots=True)
class Found:
    """A plan in the order in which it is to be carried out; a bound where the planner gave one, and what it does not reach."""

    plan: Plan
    lower_bound: int | None = None
    unreached: tuple[str, ...] = ()


def plan_for_goal(goal: Goal, layout: Layout, sizes: Sizes | None) -> Found | Trouble:
    """Return the plan for a goal, or why there can be none."""
    rows = _rows(goal, layout)
    trouble = _trouble(goal, layout, rows)
    if trouble is not None:
        return trouble
    request = PlanRequest(
        replicas=pad([item.replicas for _, item in rows]),
        brokers=dict(layout.racks),
        leaders=np.array([item.leader for _, item in rows], dtype=np.int32),
        loads=None if sizes is None else np.array([size_of(name, sizes) for name, _ in rows], dtype=np.int64),
        drained=frozenset(goal.remove_brokers),
        replication_factor=goal.replication_factor,
        level=goal.rebalance or bool(goal.add_brokers),
    )
    try:
        answer = plan_moves(request)
    except ValueError as error:
        return Trouble("GoalRefused", f"No plan can be made: {error}.")
    return _found(goal, request, answer, [name for name, _ in rows], sized=sizes is not None)


def _found(goal: Goal, request: PlanRequest, answer: MovePlan, names: Sequence[Partition], *, sized: bool) -> Found:
    kept = [
        (Assignment(names[int(row)], unpad(replicas)), int(copied))
        for row, replicas, copied, reason in zip(
            answer.rows, answer.replicas, answer.bytes, answer.reasons, strict=True
        )
        if request.level or goal.racks or int(reason) != Reason.RACK
    ]
    told = [item.why for item in answer.unreached if request.level or goal.racks or "rack" not in item.why]
    if not sized:
        told.insert(
            0, "the sizes of logs are not known (DescribeLogDirs is refused), so every replica counted the same"
        )
    unreached = (*told[:MAX_LISTED], *([f"and {len(told) - MAX_LISTED} more"] if len(told) > MAX_LISTED else []))
    bound = min(answer.lower_bound_bytes, sum(copied for _, copied in kept))
    return Found(tuple(item for item, _ in kept), bound if sized else 0, unreached)


def _rows(goal: Goal, layout: Layout) -> list[tuple[Partition, KafkaPartition]]:
    chosen = set(goal.topics)
    return [
        (Partition(topic.name, item.index), item)
        for name, topic in sorted(layout.topics.items())
        if not chosen or name in chosen
        for item in topic.partitions
    ]


def _trouble(goal: Goal, layout: Layout, rows: Sequence[tuple[Partition, KafkaPartition]]) -> Trouble | None:
    missing = sorted(set(goal.topics) - layout.topics.keys())
    if missing:
        return Trouble("UnknownTopic", f"The cluster has no such topic: {listed(missing)}.", may_pass=True)
    alive = layout.racks.keys()
    new = sorted(set(goal.add_brokers) - alive)
    if new:
        message = f"goal.addBrokers names brokers that are not alive: {listed(new)}. Alive are {listed(sorted(alive))}."
        return Trouble("UnknownBroker", message, may_pass=True)
    holding = {broker for _, item in rows for broker in item.replicas}
    unknown = sorted(set(goal.remove_brokers) - alive - holding)
    if unknown:
        message = f"goal.removeBrokers names brokers that are not alive and hold nothing: {listed(unknown)}."
        return Trouble("UnknownBroker", message)
    away = sorted(holding - alive - set(goal.remove_brokers))
    if away:
        words = (
            f"Brokers hold replicas and are not alive: {listed(away)}. Start them, or name them in goal.removeBrokers."
        )
        return Trouble("BrokerAway", words, may_pass=True)
    staying = alive - set(goal.remove_brokers)
    copies = max(goal.replication_factor or 0, 1)
    if len(staying) < copies:
        message = f"{copies} replicas need as many brokers, and {len(staying)} of {len(alive)} stay. Add brokers."
        return Trouble("NotEnoughBrokers", message)
    return None
