"""The Admin calls that the operator makes, as one small interface.

Each call takes many items and returns a result for each of them; one invalid item does not fail the call. Failures of the whole call are raised.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Layout
from kafka_operator.decide.kafka.log_dirs import BrokerLogDirs
from kafka_operator.decide.kafka.observed import ConfigValue, Failure, KafkaTopic, Moves, ObservedCluster
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs, Targets
from kafka_operator.decide.kafka.replica_health import ReplicaHealth
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.resources.cluster import Versions
from kafka_operator.resources.reassignment import Partition

Refusals = Mapping[str, Failure]
"""Topic -> failure of its part of the call; a topic that is missing succeeded."""


class AdminError(Exception):
    """An Admin call that failed as a whole."""


class ClusterUnreachableError(AdminError):
    """No broker of the cluster answers."""


class ControllerUnavailableError(AdminError):
    """Brokers answer, the controller does not: it is being replaced, or unreachable."""


class CallRefusedError(AdminError):
    """The cluster answers and rejects the whole call."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"{failure.name}: {failure.message}")
        self.failure = failure


class ConnectionRejectedError(AdminError):
    """The cluster is reachable and rejects the connection: TLS or authentication fails. An early retry does not help."""

    def __init__(self, reason: str, message: str) -> None:
        """`reason` and `message` are those of the Ready condition."""
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class BadCredentialsError(Exception):
    """PEM that cannot be used; `part` is "ca", "endpoint_ca", "certificate" or "key", and the message quotes nothing of it."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


class AdminReads(Protocol):
    """Those calls of the Admin protocol that read a whole cluster, for a what-if; every call may raise AdminError."""

    async def list_reassignments(self) -> Moves:
        """Return all partitions that are being reassigned."""
        ...

    async def describe_min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return the effective min.insync.replicas of each topic; topics without a response are missing."""
        ...

    async def describe_layout(self, names: Sequence[str] | None) -> Layout:
        """Return these topics, or (None) all of them, as far as they exist, and the racks of all brokers."""
        ...

    async def describe_log_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerSizes:
        """Return the bytes of the logs of these partitions, or (None) of all, from each of the brokers."""
        ...

    async def describe_disks(self, broker_ids: Collection[int]) -> BrokerDisks:
        """Return the disks of each of the brokers, as far as they report them."""
        ...

    async def describe_broker_configs(
        self, broker_ids: Collection[int], names: Sequence[str]
    ) -> Mapping[int, Mapping[str, str] | Failure]:
        """Return, for each broker, those of the settings that are set on the broker itself."""
        ...


class Admin(AdminReads, Protocol):
    """One cluster, over its Admin protocol; every call may raise AdminError."""

    async def describe_cluster(self) -> ObservedCluster:
        """Return the cluster's id, controller and brokers."""
        ...

    async def describe_topics(self, names: Sequence[str]) -> Mapping[str, KafkaTopic | Failure]:
        """Return the topics that exist, without their settings; a topic that does not exist is missing."""
        ...

    async def describe_configs(
        self, wanted: Mapping[str, frozenset[str]]
    ) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        """Return, for each topic, those of the wanted settings that are set on the topic itself."""
        ...

    async def create_topics(self, topics: Sequence[CreateTopic], *, validate_only: bool = False) -> Refusals:
        """Create topics, or only validate the request."""
        ...

    async def grow_topics(self, topics: Sequence[GrowTopic], *, validate_only: bool = False) -> Refusals:
        """Add partitions, or only validate the request."""
        ...

    async def alter_configs(self, topics: Sequence[AlterConfig], *, validate_only: bool = False) -> Refusals:
        """Set and reset settings of topics, or only validate the request."""
        ...

    async def delete_topics(self, names: Sequence[str]) -> Refusals:
        """Delete topics and their data."""
        ...

    async def alter_reassignments(
        self, targets: Mapping[Partition, tuple[int, ...] | None]
    ) -> Mapping[Partition, Failure]:
        """Start moves, and cancel those whose target is None; return the rejected partitions."""
        ...

    async def describe_health(self) -> ReplicaHealth:
        """Return the locations of all replicas of all partitions, without min_isr."""
        ...

    async def alter_broker_configs(self, changes: Sequence[AlterBroker]) -> Mapping[int, Failure]:
        """Set and reset settings of brokers; return the brokers that rejected it or did not answer."""
        ...

    async def elect_leaders(self, wanted: Elect) -> Mapping[Partition, Failure]:
        """Elect leaders where needed; return the partitions without a leader, or with another than requested."""
        ...

    async def describe_cluster_metrics(self) -> ClusterMetrics:
        """Return the numbers of all partitions."""
        ...

    async def describe_log_dir_states(self, broker_ids: Collection[int]) -> BrokerLogDirs:
        """Return the states of the log directories of each of these brokers."""
        ...

    async def describe_replica_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerReplicaDirs:
        """Return the log directories of each of these brokers, with the logs of these partitions, or (None) of all."""
        ...

    async def move_log_dirs(self, targets: Targets) -> Mapping[Partition, Failure]:
        """Move replicas to other log directories of their brokers; return the rejected partitions."""
        ...

    async def describe_versions(self, broker_ids: Collection[int]) -> Versions:
        """Return the software versions of these brokers; brokers that do not answer are omitted."""
        ...

    async def describe_group_lags(self, groups: Collection[str]) -> Mapping[str, int | Failure]:
        """Return the lag of each consumer group, in records over all of its partitions."""
        ...

    async def close(self) -> None:
        """Close every connection; calls in progress fail."""
        ...
