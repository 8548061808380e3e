"""Preparation of a Reassignment: its plan is computed, validated, recorded with its base, and approved.

    made ─► checked ─► claimed ─► recorded: Pending ──────────────► handed over
                                     │  approval Required               ▲
                                     └► Proposed ─ approvedDigest ──────┘
                                           ▲ │ the base drifted
                                           └─┘

Approval refers to a digest of plan and base together. If a partition of the plan is found elsewhere than in the base, the approval no
longer applies: a new proposal is made, and approval is requested again.
"""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.plans.desired_plan import Checked, DesiredPlan, Material, checked, desired_plan_of
from kafka_operator.decide.plans.plan import PlanProblem, check_plan
from kafka_operator.decide.plans.plan_packing import INLINE_PARTITIONS, Recorded
from kafka_operator.decide.reassignments.hold import PENDING
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.decide.reassignments.reassignment_status import ended, pending, proposed, written
from kafka_operator.decide.reassignments.reassignment_steps import MakePlan, StorePlan
from kafka_operator.decide.reassignments.reassignment_view import (
    CHECK_TIMEOUT_S,
    PROPOSAL_POLL_S,
    ReassignmentView,
    Step,
)
from kafka_operator.decide.steps import Claim
from kafka_operator.resources.reassignment import Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress, Proposal, Stored, written_bytes
from kafka_operator.resources.reassignment_terms import Action, Approval
from reconciler.decide.conditions import FALSE
from reconciler.decide.steps import RETRY_LATER_S, Done, Retry, Wait


