"""Conversion of the options of `steward operator` to the settings of the operator."""

from kafka_operator.settings import OperatorSettings
from steward.options.operator import (
    BrokerPodOptions,
    KubernetesOptions,
    LeaseOptions,
    OperatorServerOptions,
    SparkOptions,
    WebhookOptions,
)


def operator_settings(
    kubernetes: KubernetesOptions,
    server: OperatorServerOptions,
    broker_pods: BrokerPodOptions,
    spark: SparkOptions,
    lease: LeaseOptions,
    webhook: WebhookOptions,
) -> OperatorSettings:
    """Build the settings. Raises ValueError for options that contradict each other."""
    return OperatorSettings(
        namespaces=tuple(kubernetes.namespace or ()),
        kubeconfig=kubernetes.kubeconfig,
        context=kubernetes.context,
        metrics_port=server.metrics_port,
        health_port=server.health_port,
        listen_address=server.listen_address,
        resync_interval_s=kubernetes.resync_interval_s,
        aws_identity_namespaces=tuple(kubernetes.aws_identity_namespace or ()),
        pods=broker_pods.pods,
        drain=broker_pods.drain,
        spark=spark.spark,
        spark_namespaces=tuple(spark.spark_namespace or ()),
        spark_operator=spark.spark_operator,
        spark_local=spark.spark_local,
        webhook_port=webhook.webhook_port,
        webhook_certificate=webhook.webhook_certificate,
        webhook_private_key=webhook.webhook_private_key,
        webhook_approvals=webhook.webhook_approvals,
        own_namespace=lease.own_namespace,
        lease=lease.lease,
        create_lease_after_s=lease.create_lease_after_s,
        identity=lease.identity,
        shards=lease.shards,
    )
