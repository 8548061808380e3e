"""The right to approve, asked of the API server's authorizer (SubjectAccessReview)."""

from __future__ import annotations

from kafka_operator import kinds
from kafka_operator.decide.tenants.approval import VERB, User
from reconciler.kube.client import KubeClient
from reconciler.names import GROUP

SUBJECT_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class ApprovalClient:
    """Authorizer port, over the client of the Kubernetes API."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client

    async def may_approve(self, user: User, namespace: str, name: str) -> bool:
        """Return whether a user may approve a Reassignment (SubjectAccessReview); an empty name means all of the namespace."""
        attributes = {
            "namespace": namespace,
            "verb": VERB,
            "group": GROUP,
            "resource": kinds.REASSIGNMENT.plural,
            "name": name,
        }
        subject = {"user": user.name, "groups": list(user.groups), "uid": user.uid, "extra": user.extra}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {**subject, "resourceAttributes": attributes},
        }
        answer = await self._client.call("review_subject_access", "POST", SUBJECT_ACCESS_REVIEWS, body)
        return bool(answer["status"]["allowed"])
