"""The Cluster resource."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafka_operator import kinds
from kafka_operator.resources.allowed import AllowedNamespaces, read_allowed
from kafka_operator.resources.auto_rebalance import (
    AutoRebalance,
    RebalanceRecord,
    read_auto_rebalance,
    read_rebalance_record,
)
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.cordon import Cordon, read_cordons
from kafka_operator.resources.log_dirs import NO_PROBLEMS, LogDirsStatus, read_log_dirs
from kafka_operator.resources.quorum import QuorumStatus, read_quorum
from kafka_operator.resources.security import (
    Authentication,
    PrometheusRef,
    Tls,
    read_authentication,
    read_prometheus,
    read_tls,
)
from reconciler.names import Key
from reconciler.resources.metadata import Condition, Metadata, Patch, RawObject, read_conditions, read_metadata

KRAFT, ZOOKEEPER = "KRaft", "ZooKeeper"
"""Values of `status.mode`: where the cluster stores its metadata."""


@dataclass(frozen=True, slots=True)
class PodGroup:
    """A StatefulSet of the Cluster's namespace; the pod of ordinal n has the id `first_id + n` in Kafka.

    `replicas` is the declared number of pods; None if another client sets it.
    """

    stateful_set: str
    first_id: int
    replicas: int | None = None


@dataclass(frozen=True, slots=True)
class Replacing:
    """The pod selected for replacement, recorded before it is deleted."""

    pod: str
    uid: str


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Partitions not led by their preferred leader, and the broker with the largest share of missing leaders."""

    partitions: int = 0
    percent: int = 0
    worst_broker: int | None = None
    worst_percent: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; None takes away."""
        return {
            "partitions": self.partitions,
            "percent": self.percent,
            "worstBroker": self.worst_broker,
            "worstBrokerPercent": self.worst_percent,
        }


@dataclass(frozen=True, slots=True)
class Versions:
    """The brokers' software versions as derived from their APIs, each once, and the finalized versions of the cluster."""

    software: tuple[str, ...] = ()
    metadata_version: str | None = None
    inter_broker_protocol: str | None = None
    features: tuple[tuple[str, int], ...] = ()
    """Other finalized features (KIP-584) with their levels, by name."""

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; None takes away."""
        return {
            "software": ", ".join(self.software) or None,
            "metadataVersion": self.metadata_version,
            "interBrokerProtocol": self.inter_broker_protocol,
            "features": [{"name": name, "level": level} for name, level in self.features] or None,
        }


@dataclass(frozen=True, slots=True)
class CountedTopic:
    """A Kafka topic that counts for the quota of another namespace, whose Topic created it or took it over."""

    name: str
    namespace: str
    partitions: int

    def to_json(self) -> dict[str, Any]:
        """Return the API's form."""
        return {"name": self.name, "namespace": self.namespace, "partitions": self.partitions}


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """What is written to `status`; None where nothing is known."""

    observed_generation: int | None = None
    cluster_id: str | None = None
    mode: str | None = None
    """KRAFT or ZOOKEEPER, as observed."""
    controller_id: int | None = None
    quorum: QuorumStatus | None = None
    broker_ids: tuple[int, ...] | None = None
    broker_replicas: int | None = None
    """Number of broker pods the operator currently maintains; lowered only when the removed brokers hold nothing."""
    replacing: Replacing | None = None
    under_replicated: int | None = None
    offline: int | None = None
    imbalance: Imbalance | None = None
    versions: Versions | None = None
    log_dirs: LogDirsStatus = NO_PROBLEMS
    cordons: tuple[Cordon, ...] = ()
    """Ascending by broker; written before a cordon is made, and kept until Kafka was seen without it."""
    auto_rebalance: RebalanceRecord | None = None
    counted_topics: tuple[CountedTopic, ...] = ()
    """Ascending by name; written before a topic is created, and kept until Kafka does not have it any more."""
    conditions: tuple[Condition, ...] = ()

    def to_patch(self) -> Patch:
        """Return the whole status as a merge patch: what is not known is taken away."""
        return {
            "observedGeneration": self.observed_generation,
            "clusterId": self.cluster_id,
            "mode": self.mode,
            "controllerId": self.controller_id,
            "quorum": None if self.quorum is None else self.quorum.to_json(),
            "brokers": None if self.broker_ids is None else len(self.broker_ids),
            "brokerIds": None if self.broker_ids is None else list(self.broker_ids),
            "brokerReplicas": self.broker_replicas,
            "replacing": None if self.replacing is None else {"pod": self.replacing.pod, "uid": self.replacing.uid},
            "underReplicated": self.under_replicated,
            "offline": self.offline,
            "imbalance": None if self.imbalance is None else self.imbalance.to_json(),
            "versions": None if self.versions is None else self.versions.to_json(),
            "logDirs": self.log_dirs.to_json(),
            "cordons": [cordon.to_json() for cordon in self.cordons] or None,
            "autoRebalance": None if self.auto_rebalance is None else self.auto_rebalance.to_json(),
            "countedTopics": [item.to_json() for item in self.counted_topics] or None,
            "conditions": [condition.to_json() for condition in self.conditions],
        }