def decide_preparation(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Return the next step for a Reassignment without a recorded plan."""
    if reassignment.action is not Action.EXECUTE:
        return _never_begun(reassignment, view)
    if view.wanted is None:
        return MakePlan()
    if isinstance(view.wanted, PlanProblem):
        return _with_problem(reassignment, view.wanted, view)
    if not reassignment.metadata.has_finalizer:
        return Claim()
    return _record(reassignment, view, view.wanted, drifted=False)


def decide_proposed(reassignment: Reassignment, view: ReassignmentView, partitions: PartitionProgress) -> Step:
    """Return the next step for a Reassignment that waits for approval."""
    if reassignment.action is not Action.EXECUTE:
        return _never_begun(reassignment, view)
    if has_drifted(partitions):
        return propose_again(reassignment, view)
    status = reassignment.status
    if reassignment.approval is Approval.REQUIRED and reassignment.approved_digest != status.digest:
        ready = proposed(reassignment, *_asked(reassignment), view.now)
        return written(reassignment, ready) or Wait(PROPOSAL_POLL_S)
    assert isinstance(view.recorded, Recorded), reassignment.key
    problem = problem_of(DesiredPlan(view.recorded.plan), view)
    if problem is not None:
        updated = proposed(
            reassignment, problem.reason, f"{problem.message} It is approved and will start afterwards.", view.now
        )
        return written(reassignment, updated) or Retry(RETRY_LATER_S)
    return written(reassignment, pending(reassignment, FALSE, *CHECKED, view.now)) or Retry()


def has_drifted(partitions: PartitionProgress) -> bool:
    """Return whether a partition of a plan that has not started differs from its base."""
    at_base = len(partitions.later) + len(partitions.due)
    at_both = sum(partitions.before[item.partition] == item for item in partitions.arrived)
    return at_base + at_both < partitions.total


def propose_again(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """Make a new proposal for a Reassignment whose base has drifted, if possible now."""
    if view.wanted is None:
        return MakePlan()
    if isinstance(view.wanted, PlanProblem):
        message = (
            f"The cluster has changed since the proposal, and no new proposal can be computed: {view.wanted.message}"
        )
        updated = replace(proposed(reassignment, "BaseDrifted", message, view.now), digest=None)
        return written(reassignment, updated) or Retry(RETRY_LATER_S)
    return _record(reassignment, view, view.wanted, drifted=True)


def _record(reassignment: Reassignment, view: ReassignmentView, wanted: Checked, *, drifted: bool) -> Step:
    """Record plan and base before anything moves; an empty plan is already completed."""
    if not wanted.recorded.plan:
        done = ended(
            reassignment,
            State.COMPLETED,
            reason="Completed",
            message="The desired state is already reached; nothing has to be moved.",
            progress=Progress(0, 0),
            now=view.now,
        )
        return written(reassignment, replace(done, proposal=wanted.proposal)) or Done()
    recorded, digest = wanted.recorded, wanted.digest
    stored = view.stored.get(digest)
    if stored is None and len(recorded.plan) > INLINE_PARTITIONS:
        return StorePlan(recorded, digest)
    status = replace(
        _kept(reassignment.status, recorded, stored),
        digest=digest,
        plan_digest=wanted.plan_digest,
        proposal=wanted.proposal,
        progress=Progress(0, len(recorded.plan), None if wanted.bytes_to_move is None else 0, wanted.bytes_to_move),
    )
    return written(reassignment, _first(replace(reassignment, status=status), view, drifted=drifted)) or Retry()


def _kept(status: ReassignmentStatus, recorded: Recorded, stored: Stored | None) -> ReassignmentStatus:
    if stored is not None:
        return replace(status, plan=None, base=None, stored=stored)
    return replace(status, plan=recorded.plan, base=recorded.base, stored=None)


def _first(reassignment: Reassignment, view: ReassignmentView, *, drifted: bool) -> ReassignmentStatus:
    """Return the first status with a plan: Proposed if approval is required, else Pending."""
    if reassignment.approval is Approval.AUTOMATIC or (
        not drifted and reassignment.approved_digest == reassignment.status.digest
    ):
        return pending(reassignment, FALSE, *CHECKED, view.now)
    reason, message = _asked(reassignment)
    if drifted:
        reason, message = "BaseDrifted", message if message.startswith(DRIFTED) else f"{DRIFTED} {message}"
    return proposed(reassignment, reason, message, view.now)


CHECKED = (PENDING, "The plan is valid; no move has started yet.")


DRIFTED = "Replicas of the plan have moved since the proposal, so there is a new proposal."


def _asked(reassignment: Reassignment) -> tuple[str, str]:
    """Return reason and message of the condition that requests approval."""
    status, proposal = reassignment.status, reassignment.status.proposal
    what = "The plan"
    if proposal is not None:
        what = f"{proposal.partitions} partitions change and {written_bytes(proposal.bytes_to_move)} are copied{_cut(proposal)}; the plan"
    request = f"{what} waits for approval: set spec.approvedDigest to {status.digest}."
    current = next((item.reason for item in status.conditions if item.type == "Ready"), "")
    if current == "BaseDrifted":
        return current, f"{DRIFTED} {request}"
    if reassignment.approved_digest not in {None, status.digest}:
        return (
            "ApprovalDiffers",
            f"spec.approvedDigest refers to another proposal, {reassignment.approved_digest}. {request}",
        )
    return "ApprovalRequired", request


def _cut(proposal: Proposal) -> str:
    left = proposal.left_out
    if left is None:
        return ""
    return f" (goal.maxBytesMoved excludes {left.partitions} more with {written_bytes(left.bytes)})"


def plan_for(reassignment: Reassignment, material: Material, view: ReassignmentView) -> Checked | PlanProblem:
    """Return the plan that a Reassignment asks for, checked against the cluster that `view` shows."""
    wanted = desired_plan_of(reassignment, material)
    if isinstance(wanted, PlanProblem):
        return wanted
    return problem_of(wanted, view) or checked(wanted, view.topics)


def problem_of(wanted: DesiredPlan, view: ReassignmentView) -> PlanProblem | None:
    """Return why the cluster cannot execute a plan; None if it can."""
    return check_plan(
        wanted.plan,
        topics=view.topics,
        broker_ids=view.broker_ids,
        moves=view.moves,
        rivals=view.rivals,
        made_for=wanted.cluster_id,
        cluster_id=view.cluster_id,
    )


def _with_problem(reassignment: Reassignment, problem: PlanProblem, view: ReassignmentView) -> Step:
    if not problem.may_pass or view.waited_s >= CHECK_TIMEOUT_S:
        message = f"{problem.message} No replica was moved. Create another Reassignment to retry."
        status = ended(reassignment, State.FAILED, reason=problem.reason, message=message, progress=None, now=view.now)
        return written(reassignment, status) or Done()
    message = f"{problem.message} Nothing is moved."
    status = pending(reassignment, FALSE, problem.reason, message, view.now)
    return written(reassignment, status) or Retry(RETRY_LATER_S / 2, RETRY_LATER_S)


def _never_begun(reassignment: Reassignment, view: ReassignmentView) -> Step:
    """End a Reassignment that is cancelled or rolled back before anything moved."""
    back = reassignment.action is Action.ROLLBACK
    status = ended(
        reassignment,
        State.ROLLED_BACK if back else State.CANCELLED,
        reason="RolledBack" if back else "Cancelled",
        message="No move had started, so nothing is rolled back." if back else "Cancelled before any move started.",
        progress=reassignment.status.progress,
        now=view.now,
    )
    return written(reassignment, status) or Done()
