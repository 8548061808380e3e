"""Goals of Reassignments: translation to `move_planner` and of its result to a plan.

    removeBrokers, racks, replicationFactor    what they need moves, and nothing else
    addBrokers, rebalance                      bytes and preferred leaders of all brokers are levelled

They may be joined. Where only some topics are chosen, or some are excluded, the others count for nothing. Sizes are the bytes of logs;
if sizes are unknown every replica counts one, and a limit of bytes cannot be applied. An offline broker that holds replicas
is waited for, unless it is to be removed: its replicas are not copied elsewhere because of a restart.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller_core.model.columns import pad, unpad
from kafka_operator.decide.kafka.layout import Layout, Sizes, size_of
from kafka_operator.decide.kafka.observed import KafkaPartition
from kafka_operator.decide.plans.plan import Plan, PlanProblem
from kafka_operator.resources.reassignment import Assignment, Partition
from kafka_operator.resources.reassignment_records import DirectoryFigures, LeftOut, written_bytes
from kafka_operator.resources.reassignment_terms import Goal
from move_planner import Plan as MovePlan
from move_planner import PlanRequest, plan_moves
from move_planner.request import MAX_TOTAL_LOAD
from reconciler.decide.listed import first_few, listed

SIZES_UNKNOWN = "goal.maxBytesMoved requires the sizes of logs, which the brokers do not return. Allow DescribeLogDirs (Describe on the cluster)."


@dataclass(frozen=True, slots=True)
class Found:
    """A plan in the order in which it is to be carried out; a bound where the planner gave one, and what it does not reach."""

    plan: Plan
    lower_bound: int | None = None
    """What any plan that reaches all of the goal must copy; with a limit of bytes it may be more than this plan copies."""
    unreached: tuple[str, ...] = ()
    left_out: LeftOut | None = None
    copied: int = 0
    """Bytes that it copies, or replicas where sizes are not known."""
    base: Plan | None = None
    """The assignments before; None if they are the current replicas."""
    log_dirs: tuple[DirectoryFigures, ...] = ()
    """Log directories before and after, if the plan moves replicas between them."""


def plan_for_goal(goal: Goal, layout: Layout, sizes: Sizes | None) -> Found | PlanProblem:
    """Return the plan for a goal, or why there can be none."""
    rows = rows_of(goal, layout)
    problem = _problem(goal, layout, rows)
    if problem is None and goal.max_bytes_moved is not None and rows and sizes is None:
        problem = PlanProblem("SizesUnknown", SIZES_UNKNOWN, may_pass=True)
    if problem is not None:
        return problem
    level = goal.rebalance or bool(goal.add_brokers)
    request = PlanRequest(
        replicas=pad([item.replicas for _, item in rows]),
        brokers=dict(layout.racks),
        leaders=np.array([item.leader for _, item in rows], dtype=np.int32),
        loads=None if sizes is None else np.array([size_of(name, sizes) for name, _ in rows], dtype=np.int64),
        drained=frozenset(goal.remove_brokers),
        replication_factor=goal.replication_factor,
        level=level,
        racks=level or goal.racks,
        budget_bytes=None if goal.max_bytes_moved is None else min(goal.max_bytes_moved, MAX_TOTAL_LOAD),
    )
    try:
        answer = plan_moves(request)
    except ValueError as error:
        return PlanProblem("GoalRefused", f"No plan can be computed: {error}.")
    return _found(goal, answer, [name for name, _ in rows], sized=sizes is not None)


def without_cordoned(layout: Layout, goal: Goal, cordoned: Collection[int]) -> Layout:
    """Return a layout without the cordoned brokers that hold nothing of it: no goal but one that names them puts replicas there."""
    holding = {broker for topic in layout.topics.values() for item in topic.partitions for broker in item.replicas}
    left_out = set(cordoned) - holding - set(goal.add_brokers) - set(goal.remove_brokers)
    return replace(layout, racks={broker: rack for broker, rack in layout.racks.items() if broker not in left_out})


def _found(goal: Goal, answer: MovePlan, names: Sequence[Partition], *, sized: bool) -> Found | PlanProblem:
    plan = tuple(
        Assignment(names[int(row)], unpad(replicas)) for row, replicas in zip(answer.rows, answer.replicas, strict=True)
    )
    left_out = LeftOut(answer.cut_steps, answer.cut_bytes) if answer.cut_steps else None
    if left_out is not None and not plan:
        least, limit = written_bytes(answer.lower_bound_bytes), written_bytes(goal.max_bytes_moved or 0)
        message = f"goal.maxBytesMoved of {limit} is less than the first partition needs; the complete goal needs {least}. Raise it."
        return PlanProblem("NoRoomInLimit", message)
    reasons = [item.why for item in answer.unreached]
    if not sized:
        reasons.insert(0, "the sizes of logs are unknown (DescribeLogDirs is denied), so all replicas count the same")
    bound = min(answer.lower_bound_bytes, answer.copied_bytes + answer.cut_bytes)
    return Found(plan, bound if sized else 0, first_few(reasons), left_out, answer.copied_bytes)


def rows_of(goal: Goal, layout: Layout) -> list[tuple[Partition, KafkaPartition]]:
    """Return the partitions that a goal is for."""
    chosen, excluded = set(goal.topics), set(goal.excluded_topics)
    return [
        (Partition(topic.name, item.index), item)
        for name, topic in sorted(layout.topics.items())
        if name not in excluded and (not chosen or name in chosen)
        for item in topic.partitions
    ]


def problem_with_goal(goal: Goal, layout: Layout) -> PlanProblem | None:
    """Return why no plan can be made for a goal, as far as that is known without sizes and without making one."""
    return _problem(goal, layout, rows_of(goal, layout))


def _problem(goal: Goal, layout: Layout, rows: Sequence[tuple[Partition, KafkaPartition]]) -> PlanProblem | None:
    missing = sorted(set(goal.topics) - layout.topics.keys())
    if missing:
        return PlanProblem("UnknownTopic", f"Topics do not exist: {listed(missing)}.", may_pass=True)
    if goal.balance_log_dirs:  # offline brokers are left out
        return None
    alive = layout.racks.keys()
    new = sorted(set(goal.add_brokers) - alive)
    if new:
        message = (
            f"goal.addBrokers contains brokers that are not live: {listed(new)}. Live brokers: {listed(sorted(alive))}."
        )
        return PlanProblem("UnknownBroker", message, may_pass=True)
    holding = {broker for _, item in rows for broker in item.replicas}
    unknown = sorted(set(goal.remove_brokers) - alive - holding)
    if unknown:
        message = f"goal.removeBrokers contains brokers that are not live and hold no replicas: {listed(unknown)}."
        return PlanProblem("UnknownBroker", message)
    offline = sorted(holding - alive - set(goal.remove_brokers))
    if offline:
        text = f"Brokers with replicas are offline: {listed(offline)}. Start them, or add them to goal.removeBrokers."
        return PlanProblem("BrokerOffline", text, may_pass=True)
    staying = alive - set(goal.remove_brokers)
    copies = max(goal.replication_factor or 0, 1)
    if len(staying) < copies:
        message = f"{copies} replicas need the same number of brokers, and only {len(staying)} of {len(alive)} remain. Add brokers."
        return PlanProblem("NotEnoughBrokers", message)
    return None
