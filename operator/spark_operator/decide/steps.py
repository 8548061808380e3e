"""Input and possible steps of decisions on SparkApplications."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from reconciler.decide.steps import DeleteResource, Done, Mark, Retry, Wait, WriteStatus
from reconciler.resources.metadata import RawObject
from spark_operator.decide.problems import SparkProblem
from spark_operator.resources.pods import SparkPod
from spark_operator.resources.status import SparkStatus


@dataclass(frozen=True, slots=True)
class ReadPods:
    """Read the pods of the application."""


@dataclass(frozen=True, slots=True)
class ReadLog:
    """Read the last lines that a driver wrote."""

    pod: SparkPod
    lines: int


@dataclass(frozen=True, slots=True)
class CreateDriver:
    """Create the driver of an attempt, or find the one that is there already."""

    attempt: int


@dataclass(frozen=True, slots=True)
class DeletePods:
    """Delete these pods, each only if it is the one that was seen."""

    pods: tuple[SparkPod, ...]


@dataclass(frozen=True, slots=True)
class ReadMirror:
    """Read the resource delegated to the other operator."""


@dataclass(frozen=True, slots=True)
class CreateMirror:
    """Give another operator its resource."""

    manifest: RawObject


@dataclass(frozen=True, slots=True)
class SuspendMirror:
    """Have another operator suspend the application, or resume it."""

    suspend: bool


@dataclass(frozen=True, slots=True)
class NoMirror:
    """The other operator has no such resource."""


Step = (
    ReadPods
    | ReadLog
    | CreateDriver
    | DeletePods
    | DeleteResource
    | Mark
    | ReadMirror
    | CreateMirror
    | SuspendMirror
    | WriteStatus[SparkStatus]
    | Wait
    | Retry
    | Done
)


@dataclass(frozen=True, slots=True)
class SparkView:
    """State read in this attempt; None if not read yet."""

    now: datetime
    refusal: SparkProblem | None = None
    """Why its engine is not for use."""
    pods: tuple[SparkPod, ...] | None = None
    created: SparkPod | SparkProblem | None = None
    """The driver that was created or found, or why the API server wants none."""
    log: str | None = None
    mirror: RawObject | NoMirror | SparkProblem | None = None
