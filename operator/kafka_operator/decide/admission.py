"""Verdicts of admission reviews: accept, accept with a warning, or reject with a reason.

Refused is what is wrong in itself: what the brokers refuse of a Topic, a plan for partitions or brokers that there are not, a goal that
cannot be reached. What time may mend (a broker that starts, a topic that is applied in the same breath) is taken with a warning, and
so is everything where nobody can be asked: the reconcilers find out later and say so in the status.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_operator.decide.kafka_errors import message_of, passes_by_itself, reason_of
from kafka_operator.decide.observed import Failure, KafkaTopic
from kafka_operator.decide.plan import PlanProblem
from kafka_operator.names import API_VERSION, Kind
from kafka_operator.resources.metadata import RawObject
from kafka_operator.resources.topic import Topic

REFUSED_CODES = frozenset({17, 37, 38, 39, 40, 42, 44})
"""Errors of Kafka's that are about the request itself: topic name, partitions, replication factor, assignment, settings, policy."""

WRONG_IN_ITSELF = frozenset({"UnknownBroker", "UnknownPartition"})
"""Troubles that a reconciler waits for, for a while, and that are most likely a slip of the pen where somebody is there to be told."""

FORBIDDEN = 403
MAX_WARNING_LENGTH = 200
"""Characters of a warning: the API server drops those that are much longer, and all of them beyond four thousand."""


@dataclass(frozen=True, slots=True)
class Review:
    """A question of the API server's."""

    uid: str
    kind: Kind
    namespace: str
    created: bool
    """Whether the resource is new."""
    edited: bool
    """Whether its spec is not what it was."""
    raw: RawObject
    """The resource, with what a reader needs of its metadata."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Taken where there is no `reason`."""

    reason: str = ""
    message: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """Return it in a word, for metrics."""
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
        kind=Kind(request["kind"]["kind"]),
        namespace=namespace,
        created=before is None,
        edited=not leaves and (before is None or before.get("spec") != given["spec"]),
        raw={**(given or {}), "metadata": metadata},
    )


def unchecked(why: str) -> Answer:
    """Take a resource that could not be checked."""
    return Answer(warnings=(f"Accepted without validation by the brokers: {why}",))


def judge_topic(topic: Topic, seen: KafkaTopic | None, refused: Mapping[str, Failure]) -> Answer:
    """Judge a Topic by what the brokers refuse of making it as declared; one that only observes is warned alone."""
    failure = refused.get(topic.name)
    if failure is not None and not passes_by_itself(failure):
        words = f"validation by the brokers failed: {message_of(failure)}"
        if failure.code in REFUSED_CODES and not topic.observes:
            return Answer(reason_of(failure), f"Topic {topic.key.name} is rejected: {words}")
        return Answer(warnings=(f"{reason_of(failure)}: {words}",))
    if failure is not None:
        return unchecked(message_of(failure))
    if seen is not None and len(seen.partitions) > topic.partitions:
        have = len(seen.partitions)
        return Answer(
            warnings=(f"The Kafka topic has {have} partitions, and partitions cannot be removed: declare {have}.",)
        )
    return TAKEN


def judge_problem(problem: PlanProblem | None) -> Answer:
    """Judge a Reassignment by what is in its way."""
    if problem is None:
        return TAKEN
    if problem.may_pass and problem.reason not in WRONG_IN_ITSELF:
        return Answer(warnings=(f"{problem.reason}: {problem.message}",))
    return Answer(problem.reason, problem.message)
