"""The Cluster resource."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_operator.names import ClusterRef, Key, Kind
from kafka_operator.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    cluster_id: str | None = None
    controller_id: int | None = None
    broker_ids: tuple[int, ...] | None = None
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "clusterId": self.cluster_id,
            "controllerId": self.controller_id,
            "brokers": None if self.broker_ids is None else len(self.broker_ids),
            "brokerIds": None if self.broker_ids is None else list(self.broker_ids),
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Cluster as its user wrote it, with what we wrote to it."""

    metadata: Metadata
    bootstrap_servers: tuple[str, ...]
    mode: str
    status: ClusterStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def ref(self) -> ClusterRef:
        """Return the reference by which others name it."""
        return ClusterRef(self.key.namespace, self.key.name)


def read_cluster(raw: RawObject) -> Cluster:
    """Read a Cluster from JSON; KeyError or ValueError when it does not follow the schema."""
    spec = raw["spec"]
    status = raw.get("status") or {}
    broker_ids = status.get("brokerIds")
    return Cluster(
        metadata=read_metadata(Kind.CLUSTER, raw),
        bootstrap_servers=tuple(spec["bootstrapServers"]),
        mode=spec.get("mode", "external"),
        status=ClusterStatus(
            observed_generation=status.get("observedGeneration"),
            cluster_id=status.get("clusterId"),
            controller_id=status.get("controllerId"),
            broker_ids=None if broker_ids is None else tuple(broker_ids),
            conditions=read_conditions(status),
        ),
    )
