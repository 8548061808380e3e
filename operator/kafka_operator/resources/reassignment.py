"""The Reassignment resource."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafka_operator.names import ClusterRef, Key, Kind
from kafka_operator.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata


class State(StrEnum):
    """How far a Reassignment is.

    Pending until it is checked and the controller has taken it, then Running, then one of the three ends, which are never left.
    """

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"
    CANCELLED = "Cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing follows any more."""
        return self in {State.COMPLETED, State.FAILED, State.CANCELLED}


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A partition's name."""

    topic: str
    index: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


@dataclass(frozen=True, slots=True)
class Assignment:
    """A partition and its replicas in order, the preferred leader first."""

    partition: Partition
    replicas: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "topic": self.partition.topic,
            "partition": self.partition.index,
            "replicas": list(self.replicas),
        }


@dataclass(frozen=True, slots=True)
class TopicMove:
    """A topic and the brokers that shall hold all of its replicas."""

    topic: str
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """Partitions that have arrived, of all that the plan names."""

    done: int
    total: int

    @property
    def percent(self) -> int:
        """Return the share in percent, rounded down."""
        return 100 * self.done // self.total if self.total else 100

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "partitionsDone": self.done,
            "partitionsTotal": self.total,
            "percent": self.percent,
            "partitions": f"{self.done}/{self.total}",
        }


@dataclass(frozen=True, slots=True)
class ReassignmentStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    state: State | None = None
    plan: tuple[Assignment, ...] | None = None
    base: tuple[Assignment, ...] | None = None
    progress: Progress | None = None
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "state": None if self.state is None else self.state.value,
            "plan": _write_assignments(self.plan),
            "base": _write_assignments(self.base),
            "progress": None if self.progress is None else self.progress.to_json(),
            "startTime": self.start_time,
            "completionTime": self.completion_time,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Reassignment:
    """A Reassignment as its user wrote it, with what we wrote to it; exactly one of `plan` and `topics` is not empty."""

    metadata: Metadata
    cluster: ClusterRef
    plan: tuple[Assignment, ...]
    topics: tuple[TopicMove, ...]
    cancel: bool
    status: ReassignmentStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def topic_names(self) -> frozenset[str]:
        """Return the topics that it names."""
        return frozenset(item.partition.topic for item in self.plan) | frozenset(item.topic for item in self.topics)


def read_reassignment(raw: RawObject) -> Reassignment:
    """Read a Reassignment from JSON; KeyError or ValueError when it does not follow the schema."""
    metadata = read_metadata(Kind.REASSIGNMENT, raw)
    spec = raw["spec"]
    return Reassignment(
        metadata=metadata,
        cluster=ClusterRef(metadata.key.namespace, spec["clusterRef"]["name"]),
        plan=_read_assignments(spec.get("plan") or ()),
        topics=tuple(TopicMove(item["name"], tuple(item["brokers"])) for item in spec.get("topics") or ()),
        cancel=bool(spec.get("cancel", False)),
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> ReassignmentStatus:
    state, progress = status.get("state"), status.get("progress")
    return ReassignmentStatus(
        observed_generation=status.get("observedGeneration"),
        state=None if state is None else State(state),
        plan=None if status.get("plan") is None else _read_assignments(status["plan"]),
        base=None if status.get("base") is None else _read_assignments(status["base"]),
        progress=None if progress is None else Progress(progress["partitionsDone"], progress["partitionsTotal"]),
        start_time=status.get("startTime"),
        completion_time=status.get("completionTime"),
        conditions=read_conditions(status),
    )


def _read_assignments(raw: Iterable[RawObject]) -> tuple[Assignment, ...]:
    return tuple(Assignment(Partition(item["topic"], item["partition"]), tuple(item["replicas"])) for item in raw)


def _write_assignments(assignments: Sequence[Assignment] | None) -> list[dict[str, Any]] | None:
    return None if assignments is None else [assignment.to_json() for assignment in assignments]
