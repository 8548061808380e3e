"""Values that cannot work are refused before anything is made, with words that name the value."""

from __future__ import annotations

from typing import Any

import pytest

from lab.release.chart import OPERATOR_ONLY
from tests.charts.rendering import Chart

pytestmark = pytest.mark.helm


BY_THE_SCHEMA: list[tuple[dict[str, Any], list[str]]] = [
    (
        {
            "brokers": {"replicas": 0, "heap": "lots", "storage": {"size": "ten"}},
            "zookeeper": {"replicas": 2},
            "controllers": {"replicas": 0},
            "podSecurityContext": {"runAsUser": 0},
            "broker": {"replicas": 3},
            "operator": {"replica": 2, "replicas": 0, "shards": 33},
            "kafka": {"config": {"log.retention.hours": "1\nbroker.id=7"}},
            "clusters": [{"name": "Main", "bootstrapServers": []}],
            "fullnameOverride": "a" * 42,
            "image": {"digest": "sha256:0"},
        },
        [
            "'/brokers/replicas': minimum: got 0, want 1",
            "'/brokers/heap': 'lots' does not match pattern",
            "'/brokers/storage/size': 'ten' does not match pattern",
            "'/zookeeper/replicas': value must be one of 1, 3, 5, 7",
            "'/controllers/replicas': minimum: got 0, want 1",
            "'/podSecurityContext/runAsUser': minimum: got 0, want 1",
            "'': additional properties 'broker' not allowed",
            "'/operator': additional properties 'replica' not allowed",
            "'/operator/replicas': minimum: got 0, want 1",
            "'/operator/shards': maximum: got 33, want 32",
            "'/kafka/config/log.retention.hours'",
            "'/clusters/0/name': 'Main' does not match pattern",
            "'/clusters/0/bootstrapServers'",
            "'/fullnameOverride': maxLength: got 42, want 41",
            "'/image/digest': 'sha256:0' does not match pattern",
        ],
    ),
    (
        {"brokers": {"replicas": "three"}, "controllers": {"replicas": 11}},
        ["'/brokers/replicas': got string, want integer", "'/controllers/replicas': maximum: got 11, want 10"],
    ),
    ({"brokers": {"replicas": None}}, ["'/brokers': missing property 'replicas'"]),
]
"""Values that are wrong each by itself, given at once: the schema's checks list all that they refuse."""


@pytest.mark.parametrize(("values", "words"), BY_THE_SCHEMA, ids=["values", "types", "missing"])
def test_what_the_schema_does_not_allow_is_refused_by_name(
    chart: Chart, values: dict[str, Any], words: list[str]
) -> None:
    """A wrong value is refused with its path."""
    refusal = chart.refusal(values)

    assert [word for word in words if word not in refusal] == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"operator": {"shards": 3, "replicas": 2}},
            "operator.replicas is 2 and operator.shards is 3: each shard needs at least one replica",
        ),
        (
            {"topics": {"replicationFactor": 4}},
            "topics.replicationFactor is 4 and brokers.replicas is 3: a topic cannot have more replicas than there are brokers",
        ),
        (
            {"topics": {"replicationFactor": 2, "minInsyncReplicas": 3}},
            "topics.minInsyncReplicas is 3 and topics.replicationFactor is 2: no write with acks=all could succeed",
        ),
        ({"kafka": {"config": {"broker.id": 7}}}, "kafka.config.broker.id is set by the chart"),
        (
            {"brokers": {"heap": "2g"}},
            "brokers.resources.limits.memory is 1Gi and brokers.heap is 2g: a JVM needs 128Mi in addition to its heap",
        ),
        (
            {"operator": {"webhook": {"enabled": True}}},
            "operator.webhook needs a certificate: set secret and caBundle, or certManager.enabled",
        ),
        ({"operator": {"webhook": {"enabled": True, "secret": "tls"}}}, "operator.webhook.caBundle is empty"),
        (
            {"operator": {"webhook": {"enabled": True, "secret": "tls", "certManager": {"enabled": True}}}},
            "operator.webhook: set only one of secret and certManager.enabled",
        ),
        (
            {"operator": {"allNamespaces": True, "namespaces": ["orders"]}},
            "operator.allNamespaces is true and operator.namespaces contains orders: set only one of them",
        ),
        (
            {"brokers": {"enabled": False}},
            "controllers.enabled is true and brokers.enabled is false: set controllers.listeners to the listeners of the brokers",
        ),
        (
            {"zookeeper": {"enabled": False}},
            "brokers.enabled is true and zookeeper.enabled is false: brokers need ZooKeeper. Set zookeeper.connect",
        ),
        (
            {"zookeeper": {"enabled": False}, "brokers": {"enabled": False}},
            "controllers.enabled is true and zookeeper.enabled is false: controllers need ZooKeeper. Set zookeeper.connect",
        ),
        (
            {"controllers": {"enabled": False}, "brokers": {"enabled": False}},
            "zookeeper.enabled is true, and neither brokers nor controllers are enabled: nothing would use ZooKeeper",
        ),
        ({"zookeeper": {"connect": "zk:2181"}}, "zookeeper.connect is the address of an existing ensemble"),
        (
            {"controllers": {"listeners": [{"name": "PLAIN", "port": 9092}]}},
            "controllers.listeners is for brokers outside the release",
        ),
        ({"operator": {"pods": False}}, "operator.pods is false and brokers.enabled is true"),
        (
            {"clusters": [{"name": "steward", "bootstrapServers": "kafka:9092"}]},
            "clusters[0] is the Cluster steward, which is that of the chart's own brokers: set clusters[0].name to another name",
        ),
        (
            {
                "clusters": [
                    {"name": "main", "bootstrapServers": "a:9092"},
                    {"name": "main", "bootstrapServers": "b:9092"},
                ]
            },
            "clusters[1] is the Cluster main, which is that of clusters[0]",
        ),
        (
            {**OPERATOR_ONLY, "analytics": {"sampler": {"enabled": True}}},
            "analytics.sampler.bootstrapServers is empty and brokers.enabled is false",
        ),
        (
            {"operator": {"spark": {"enabled": True}}},
            "operator.spark.enabled is true, and SparkApplications have no namespace: set analytics.otherNamespaces",
        ),
        (
            {"operator": {"serviceAccount": {"create": False}}},
            "operator.serviceAccount.create is false and operator.serviceAccount.name is empty",
        ),
    ],
)
def test_what_cannot_work_is_refused_by_name(chart: Chart, values: dict[str, Any], message: str) -> None:
    """Refused by a template message that names the value; the first one is the only one."""
    assert message in chart.refusal(values)


def test_a_name_that_begins_with_a_digit_is_refused_by_name(chart: Chart) -> None:
    """The API server accepts no Service of such a name."""
    refusal = chart.refusal({}, release="3-brokers")

    assert "the release is named 3-brokers, and a Service cannot have a name that begins with a digit" in refusal
    assert chart.render({"fullnameOverride": "kafka"}, release="3-brokers")
