"""Options of `steward operator`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesOptions:
    """The Kubernetes API, and the namespaces to serve."""

    kubeconfig: Annotated[
        Path | None,
        typer.Option(envvar="KUBECONFIG", help="Kubeconfig file; by default the service account of the pod is used."),
    ] = None
    context: Annotated[str | None, typer.Option(envvar="STEWARD_CONTEXT", help="Context of the kubeconfig.")] = None
    namespace: Annotated[
        list[str] | None,
        typer.Option(envvar="STEWARD_NAMESPACES", help="Namespace to serve; repeatable. By default all."),
    ] = None
    aws_identity_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_AWS_IDENTITY_NAMESPACES",
            help="Namespace whose Clusters may log in with the operator's own AWS identity (AwsMskIam without a Secret); repeatable, "
            "* for all. By default none.",
        ),
    ] = None
    resync_interval_s: Annotated[
        float,
        typer.Option(
            envvar="STEWARD_RESYNC_INTERVAL_S", min=1, help="Seconds between reconciliations of all resources."
        ),
    ] = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorServerOptions:
    """Addresses of metrics and probes."""

    listen_address: Annotated[
        str, typer.Option(envvar="STEWARD_LISTEN_ADDRESS", help="Host of metrics and probes; 0.0.0.0 in a pod.")
    ] = "127.0.0.1"
    metrics_port: Annotated[
        int, typer.Option(envvar="STEWARD_METRICS_PORT", min=0, max=65535, help="Port of /metrics.")
    ] = 9405
    health_port: Annotated[
        int, typer.Option(envvar="STEWARD_HEALTH_PORT", min=0, max=65535, help="Port of /healthz and /readyz.")
    ] = 9406


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPodOptions:
    """Pods of brokers."""

    pods: Annotated[
        bool,
        typer.Option("--pods/--no-pods", envvar="STEWARD_PODS", help="Replace and scale the broker pods of Clusters."),
    ] = False
    drain: Annotated[
        bool,
        typer.Option(
            "--drain/--no-drain", envvar="STEWARD_DRAIN", help="With --pods: move broker pods off nodes being drained."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkOptions:
    """SparkApplications and their schedules."""

    spark: Annotated[
        bool, typer.Option("--spark/--no-spark", envvar="STEWARD_SPARK", help="Serve SparkApplications and schedules.")
    ] = False
    spark_namespace: Annotated[
        list[str] | None,
        typer.Option(
            envvar="STEWARD_SPARK_NAMESPACES",
            help="With --spark: run SparkApplications only in this namespace; repeatable. By default in all served ones.",
        ),
    ] = None
    spark_operator: Annotated[
        bool,
        typer.Option(
            "--spark-operator/--no-spark-operator",
            envvar="STEWARD_SPARK_OPERATOR",
            help="With --spark: pass applications with engine SparkOperator to Kubeflow's Spark operator.",
        ),
    ] = False
    spark_local: Annotated[
        bool,
        typer.Option(
            "--spark-local/--no-spark-local",
            envvar="STEWARD_SPARK_LOCAL",
            help="With --spark: run applications with engine Local as processes of this user. Only for a laptop.",
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOptions:
    """The operator's own namespace, and its Leases."""

    own_namespace: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_OWN_NAMESPACE",
            help="Namespace of the operator's pod. When it is deleted, finalizers in it are released.",
        ),
    ] = None
    lease: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_LEASE", help="Lease in --own-namespace; only its holder is active, other pods are standbys."
        ),
    ] = None
    create_lease_after_s: Annotated[
        float,
        typer.Option(
            envvar="STEWARD_CREATE_LEASE_AFTER_S",
            min=0,
            max=3600,
            help="Seconds after the start before which a missing Lease is not created, for an installer that creates it after the pod.",
        ),
    ] = 0.0
    identity: Annotated[
        str | None,
        typer.Option(
            envvar="STEWARD_IDENTITY", help="Holder name in the Lease: the pod's name. By default a unique name."
        ),
    ] = None
    shards: Annotated[
        int,
        typer.Option(envvar="STEWARD_SHARDS", min=1, help="Number of shards of Clusters, each with its own Lease."),
    ] = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """The admission webhook."""

    webhook_port: Annotated[
        int | None,
        typer.Option(envvar="STEWARD_WEBHOOK_PORT", min=0, max=65535, help="HTTPS port of the admission webhook."),
    ] = None
    webhook_certificate: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_WEBHOOK_CERTIFICATE", help="Certificate of the webhook, with its chain (PEM)."),
    ] = None
    webhook_private_key: Annotated[
        Path | None,
        typer.Option(envvar="STEWARD_WEBHOOK_PRIVATE_KEY", help="Private key of the webhook's certificate (PEM)."),
    ] = None
    webhook_approvals: Annotated[
        bool,
        typer.Option(
            "--webhook-approvals",
            envvar="STEWARD_WEBHOOK_APPROVALS",
            help="The webhook also checks that users have the verb approve on reassignments (SubjectAccessReview).",
        ),
    ] = False
