"""Reviews of approvals: the user of a request must have the verb approve on reassignments (SubjectAccessReview).

For API servers without ValidatingAdmissionPolicy. The API server refuses the request if no operator answers (failurePolicy Fail), and
calls only for requests that contain an approval. Like `admission`, it needs no Lease: it changes nothing.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from kafka_operator.decide.tenants.admission import TAKEN, Answer
from kafka_operator.decide.tenants.approval import NOT_CHECKED, ApprovalReview, User, read_approval_review
from reconciler.kube.port import KubeError
from reconciler.metrics import Metrics

log = logging.getLogger(__name__)


class Authorizer(Protocol):
    """The authorizer of the API server; every call may raise KubeError."""

    async def may_approve(self, user: User, namespace: str, name: str) -> bool:
        """Return whether a user may approve a Reassignment; an empty name means all of the namespace."""
        ...


class Approvals:
    """Answers AdmissionReviews of requests that contain an approval."""

    def __init__(self, authorizer: Authorizer, metrics: Metrics) -> None:
        self._authorizer = authorizer
        self._metrics = metrics

    async def review(self, raw: Any) -> dict[str, Any]:
        """Return the response to an AdmissionReview; KeyError, TypeError or ValueError if it is invalid."""
        review = read_approval_review(raw)
        answer = await self._answer(review)
        self._metrics.admission_reviews.labels(review.kind.name, answer.verdict).inc()
        if answer is not TAKEN:
            named = {"resource": f"{review.kind.name} {review.namespace}/{review.name}", "principal": review.user.name}
            log.info("Refused approval", extra={**named, "reason": answer.reason})
        return answer.to_json(review.uid)

    async def _answer(self, review: ApprovalReview) -> Answer:
        if not review.approves:
            return TAKEN
        try:
            allowed = await self._authorizer.may_approve(review.user, review.namespace, review.reassignment)
        except KubeError as error:
            log.warning("Failed to check the right to approve", extra={"error": str(error)})
            return Answer("ApprovalNotChecked", NOT_CHECKED)
        return TAKEN if allowed else review.refused()