@dataclass(frozen=True, slots=True)
class Cluster:
    """A Cluster: spec, and status written by the operator."""

    metadata: Metadata
    bootstrap_servers: tuple[str, ...]
    status: ClusterStatus
    brokers: PodGroup | None = None
    """The broker pods managed by the operator, None when they run elsewhere."""
    controllers: PodGroup | None = None
    tls: Tls | None = None
    authentication: Authentication | None = None
    allowed_namespaces: tuple[AllowedNamespaces, ...] = ()
    """The other namespaces that may refer to it, in the order in which the rules are tried."""
    auto_rebalance: AutoRebalance | None = None
    """Automatic rebalances, None for none."""
    prometheus: PrometheusRef | None = None
    """The server that the queries of guards go to."""

    def leads_where(self, other: Cluster) -> bool:
        """Return whether another state of it is reached in the same way."""
        return (self.bootstrap_servers, self.tls, self.authentication) == (
            other.bootstrap_servers,
            other.tls,
            other.authentication,
        )

    def serves_as(self, other: Cluster) -> bool:
        """Return whether another state of it is reached in the same way and allows the same."""
        return self.leads_where(other) and self.allowed_namespaces == other.allowed_namespaces

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Return the names of the Secrets of its connection, ascending."""
        ca = None if self.tls is None else self.tls.ca
        places = () if self.authentication is None else self.authentication.places
        return tuple(sorted({place.secret for place in (ca, *places) if place is not None}))

    @property
    def has_quotas(self) -> bool:
        """Whether the topics of any other namespace are counted."""
        return any(rule.max_topics is not None or rule.max_partitions is not None for rule in self.allowed_namespaces)

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key

    @property
    def ref(self) -> ClusterRef:
        """Return the reference to it."""
        return ClusterRef(self.key.namespace, self.key.name)


def read_cluster(raw: RawObject) -> Cluster:
    """Read a Cluster from JSON; KeyError or ValueError when it does not follow the schema."""
    spec = raw["spec"]
    return Cluster(
        metadata=read_metadata(kinds.CLUSTER, raw),
        bootstrap_servers=tuple(spec["bootstrapServers"]),
        status=_read_status(raw.get("status") or {}),
        brokers=_read_group(spec.get("brokers")),
        controllers=_read_group(spec.get("controllers")),
        tls=read_tls(spec.get("tls")),
        authentication=read_authentication(spec.get("authentication")),
        allowed_namespaces=read_allowed(spec.get("allowedNamespaces") or ()),
        auto_rebalance=read_auto_rebalance(spec.get("autoRebalance")),
        prometheus=read_prometheus(spec.get("prometheus")),
    )


def _read_status(status: RawObject) -> ClusterStatus:
    broker_ids, replacing = status.get("brokerIds"), status.get("replacing")
    return ClusterStatus(
        observed_generation=status.get("observedGeneration"),
        cluster_id=status.get("clusterId"),
        mode=status.get("mode"),
        controller_id=status.get("controllerId"),
        quorum=read_quorum(status.get("quorum")),
        broker_ids=None if broker_ids is None else tuple(broker_ids),
        broker_replicas=status.get("brokerReplicas"),
        replacing=None if replacing is None else Replacing(replacing["pod"], replacing["uid"]),
        under_replicated=status.get("underReplicated"),
        offline=status.get("offline"),
        imbalance=_read_imbalance(status.get("imbalance")),
        versions=_read_versions(status.get("versions")),
        log_dirs=read_log_dirs(status.get("logDirs")),
        cordons=read_cordons(status.get("cordons")),
        auto_rebalance=read_rebalance_record(status.get("autoRebalance")),
        counted_topics=tuple(
            CountedTopic(item["name"], item["namespace"], item["partitions"])
            for item in status.get("countedTopics") or ()
        ),
        conditions=read_conditions(status),
    )


def _read_imbalance(raw: Any) -> Imbalance | None:
    if raw is None:
        return None
    return Imbalance(raw["partitions"], raw["percent"], raw.get("worstBroker"), raw.get("worstBrokerPercent", 0))


def _read_versions(raw: Any) -> Versions | None:
    if raw is None:
        return None
    software = raw.get("software")
    return Versions(
        software=tuple(software.split(", ")) if software else (),
        metadata_version=raw.get("metadataVersion"),
        inter_broker_protocol=raw.get("interBrokerProtocol"),
        features=tuple((item["name"], item["level"]) for item in raw.get("features") or ()),
    )


def _read_group(raw: Any) -> PodGroup | None:
    if raw is None:
        return None
    return PodGroup(raw["statefulSet"], int(raw.get("firstId", 0)), raw.get("replicas"))
