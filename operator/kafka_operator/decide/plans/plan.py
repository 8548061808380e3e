"""Validation of a Reassignment's plan against the cluster: all of it is valid, or none of it is executed.

Each problem has its own reason. Those that may pass while a user's other resources take effect (a topic that is being
created, a broker that starts) are waited for; the others are final, since a plan that starts by itself much later surprises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_operator.decide.kafka.observed import KafkaTopic, Moves, partition_in
from kafka_operator.decide.plans.spread import spread
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment
from reconciler.decide.listed import listed
from reconciler.names import Key

Topics = Mapping[str, KafkaTopic]
Plan = tuple[Assignment, ...]


@dataclass(frozen=True, slots=True)
class PlanProblem:
    """Why a plan cannot be carried out; `may_pass` where the cluster may yet become what the plan needs."""

    reason: str
    message: str
    may_pass: bool = False


def exact_plan(reassignment: Reassignment, topics: Topics) -> Plan | PlanProblem:
    """Return the plan as written, or the one that follows from topics and brokers."""
    if reassignment.plan:
        return reassignment.plan
    missing = [move.topic for move in reassignment.topics if move.topic not in topics]
    if missing:
        return _unknown_topics(missing)
    plan: list[Assignment] = []
    for move in reassignment.topics:
        assignments = spread(topics[move.topic], move.brokers)
        if assignments is None:
            most = max(len(partition.replicas) for partition in topics[move.topic].partitions)
            return PlanProblem(
                "NotEnoughBrokers",
                f"Topic {move.topic} has {most} replicas of a partition, but only {len(move.brokers)} brokers are given.",
            )
        plan.extend(assignments)
    return tuple(plan)


def check_plan(
    plan: Plan,
    *,
    topics: Topics,
    broker_ids: Iterable[int],
    moves: Moves,
    rivals: Mapping[Partition, Key],
    made_for: str | None = None,
    cluster_id: str = "",
) -> PlanProblem | None:
    """Return the first problem of a plan, or None if all of it can be submitted to the controller.

    `moves` are those that go on in the cluster, `rivals` the partitions of other Reassignments that have begun; `made_for` is the
    cluster that the plan itself names.
    """
    return (
        _another_cluster(made_for, cluster_id)
        or _repeated_partition(plan)
        or _repeated_replica(plan)
        or _unknown_names(plan, topics)
        or _unknown_brokers(plan, frozenset(broker_ids))
        or _overlap(plan, moves, rivals)
    )


def _another_cluster(made_for: str | None, cluster_id: str) -> PlanProblem | None:
    if made_for is None or made_for == cluster_id:
        return None
    message = f'The plan was computed for cluster {made_for} ("clusterId"), but the cluster ID of this Cluster is {cluster_id}.'
    return PlanProblem("AnotherCluster", f"{message} Refer to the other Cluster, or compute a plan for this one.")


def _repeated_partition(plan: Plan) -> PlanProblem | None:
    if len({item.partition for item in plan}) == len(plan):
        return None
    counts = Counter(item.partition for item in plan)
    repeated = [str(partition) for partition, count in counts.items() if count > 1]
    return PlanProblem("DuplicatePartition", f"The plan contains a partition twice: {listed(repeated)}.")


def _repeated_replica(plan: Plan) -> PlanProblem | None:
    wrong = {replicas for replicas in _sets(plan) if len(set(replicas)) < len(replicas)}
    if not wrong:
        return None
    repeated = [f"{item.partition} {list(item.replicas)}" for item in plan if item.replicas in wrong]
    return PlanProblem("DuplicateReplica", f"The plan contains a broker twice for one partition: {listed(repeated)}.")


def _sets(plan: Iterable[Assignment]) -> frozenset[tuple[int, ...]]:
    """Return the different replicas of a plan: large ones have the same for many partitions."""
    return frozenset(item.replicas for item in plan)


def _unknown_names(plan: Plan, topics: Topics) -> PlanProblem | None:
    missing = sorted({item.partition.topic for item in plan} - topics.keys())
    if missing:
        return _unknown_topics(missing)
    unknown = [str(item.partition) for item in plan if partition_in(topics, item.partition) is None]
    if unknown:
        return PlanProblem("UnknownPartition", f"Partitions do not exist: {listed(unknown)}.", may_pass=True)
    return None


def _unknown_topics(names: Sequence[str]) -> PlanProblem:
    return PlanProblem("UnknownTopic", f"Topics do not exist: {listed(names)}.", may_pass=True)


def _unknown_brokers(plan: Plan, broker_ids: frozenset[int]) -> PlanProblem | None:
    moved = [item for item in plan if not item.log_dirs]  # the goal balanceLogDirs names live brokers only
    unknown = sorted({broker for replicas in _sets(moved) for broker in replicas} - broker_ids)
    if unknown:
        alive = ", ".join(map(str, sorted(broker_ids)))
        message = f"Brokers are not live: {listed([str(broker) for broker in unknown])}. Live brokers: {alive}."
        return PlanProblem("UnknownBroker", message, may_pass=True)
    return None


def _overlap(plan: Plan, moves: Moves, rivals: Mapping[Partition, Key]) -> PlanProblem | None:
    claimed = [item.partition for item in plan if item.partition in rivals]
    if claimed:
        other = rivals[claimed[0]]
        message = f"Reassignment {other.name} moves the same partitions: {listed([str(name) for name in claimed])}."
        return PlanProblem("Overlap", message)
    moving = [str(item.partition) for item in plan if item.partition in moves]
    if moving:
        return PlanProblem("Overlap", f"Another reassignment is already moving these partitions: {listed(moving)}.")
    return None
