"""The goal balanceLogDirs: replicas are moved between the log directories of each broker, none between brokers.

Left out are directories that are offline, replicas that another client is moving between directories, and brokers that do not answer.
Directories that are cordoned (KIP-1066) get no replica.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from kafka_operator.decide.kafka.kafka_errors import message_of
from kafka_operator.decide.kafka.layout import Layout
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs, DirectoryLogs
from kafka_operator.decide.plans.goals import Found, problem_with_goal, rows_of
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.resources.reassignment import ANY_LOG_DIR, Assignment, Partition
from kafka_operator.resources.reassignment_records import DirectoryFigures, LeftOut, written_bytes
from kafka_operator.resources.reassignment_terms import Goal
from move_planner.log_dirs import Directory, level_log_dirs
from reconciler.decide.listed import first_few

MAX_DIRECTORIES = 500
"""Directories shown in a proposal, of the brokers with the lowest ids."""


@dataclass(frozen=True, slots=True)
class _Change:
    """A replica of a broker moves from one directory to another."""

    broker_id: int
    partition: Partition
    bytes: int
    source: str
    target: str


def plan_for_log_dirs(goal: Goal, layout: Layout, found: BrokerReplicaDirs) -> Found | PlanProblem:
    """Return the plan, or why there can be none."""
    problem = problem_with_goal(goal, layout)
    if problem is not None:
        return problem
    failures = {broker: item for broker, item in sorted(found.items()) if isinstance(item, Failure)}
    if failures and len(failures) == len(found):
        text = message_of(next(iter(failures.values())))
        message = (
            f"The log directories of no broker can be read: {text} Allow DescribeLogDirs (Describe on the cluster)."
        )
        return PlanProblem("LogDirsUnknown", message, may_pass=True)
    replicas = {name: item.replicas for name, item in rows_of(goal, layout)}
    movable: dict[int, set[Partition]] = defaultdict(set)
    for name, brokers in replicas.items():
        for broker in brokers:
            movable[broker].add(name)
    by_broker: list[list[_Change]] = []
    bound, unreached = 0, [f"broker {broker}: {message_of(item)}" for broker, item in failures.items()]
    for broker, held in sorted(found.items()):
        if isinstance(held, Failure):
            continue
        directories = sorted((item for item in held if item.directory.online), key=lambda item: item.directory.path)
        changes, least, reason = _levelled(broker, directories, movable[broker])
        by_broker.append(changes)
        bound += least
        unreached += [] if reason is None else [reason]
    changes, left = _within(goal.max_bytes_moved, by_broker)
    if left is not None and not changes:
        message = f"goal.maxBytesMoved of {written_bytes(goal.max_bytes_moved or 0)} is less than the first replica needs. Raise it."
        return PlanProblem("NoRoomInLimit", message)
    copied = sum(item.bytes for item in changes)
    return Found(
        plan=_assignments(changes, replicas, {(item.broker_id, item.partition): item.target for item in changes}),
        base=_assignments(changes, replicas, {(item.broker_id, item.partition): item.source for item in changes}),
        lower_bound=min(bound, copied + (0 if left is None else left.bytes)),
        unreached=first_few(unreached),
        left_out=left,
        copied=copied,
        log_dirs=_figures(found, changes),
    )


def _levelled(
    broker: int, held: list[DirectoryLogs], movable: Collection[Partition]
) -> tuple[list[_Change], int, str | None]:
    """Return the moves of a broker, what any plan must copy, and why the directories do not become even."""
    being_moved = {name for item in held for name in item.futures}
    names = [sorted(name for name in item.logs if name in movable and name not in being_moved) for item in held]
    directories = [
        Directory(
            replica_bytes=tuple(item.logs[name] for name in chosen),
            other_bytes=sum(item.logs.values()) - sum(item.logs[name] for name in chosen),
            total_bytes=item.directory.total_bytes,
            usable_bytes=item.directory.usable_bytes,
            accepts=not item.directory.cordoned,
        )
        for item, chosen in zip(held, names, strict=True)
    ]
    plan = level_log_dirs(directories)
    changes = []
    for move in plan.moves:
        name, source = names[move.source][move.replica], held[move.source]
        target = held[move.target].directory.path
        changes.append(_Change(broker, name, source.logs[name], source.directory.path, target))
    reason = None
    if not plan.is_level:
        reason = f"broker {broker}: the shares of its log directories still differ by {plan.spread:.0%}; no further replica fits"
    return changes, plan.lower_bound_bytes, reason


def _within(limit: int | None, by_broker: list[list[_Change]]) -> tuple[list[_Change], LeftOut | None]:
    """Return the moves of all brokers in turn, up to a limit of bytes, and what the limit leaves out."""
    chosen: list[_Change] = []
    left: list[_Change] = []
    total = 0
    for item in _in_turn(by_broker):
        if left or (limit is not None and total + item.bytes > limit):
            left.append(item)
        else:
            chosen.append(item)
            total += item.bytes
    if not left:
        return chosen, None
    return chosen, LeftOut(len({item.partition for item in left}), sum(item.bytes for item in left))


def _in_turn(by_broker: list[list[_Change]]) -> Iterator[_Change]:
    for round_of_moves in zip_longest(*by_broker):
        yield from (item for item in round_of_moves if item is not None)


def _assignments(
    changes: list[_Change],
    replicas: Mapping[Partition, tuple[int, ...]],
    paths: Mapping[tuple[int, Partition], str],
) -> tuple[Assignment, ...]:
    """Return an assignment of each partition, in the order of its first move."""
    return tuple(
        Assignment(name, replicas[name], tuple(paths.get((broker, name), ANY_LOG_DIR) for broker in replicas[name]))
        for name in dict.fromkeys(item.partition for item in changes)
    )


def _figures(found: BrokerReplicaDirs, changes: list[_Change]) -> tuple[DirectoryFigures, ...]:
    """Return the bytes of logs before and after, in each directory of the brokers whose replicas move."""
    moved: dict[tuple[int, str], int] = defaultdict(int)
    for item in changes:
        moved[item.broker_id, item.source] -= item.bytes
        moved[item.broker_id, item.target] += item.bytes
    figures = []
    for broker in sorted({item.broker_id for item in changes}):
        held = found[broker]
        assert not isinstance(held, Failure), broker
        for logs in sorted(held, key=lambda item: item.directory.path):
            before = sum(logs.logs.values())
            figures.append(
                DirectoryFigures(broker, logs.directory.path, (before, before + moved[broker, logs.directory.path]))
            )
    return tuple(figures[:MAX_DIRECTORIES])
