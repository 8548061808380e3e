"""Desired plan of a Reassignment, from any of its forms, with its effects on brokers.

    plan        as written              planFrom    content of the ConfigMaps, if their digest matches
    topics      spread over brokers     goal        what the planner finds

`plan.check_plan` checks whether the cluster can carry it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from kafka_operator.decide.kafka.layout import Layout, Sizes, size_of
from kafka_operator.decide.kafka.observed import KafkaTopic, partition_in
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs
from kafka_operator.decide.plans.goals import Found, plan_for_goal
from kafka_operator.decide.plans.log_dir_goal import plan_for_log_dirs
from kafka_operator.decide.plans.plan import Plan, PlanProblem, Topics, exact_plan
from kafka_operator.decide.plans.plan_document import Document, digests_of
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.resources.reassignment import Assignment, Partition, Reassignment
from kafka_operator.resources.reassignment_records import BrokerFigures, Proposal
from kafka_operator.resources.reassignment_terms import Approval

CREATE_ANOTHER = "Create another Reassignment with the digest of the intended plan."


@dataclass(frozen=True, slots=True)
class DesiredPlan:
    """A plan, the cluster it was made for if it names one, and its effects; bytes are None if sizes are unknown."""

    plan: Plan
    cluster_id: str | None = None
    proposal: Proposal | None = None
    bytes_to_move: int | None = None
    base: Plan | None = None
    """The assignments before; None if they are the current replicas."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A plan that the cluster can carry out, with the replicas of now as its base, and the digests of both."""

    recorded: Recorded
    digest: str
    plan_digest: str
    proposal: Proposal | None = None
    bytes_to_move: int | None = None


@dataclass(frozen=True, slots=True)
class Material:
    """What a plan is made from: the cluster, sizes (None where unknown), and what ConfigMaps hold, if the plan is there."""

    layout: Layout = field(default_factory=Layout)
    sizes: Sizes | None = None
    document: Document | PlanProblem | None = None
    dirs: BrokerReplicaDirs = field(default_factory=dict)
    """Log directories of the brokers, if the goal is about them."""


def desired_plan_of(reassignment: Reassignment, material: Material) -> DesiredPlan | PlanProblem:
    """Return the plan, or why there is none."""
    found = _found(reassignment, material)
    if isinstance(found, PlanProblem):
        return found
    topics, sizes = material.layout.topics, material.sizes
    to_move = None if sizes is None else bytes_to_copy(found.plan, topics, sizes)
    if reassignment.is_between_log_dirs:
        to_move = found.copied
    cluster_id = material.document.cluster_id if isinstance(material.document, Document) else None
    wanted = DesiredPlan(found.plan, cluster_id, None, to_move, found.base)
    if reassignment.goal is None and reassignment.approval is Approval.AUTOMATIC:
        return wanted
    least = to_move or 0
    proposal = Proposal(
        partitions=len(found.plan),
        bytes_to_move=least,
        lower_bound_bytes=least if found.lower_bound is None else found.lower_bound,
        brokers=() if reassignment.is_between_log_dirs else figures(found.plan, topics, sizes or {}),
        unreached=found.unreached,
        left_out=found.left_out,
        log_dirs=found.log_dirs,
    )
    return replace(wanted, proposal=proposal)


def checked(wanted: DesiredPlan, topics: Topics) -> Checked:
    """Return a plan with its base, after `check_plan` has found no problem."""
    base = wanted.base
    if base is None:
        base = tuple(Assignment(item.partition, _replicas(item.partition, topics)) for item in wanted.plan)
    plan_digest, digest = digests_of(wanted.plan, base, wanted.cluster_id)
    recorded = Recorded(wanted.plan, base, wanted.cluster_id)
    return Checked(recorded, digest, plan_digest, wanted.proposal, wanted.bytes_to_move)


def bytes_to_copy(plan: Plan, topics: Topics, sizes: Sizes) -> int:
    """Return the bytes of all replicas that the plan puts where none is."""
    return sum(
        size_of(item.partition, sizes) * len(set(item.replicas) - set(_replicas(item.partition, topics)))
        for item in plan
    )


def figures(plan: Plan, topics: Topics, sizes: Sizes) -> tuple[BrokerFigures, ...]:
    """Return each broker that holds anything of these topics, before and after."""
    target = {item.partition: item.replicas for item in plan}
    counts: dict[int, list[int]] = {}
    for partition, before in replicas_by_partition(topics.values()).items():
        size = size_of(partition, sizes)
        for after, replicas in enumerate((before, target.get(partition, before))):
            for place, broker in enumerate(replicas):
                held = counts.setdefault(broker, [0] * 6)
                held[after] += 1
                held[2 + after] += place == 0
                held[4 + after] += size
    return tuple(
        BrokerFigures(broker, (held[0], held[1]), (held[2], held[3]), (held[4], held[5]))
        for broker, held in sorted(counts.items())
    )


def replicas_by_partition(topics: Iterable[KafkaTopic]) -> Mapping[Partition, tuple[int, ...]]:
    """Return where each partition is."""
    return {Partition(topic.name, item.index): item.replicas for topic in topics for item in topic.partitions}


def _replicas(name: Partition, topics: Topics) -> tuple[int, ...]:
    known = partition_in(topics, name)
    return () if known is None else known.replicas


def _found(reassignment: Reassignment, material: Material) -> Found | PlanProblem:
    if reassignment.goal is not None and reassignment.goal.balance_log_dirs:
        return plan_for_log_dirs(reassignment.goal, material.layout, material.dirs)
    if reassignment.goal is not None:
        return plan_for_goal(reassignment.goal, material.layout, material.sizes)
    if reassignment.plan_from is not None:
        plan = _from_config_maps(reassignment.plan_from.digest, material.document)
    else:
        plan = exact_plan(reassignment, material.layout.topics)
    return plan if isinstance(plan, PlanProblem) else Found(plan)


def _from_config_maps(digest: str, document: Document | PlanProblem | None) -> Plan | PlanProblem:
    assert document is not None, digest
    if isinstance(document, PlanProblem):
        return document
    if document.digest != digest:
        message = f"The plan in the ConfigMaps has the digest {document.digest}, but spec.planFrom.digest is {digest}."
        return PlanProblem("DigestDiffers", f"{message} {CREATE_ANOTHER}", may_pass=True)
    return document.plan
