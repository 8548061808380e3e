"""The right to approve, checked by the operator's webhook: the same changes as by the chart's policies, and refusals in words."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.tenants.approval import User, approves
from kafka_operator.engine.approvals import Approvals
from kafka_operator.metrics import KafkaMetrics
from reconciler.kube.port import UnavailableError
from reconciler.names import Kind
from tests.kafka_operator.approvals import CLUSTERS, DIGEST, GOAL, PLAN, REASSIGNMENTS, Spec

CASES = [
    pytest.param(kind, *case, id=what)
    for kind, cases in ((kinds.REASSIGNMENT, REASSIGNMENTS), (kinds.CLUSTER, CLUSTERS))
    for what, case in cases.items()
]

REFUSAL = "User ann is not allowed to approve Reassignments: this needs the verb approve on reassignments.steward.dev in namespace shop. "


@pytest.mark.parametrize(("kind", "before", "after", "approval"), CASES)
def test_a_change_is_an_approval_or_not(kind: Kind, before: Spec | None, after: Spec, approval: bool) -> None:
    """The table that the chart's policies are tested with on a real API server."""
    assert approves(kind, after, before) == approval


class FakeAuthorizer:
    """Knows who may approve; asked for (user, namespace, name)."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[tuple[str, str, str]] = []
        self.down = False

    async def may_approve(self, user: User, namespace: str, name: str) -> bool:
        if self.down:
            raise UnavailableError("503")
        self.asked.append((user.name, namespace, name))
        return user.name in self.allowed


def review(kind: Kind, before: Spec | None, after: Spec, user: str = "ann") -> dict[str, Any]:
    """An AdmissionReview of the API server."""
    request = {
        "uid": "u-1",
        "kind": {"kind": kind.name},
        "namespace": "shop",
        "name": "move",
        "userInfo": {"username": user, "groups": ["system:authenticated"]},
        "object": {"spec": after},
        "oldObject": None if before is None else {"spec": before},
    }
    return {"request": request}


@pytest.mark.shows("E19")
@pytest.mark.parametrize(
    ("kind", "after", "advice"),
    [
        (
            kinds.REASSIGNMENT,
            PLAN,
            "Set spec.approval to Required, and ask a user with this right to set spec.approvedDigest.",
        ),
        (
            kinds.REASSIGNMENT,
            {**GOAL, "approvedDigest": DIGEST},
            "Ask a user with this right to set spec.approvedDigest.",
        ),
        (
            kinds.REASSIGNMENT,
            {**GOAL, "canary": {"partitions": 1, "approvedDigest": DIGEST}},
            "Leave spec.canary as it is, and ask a user with this right to set spec.canary.approvedDigest.",
        ),
        (
            kinds.CLUSTER,
            {"autoRebalance": {"approval": "Automatic"}},
            "Set spec.autoRebalance.approval to Required, or ask a user with this right to set Automatic.",
        ),
    ],
)
async def test_a_user_without_the_right_is_refused_with_the_message_of_the_policy(
    kind: Kind, after: Spec, advice: str
) -> None:
    """The user, the right, the namespace, and what to do."""
    authorizer = FakeAuthorizer("eve")
    approvals = Approvals(authorizer, KafkaMetrics())

    refused = (await approvals.review(review(kind, None, after)))["response"]
    taken = (await approvals.review(review(kind, None, after, user="eve")))["response"]

    assert (refused["allowed"], refused["status"]["message"]) == (False, f"ApprovalForbidden: {REFUSAL}{advice}")
    assert taken == {"uid": "u-1", "allowed": True}
    name = "" if kind == kinds.CLUSTER else "move"
    assert authorizer.asked == [("ann", "shop", name), ("eve", "shop", name)]


async def test_a_right_that_cannot_be_checked_refuses() -> None:
    """An API server that does not answer must not let an approval through."""
    authorizer = FakeAuthorizer("ann")
    authorizer.down = True

    answer = (await Approvals(authorizer, KafkaMetrics()).review(review(kinds.REASSIGNMENT, None, PLAN)))["response"]

    assert answer["allowed"] is False
    assert answer["status"]["message"] == (
        "ApprovalNotChecked: The right to approve could not be checked, so the request is refused. Try again."
    )


async def test_a_request_without_an_approval_is_admitted_without_a_check() -> None:
    """The API server sends approvals only; an older configuration may send more."""
    authorizer = FakeAuthorizer()

    answer = (await Approvals(authorizer, KafkaMetrics()).review(review(kinds.REASSIGNMENT, None, GOAL)))["response"]

    assert (answer["allowed"], authorizer.asked) == (True, [])
