"""Approvals: requests that need the verb `approve` on reassignments, and the refusal of a user without it.

    Reassignment    approval becomes Automatic (an exact plan without the field is Automatic), or approvedDigest is set or changed
                    canary.approvedDigest is set or changed; a canary that waits for approval is removed, becomes Automatic, or gets another
                    number of partitions, each of which ends its wait
    Cluster         autoRebalance.approval becomes Automatic: its Reassignments run without approval

The chart has the same rules in CEL, for the API server itself (`charts/steward/templates/operator/_approvals.tpl`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kafka_operator import kinds
from kafka_operator.decide.tenants.admission import Answer
from kafka_operator.kinds import kind_named
from kafka_operator.resources.reassignment_terms import Approval
from reconciler.names import GROUP, Kind
from reconciler.resources.metadata import RawObject

VERB = "approve"

RIGHT = f"{VERB} on {kinds.REASSIGNMENT.plural}.{GROUP}"

NOT_CHECKED = "The right to approve could not be checked, so the request is refused. Try again."


@dataclass(frozen=True, slots=True)
class User:
    """The user of a request, as the API server authenticated it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalReview:
    """A request of the API server that may contain an approval."""

    uid: str
    kind: Kind
    namespace: str
    name: str
    """Empty where the API server generates it."""
    user: User
    spec: RawObject
    old_spec: RawObject | None

    @property
    def approves(self) -> bool:
        """Whether the request approves anything."""
        return approves(self.kind, self.spec, self.old_spec)

    @property
    def reassignment(self) -> str:
        """Name of the Reassignment; empty for the approval of all that a Cluster creates."""
        return "" if self.kind == kinds.CLUSTER else self.name

    def refused(self) -> Answer:
        """Return the refusal of a user without the right."""
        message = f"User {self.user.name} is not allowed to approve Reassignments: this needs the verb {RIGHT} in namespace {self.namespace}. "
        if self.kind == kinds.CLUSTER:
            message += "Set spec.autoRebalance.approval to Required, or ask a user with this right to set Automatic."
        elif not _approves_plan(self.spec, self.old_spec):
            message += "Leave spec.canary as it is, and ask a user with this right to set spec.canary.approvedDigest."
        elif "approvedDigest" in self.spec:
            message += "Ask a user with this right to set spec.approvedDigest."
        else:
            message += "Set spec.approval to Required, and ask a user with this right to set spec.approvedDigest."
        return Answer("ApprovalForbidden", message)


def read_approval_review(raw: Any) -> ApprovalReview:
    """Read an AdmissionReview; KeyError, TypeError or ValueError if it is invalid."""
    request = raw["request"]
    old, user = request.get("oldObject"), request["userInfo"]
    return ApprovalReview(
        uid=request["uid"],
        kind=kind_named(request["kind"]["kind"]),
        namespace=request["namespace"],
        name=request.get("name") or "",
        user=User(
            user["username"], tuple(user.get("groups") or ()), user.get("uid") or "", dict(user.get("extra") or {})
        ),
        spec=request["object"]["spec"],
        old_spec=None if old is None else old["spec"],
    )


def approves(kind: Kind, spec: RawObject, old_spec: RawObject | None) -> bool:
    """Return whether a new spec approves what the old one, None for a new resource, did not.

    >>> approves(kinds.REASSIGNMENT, {"goal": {}}, None), approves(kinds.REASSIGNMENT, {"plan": []}, None)
    (False, True)
    """
    if kind == kinds.CLUSTER:
        return _rebalances(spec) and not (old_spec is not None and _rebalances(old_spec))
    return _approves_plan(spec, old_spec) or _approves_canary(spec, old_spec)


def _approves_plan(spec: RawObject, old_spec: RawObject | None) -> bool:
    becomes_automatic = _is_automatic(spec) and not (old_spec is not None and _is_automatic(old_spec))
    return becomes_automatic or _sets_digest(spec, old_spec or {})


def _approves_canary(spec: RawObject, old_spec: RawObject | None) -> bool:
    canary, old = spec.get("canary") or {}, (old_spec or {}).get("canary") or {}
    ends_wait = _waits(old) and not (_waits(canary) and canary["partitions"] == old["partitions"])
    return ends_wait or _sets_digest(canary, old)


def _waits(canary: RawObject) -> bool:
    """Return whether there is a canary after which the other partitions wait for approval, which is the default."""
    return bool(canary) and bool(canary.get("approval", Approval.REQUIRED) == Approval.REQUIRED)


def _sets_digest(spec: RawObject, old_spec: RawObject) -> bool:
    digest = spec.get("approvedDigest")
    return digest is not None and digest != old_spec.get("approvedDigest")


def _is_automatic(spec: RawObject) -> bool:
    """Return whether a Reassignment runs without approval; a goal waits by default, an exact plan does not."""
    default = Approval.REQUIRED if "goal" in spec else Approval.AUTOMATIC
    return bool(spec.get("approval", default) == Approval.AUTOMATIC)


def _rebalances(spec: RawObject) -> bool:
    return bool((spec.get("autoRebalance") or {}).get("approval") == Approval.AUTOMATIC)
