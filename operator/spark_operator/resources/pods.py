"""The pods of a SparkApplication as values: driver and executors, how far they are, and what holds them up.

A process of engine Local has the same form.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reconciler.resources.metadata import RawObject
from spark_operator.names import SPARK_APPLICATION_LABEL, SPARK_ATTEMPT_LABEL, SPARK_ROLE_LABEL

DRIVER_CONTAINER = "spark-kubernetes-driver"
EXECUTOR_CONTAINER = "spark-kubernetes-executor"
"""Names that Spark itself gives the two containers (spark-kubernetes, DriverFeatureStep and ExecutorFeatureStep)."""

CONTAINERS = frozenset({DRIVER_CONTAINER, EXECUTOR_CONTAINER})


class Role(StrEnum):
    """What a pod is in its application."""

    DRIVER = "driver"
    EXECUTOR = "executor"


class Phase(StrEnum):
    """Phase of a pod, derived from the states of its containers."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        """Whether nothing runs in it any more."""
        return self in {Phase.SUCCEEDED, Phase.FAILED}


@dataclass(frozen=True, slots=True)
class SparkPod:
    """One pod; `reason` and `message` are Kubernetes' cause of a delay or an end."""

    name: str
    uid: str
    role: Role
    attempt: int
    application_uid: str
    phase: Phase
    deleting: bool = False
    reason: str = ""
    message: str = ""
    exit_code: int | None = None

    @property
    def alive(self) -> bool:
        """Whether something runs in it, or may yet."""
        return not self.phase.ended


def read_spark_pod(raw: RawObject) -> SparkPod:
    """Read a pod; KeyError or ValueError when it is none of a SparkApplication."""
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    containers: list[RawObject] = status.get("containerStatuses") or []
    container: RawObject = next((item for item in containers if item["name"] in CONTAINERS), {})
    state = container.get("state") or {}
    ended = state.get("terminated")
    phase = _phase(status.get("phase", Phase.PENDING), state)
    reason, message = _reason_and_message(status, state, phase)
    return SparkPod(
        name=metadata["name"],
        uid=metadata["uid"],
        role=Role(labels[SPARK_ROLE_LABEL]),
        attempt=int(labels[SPARK_ATTEMPT_LABEL]),
        application_uid=labels[SPARK_APPLICATION_LABEL],
        phase=phase,
        deleting="deletionTimestamp" in metadata,
        reason=reason,
        message=message,
        exit_code=None if ended is None else int(ended["exitCode"]),
    )


def _phase(phase: str, state: RawObject) -> Phase:
    """Return the phase by the container that counts: a sidecar that runs on must not keep an application from ending."""
    if phase in {Phase.SUCCEEDED, Phase.FAILED}:
        return Phase(phase)
    if "terminated" in state:
        return Phase.FAILED if state["terminated"]["exitCode"] else Phase.SUCCEEDED
    if "running" in state:
        return Phase.RUNNING
    return Phase.RUNNING if phase == Phase.RUNNING and not state else Phase.PENDING


def _reason_and_message(status: RawObject, state: RawObject, phase: Phase) -> tuple[str, str]:
    """Return the most specific reason and message of a pod: of itself (Evicted), of its container, of the scheduler."""
    if status.get("reason"):
        return status["reason"], status.get("message", "")
    for name in ("terminated", "waiting"):
        if state.get(name, {}).get("reason"):
            return state[name]["reason"], state[name].get("message", "")
    if phase is Phase.PENDING:
        for condition in status.get("conditions") or ():
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                return condition.get("reason", ""), condition.get("message", "")
    return "", ""
