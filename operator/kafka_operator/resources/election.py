"""The Election resource."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafka_operator import kinds
from kafka_operator.resources.cluster_ref import ClusterRef, read_cluster_ref
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from reconciler.resources.metadata import (
    Condition,
    Metadata,
    Patch,
    RawObject,
    read_conditions,
    read_metadata,
)

WHOLE_TOPIC = -1
"""Index that represents a missing topic as a whole."""


class ElectionType(StrEnum):
    """Election type: the first replica of each partition, or any live replica, in sync or not."""

    PREFERRED = "Preferred"
    UNCLEAN = "Unclean"


class ElectionState(StrEnum):
    """State of an Election: Pending until it is checked, Running while leaders are elected, then one of three final states."""

    PENDING = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    PARTLY_FAILED = "PartlyFailed"
    FAILED = "Failed"

    @property
    def ended(self) -> bool:
        """Whether the state is final."""
        return self not in {ElectionState.PENDING, ElectionState.RUNNING}


@dataclass(frozen=True, slots=True)
class Selection:
    """Selection of partitions; exactly one of the four fields is set."""

    topics: tuple[str, ...] = ()
    partitions: tuple[Partition, ...] = ()
    brokers: tuple[int, ...] = ()
    all: bool = False

    @property
    def topic_names(self) -> tuple[str, ...] | None:
        """Return the named topics, ascending; None if all topics have to be read."""
        if self.all or self.brokers:
            return None
        return tuple(sorted({*self.topics, *(partition.topic for partition in self.partitions)}))


@dataclass(frozen=True, slots=True)
class Counts:
    """Partitions: those selected are those that need an election and those that do not; the former end elected or failed."""

    selected: int = 0
    needed: int = 0
    elected: int = 0
    failed: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {
            "selected": self.selected,
            "needed": self.needed,
            "elected": self.elected,
            "notNeeded": self.selected - self.needed,
            "failed": self.failed,
        }


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one partition: ELECTED, or the name of Kafka's error; and its leader, if any."""

    partition: Partition
    result: str
    leader: int | None = None
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        found = {
            "topic": self.partition.topic,
            "partition": None if self.partition.index == WHOLE_TOPIC else self.partition.index,
            "result": self.result,
            "leader": self.leader,
            "message": self.message,
        }
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class ElectionStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    state: ElectionState | None = None
    counts: Counts | None = None
    results: tuple[Result, ...] = ()
    start_time: str | None = None
    completion_time: str | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "state": None if self.state is None else self.state.value,
            "counts": None if self.counts is None else self.counts.to_json(),
            "results": [result.to_json() for result in self.results] or None,
            "startTime": self.start_time,
            "completionTime": self.completion_time,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Election:
    """An Election: spec, and status written by the operator."""

    metadata: Metadata
    cluster: ClusterRef
    type: ElectionType
    accept_data_loss: bool
    selection: Selection
    ttl_s: int | None
    """Seconds after its end until it is deleted; None for never."""
    status: ElectionStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key


def read_election(raw: RawObject) -> Election:
    """Read an Election from JSON; KeyError or ValueError when it does not follow the schema."""
    metadata = read_metadata(kinds.ELECTION, raw)
    spec = raw["spec"]
    return Election(
        metadata=metadata,
        cluster=read_cluster_ref(metadata, spec),
        type=ElectionType(spec.get("type", ElectionType.PREFERRED)),
        accept_data_loss=bool(spec.get("acceptDataLoss", False)),
        selection=Selection(
            topics=tuple(spec.get("topics") or ()),
            partitions=tuple(Partition(item["topic"], item["partition"]) for item in spec.get("partitions") or ()),
            brokers=tuple(spec.get("brokers") or ()),
            all=bool(spec.get("all", False)),
        ),
        ttl_s=spec.get("ttlSecondsAfterFinished"),
        status=_read_status(raw.get("status") or {}),
    )


def _read_status(status: RawObject) -> ElectionStatus:
    state, counts = status.get("state"), status.get("counts")
    return ElectionStatus(
        observed_generation=status.get("observedGeneration"),
        state=None if state is None else ElectionState(state),
        counts=None
        if counts is None
        else Counts(counts["selected"], counts["needed"], counts["elected"], counts["failed"]),
        results=tuple(
            Result(
                Partition(item["topic"], item.get("partition", WHOLE_TOPIC)),
                item["result"],
                item.get("leader"),
                item.get("message"),
            )
            for item in status.get("results") or ()
        ),
        start_time=status.get("startTime"),
        completion_time=status.get("completionTime"),
        conditions=read_conditions(status),
    )
