"""Verdicts of admission reviews: accept, accept with a warning, or reject with a reason.

Invalid resources are rejected: a Topic that the brokers reject, a plan for unknown partitions or brokers, a goal that
cannot be reached. Problems that may pass (a broker that starts, a topic that is applied at the same time) are accepted with a warning, and
so is everything when the cluster is unreachable: the reconcilers report problems later in the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_operator.decide.kafka.kafka_errors import message_of, passes_by_itself, reason_of
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic
from kafka_operator.decide.plans.plan import PlanProblem
from kafka_operator.kinds import kind_named
from kafka_operator.resources.topic import Topic
from reconciler.names import API_VERSION, Kind
from reconciler.resources.metadata import RawObject

REFUSED_CODES = frozenset({17, 37, 38, 39, 40, 42, 44})
"""Kafka's errors about the request itself: topic name, partitions, replication factor, assignment, settings, policy."""

PERMANENT_REASONS = frozenset({"UnknownBroker", "UnknownPartition"})
"""Problems that a reconciler waits out for a while, but that are most likely typing errors at admission."""

FORBIDDEN = 403
MAX_WARNING_LENGTH = 200
"""Characters of a warning: the API server drops much longer ones, and all of them beyond four thousand."""


@dataclass(frozen=True, slots=True)
class Review:
    """A request of the API server."""

    uid: str
    kind: Kind
    namespace: str
    created: bool
    """Whether the resource is new."""
    edited: bool
    """Whether its spec has changed."""
    raw: RawObject
    """The resource, with the metadata that its reader needs."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Accepted if there is no `reason`."""

    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return the label for metrics."""
        if self.reason:
            return "refused"
        return "warned" if self.warnings else "taken"

    def to_json(self, uid: str) -> dict[str, Any]:
        """Return the AdmissionReview to send back."""
        response: dict[str, Any] = {"uid": uid, "allowed": not self.reason}
        if self.reason:
            response["status"] = {"code": FORBIDDEN, "reason": self.reason, "message": f"{self.reason}: {self.message}"}
        if self.warnings:
            response["warnings"] = [text[:MAX_WARNING_LENGTH] for text in self.warnings]
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


TAKEN = Answer()


def read_review(raw: Any) -> Review:
    """Read an AdmissionReview; raises KeyError, TypeError or ValueError if it is invalid or not about a kind of Steward."""
    request = raw["request"]
    given, before = request.get("object"), request.get("oldObject")
    if given is not None and given["apiVersion"] != API_VERSION:
        raise ValueError(f"{given['apiVersion']} is not {API_VERSION}")
    namespace = str(request["namespace"])
    metadata = {
        "uid": "",
        "resourceVersion": "0",
        "creationTimestamp": "1970-01-01T00:00:00Z",
        "name": request.get("name", ""),
        **((given or {}).get("metadata") or {}),
        "namespace": namespace,
    }
    leaves = given is None or "deletionTimestamp" in metadata
    return Review(
        uid=str(request["uid"]),
        kind=kind_named(request["kind"]["kind"]),
        namespace=namespace,
        created=before is None,
        edited=not leaves and (before is None or before.get("spec") != given["spec"]),
        raw={**(given or {}), "metadata": metadata},
    )


def unchecked(why: str) -> Answer:
    """Accept a resource that could not be checked."""
    return Answer(warnings=(f"Accepted without validation by the brokers: {why}",))


def judge_topic(topic: Topic, observed: KafkaTopic | None, refused: Mapping[str, Failure]) -> Answer:
    """Return the verdict on a Topic from the brokers' rejections; one that only observes only gets warnings."""
    failure = refused.get(topic.name)
    if failure is not None and not passes_by_itself(failure):
        message = f"validation by the brokers failed: {message_of(failure)}"
        if failure.code in REFUSED_CODES and not topic.observes:
            return Answer(reason_of(failure), f"Topic {topic.key.name} is rejected: {message}")
        return Answer(warnings=(f"{reason_of(failure)}: {message}",))
    if failure is not None:
        return unchecked(message_of(failure))
    if observed is not None and len(observed.partitions) > topic.partitions:
        have = len(observed.partitions)
        return Answer(
            warnings=(f"The Kafka topic has {have} partitions, and partitions cannot be removed: declare {have}.",)
        )
    return TAKEN


def judge_problem(problem: PlanProblem | None) -> Answer:
    """Return the verdict on a Reassignment from the problem of its plan."""
    if problem is None:
        return TAKEN
    if problem.may_pass and problem.reason not in PERMANENT_REASONS:
        return Answer(warnings=(f"{problem.reason}: {problem.message}",))
    return Answer(problem.reason, problem.message)


def judge_windows(problem: PlanProblem | None, *, created: bool) -> Answer:
    """Return the verdict on a Reassignment's windows; a change causes only a warning, so that it can always be cancelled."""
    if problem is None:
        return TAKEN
    return Answer(problem.reason, problem.message) if created else Answer(warnings=(problem.message,))
