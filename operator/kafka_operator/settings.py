"""What the operator is told at its start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafka_operator.decide.shards import MAX_SHARDS
from kafka_operator.names import KAFKA_KINDS, SPARK_KINDS, Kind

RESYNC_INTERVAL_S = 120.0
"""Every so often everything is listed and compared anew: so long may drift, or an event that a watch lost, go unseen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """Settings of `steward operator`."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; empty for all of them, which needs a ClusterRole."""
    kubeconfig: Path | None = None
    """None: the pod's service account, else what KUBECONFIG and the home folder say."""
    context: str | None = None
    """Context of the kubeconfig; None for its current one."""
    metrics_port: int | None = 8080
    """Prometheus metrics at /metrics; None for none."""
    health_port: int | None = 8081
    """Probes at /healthz and /readyz; None for none."""
    listen_address: str = "127.0.0.1"
    """Address that both ports listen on; in a pod 0.0.0.0, since the kubelet and Prometheus come from outside."""
    pods: bool = False
    """Whether pods of brokers are replaced and scaled, for Clusters that have `spec.brokers`."""
    drain: bool = False
    """Whether nodes are looked at as well, so that pods leave one that is drained; this takes a ClusterRole."""
    spark: bool = False
    """Whether SparkApplications and their schedules are served."""
    spark_namespaces: tuple[str, ...] = ()
    """The only namespaces in which SparkApplications and schedules run; elsewhere they are refused. Empty for all that are served."""
    spark_operator: bool = False
    """Whether resources of Kubeflow's Spark operator may be made for them (engine SparkOperator)."""
    spark_local: bool = False
    """Whether they may run as processes of the operator itself (engine Local): never in a cluster."""
    webhook_port: int | None = None
    """HTTPS port of the admission webhook; None for none."""
    webhook_certificate: Path | None = None
    """Its certificate with the chain, PEM, and its key; read again when they change."""
    webhook_private_key: Path | None = None
    own_namespace: str | None = None
    """The namespace that the operator itself runs in; None where it runs in none that could be deleted with it."""
    lease: str | None = None
    """Name of the Lease in `own_namespace` that is held while it works; None where nobody else could work beside it."""
    identity: str | None = None
    """What it is called in the Lease, the pod's name in a pod; None for a name that no other process has."""
    shards: int = 1
    """Among so many processes the Clusters are divided, each with a Lease of its own; more than one take a Lease."""
    resync_interval_s: float = RESYNC_INTERVAL_S
    """Seconds between two comparisons of everything."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return the kinds that are served."""
        return (*KAFKA_KINDS, *SPARK_KINDS) if self.spark else KAFKA_KINDS

    def __post_init__(self) -> None:
        """Raise ValueError, with the options' names, for what cannot work together."""
        if (self.spark_operator or self.spark_local or self.spark_namespaces) and not self.spark:
            raise ValueError("--spark-operator, --spark-local and --spark-namespace need --spark")
        unserved = sorted(set(self.spark_namespaces) - set(self.namespaces)) if self.namespaces else []
        if unserved:
            raise ValueError(
                f"--spark-namespace contains {', '.join(unserved)}, which the operator does not serve: add --namespace for each of them"
            )
        if self.webhook_port is not None and None in {self.webhook_certificate, self.webhook_private_key}:
            raise ValueError(
                "--webhook-port needs --webhook-certificate and --webhook-private-key: it only supports TLS"
            )
        if self.lease is not None and self.own_namespace is None:
            raise ValueError("--lease needs --own-namespace: a Lease is in a namespace")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ValueError(f"--shards is {self.shards}: it is 1 to {MAX_SHARDS}")
        if self.shards > 1 and self.lease is None:
            raise ValueError("--shards needs --lease: each shard has one, so that two processes never serve the same")
