"""Settings of the operator process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from reconciler.decide.shards import MAX_SHARDS

RESYNC_INTERVAL_S = 120.0
"""Interval of full lists and comparisons: the longest time that drift, or an event lost by a watch, stays unnoticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """Settings of `steward operator`."""

    namespaces: tuple[str, ...] = ()
    """Namespaces to watch; empty for all of them, which needs a ClusterRole."""
    kubeconfig: Path | None = None
    """Path of the kubeconfig; None: the pod's service account, else KUBECONFIG or the default file."""
    context: str | None = None
    """Context of the kubeconfig; None for its current one."""
    metrics_port: int | None = 8080
    """Port of Prometheus metrics at /metrics; None for no metrics."""
    health_port: int | None = 8081
    """Port of /healthz and /readyz; None for no probes."""
    listen_address: str = "127.0.0.1"
    """Listen address of both ports; in a pod 0.0.0.0, since the kubelet and Prometheus connect from outside."""
    pods: bool = False
    """Whether broker pods are replaced and scaled, for Clusters that have `spec.brokers`."""
    drain: bool = False
    """Whether nodes are read too, so that pods leave a node that is drained; requires a ClusterRole."""
    aws_identity_namespaces: tuple[str, ...] = ()
    """Namespaces whose Clusters may use the AWS identity of this process (type AwsMskIam without a Secret); `*` for all."""
    spark: bool = False
    """Whether SparkApplications and their schedules are served."""
    spark_namespaces: tuple[str, ...] = ()
    """Namespaces in which SparkApplications and schedules run; elsewhere they are rejected. Empty for all served namespaces."""
    spark_operator: bool = False
    """Whether resources of Kubeflow's Spark operator may be created (engine SparkOperator)."""
    spark_local: bool = False
    """Whether drivers may run as child processes of the operator (engine Local): never in a cluster."""
    webhook_port: int | None = None
    """HTTPS port of the admission webhook; None for no webhook."""
    webhook_certificate: Path | None = None
    """The webhook's certificate with its chain, and its key, both PEM; read again when they change."""
    webhook_private_key: Path | None = None
    webhook_approvals: bool = False
    """Whether the webhook also checks the right to approve Reassignments."""
    own_namespace: str | None = None
    """The namespace that the operator itself runs in; None outside a cluster."""
    lease: str | None = None
    """Name of the Lease in `own_namespace`; None if no other process can run at the same time."""
    create_lease_after_s: float = 0.0
    """Seconds after the start before which a missing Lease is not created: helm creates it, after the Deployment."""
    identity: str | None = None
    """Holder identity in the Lease: in a pod the pod's name; None for a unique generated name."""
    shards: int = 1
    """Number of processes among which the Clusters are divided, each with its own Lease; more than one require a Lease."""
    resync_interval_s: float = RESYNC_INTERVAL_S
    """Seconds between two resyncs."""

    def __post_init__(self) -> None:
        """Raise ValueError, with the options' names, for incompatible settings."""
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
        if self.webhook_approvals and self.webhook_port is None:
            raise ValueError("--webhook-approvals needs --webhook-port: the webhook checks approvals")
        if self.lease is not None and self.own_namespace is None:
            raise ValueError("--lease needs --own-namespace: a Lease is in a namespace")
        if not 1 <= self.shards <= MAX_SHARDS:
            raise ValueError(f"--shards is {self.shards}: it is 1 to {MAX_SHARDS}")
        if self.shards > 1 and self.lease is None:
            raise ValueError("--shards needs --lease: each shard has one, so that two processes never serve the same")
