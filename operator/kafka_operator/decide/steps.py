"""Steps that only decisions on Clusters, Topics, Reassignments and Elections can return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_operator.decide.kafka.replica_dirs import Targets
from kafka_operator.names import MANAGED_CONFIG, ORIGIN
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.steps import AddFinalizer, ResourceEvent


@dataclass(frozen=True, slots=True)
class Claim(AddFinalizer):
    """Put the operator's finalizer on the resource and note the settings that it may set, before either has an effect on Kafka.

    `origin` is the origin of its Kafka topic (topic_origin); None leaves that annotation as it is.
    """

    managed_config: frozenset[str] = frozenset()
    origin: str | None = None

    @property
    def annotations(self) -> Mapping[str, str | None]:
        """Return the annotations of a Topic; those of other kinds have no settings and no origin."""
        notes = {MANAGED_CONFIG: ",".join(sorted(self.managed_config)) or None}
        return notes if self.origin is None else {**notes, ORIGIN: self.origin}


@dataclass(frozen=True, slots=True)
class CreateTopic:
    """Create the topic."""

    name: str
    partitions: int
    replication_factor: int
    config: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class GrowTopic:
    """Raise the topic's partitions to this number."""

    name: str
    partitions: int


@dataclass(frozen=True, slots=True)
class AlterConfig:
    """Set some settings, and return some to the cluster's defaults; all of them or none."""

    name: str
    set: tuple[tuple[str, str], ...]
    reset: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropTopic:
    """Delete the topic and its data."""

    name: str


@dataclass(frozen=True, slots=True)
class StopMoves:
    """Cancel the moves of these partitions of a topic that is about to go."""

    name: str
    partitions: tuple[int, ...]


TopicAction = CreateTopic | GrowTopic | AlterConfig | StopMoves | DropTopic


@dataclass(frozen=True, slots=True)
class Apply:
    """Send these changes to Kafka, in any order; moves are cancelled before topics are deleted.

    `event` is the event after all changes were accepted.
    """

    actions: tuple[TopicAction, ...]
    event: ResourceEvent | None = None
    asks_only: bool = False
    """Whether the brokers are only asked (validate_only) what they would refuse."""

    @property
    def checked_first(self) -> bool:
        """Whether the brokers are asked before (validate_only): where one of two effects might be refused."""
        return self.asks_only or len([it for it in self.actions if isinstance(it, GrowTopic | AlterConfig)]) > 1


@dataclass(frozen=True, slots=True)
class CreateReassignment:
    """Create a Reassignment of this name, in the resource's own namespace, owned by the resource; `spec` is in the API's form."""

    name: str
    spec: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class CancelReassignment:
    """Have a Reassignment of the resource's own cancelled; `resource_version` is the one that this was decided on."""

    name: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class Submit:
    """Hand the controller these targets; None cancels the partition's move (AlterPartitionReassignments)."""

    targets: Mapping[Partition, tuple[int, ...] | None]


@dataclass(frozen=True, slots=True)
class MoveLogDirs:
    """Have brokers move replicas to these log directories of theirs (AlterReplicaLogDirs); the current one cancels a move."""

    targets: Targets
