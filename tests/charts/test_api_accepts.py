"""A real API server takes every rendered object, and every pod where the restricted standard is enforced."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.release.chart import OPERATOR_ONLY
from spark_operator.decide.driver import driver_pod, executor_template
from spark_operator.resources.application import read_spark_application
from tests.charts.rendering import ALL_SECURITY, JOBS, NAMESPACE, NAMESPACED, RELEASE, SASL, TLS, Chart, one, pods
from tests.charts.test_names import ACCOUNT, DIGEST, LONGEST, POD

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes]

EVERYTHING: dict[str, Any] = {
    "imagePullSecrets": [{"name": "registry"}],
    "kafka": {"config": {"log.retention.hours": 24, "auto.create.topics.enable": False}},
    "brokers": {
        "replicas": 5,
        "jvmOptions": "-XX:+UseG1GC",
        "storage": {"class": "fast", "whenDeleted": "Delete"},
        "tolerations": [{"key": "kafka", "operator": "Exists", "effect": "NoSchedule"}],
        "nodeSelector": {"kafka": "true"},
        "priorityClassName": "high",
        "podDisruptionBudget": {"maxUnavailable": "20%"},
    },
    "operator": {"namespaces": ["orders"], "affinity": {"nodeAffinity": {}}, "replicas": 3, "shards": 2},
    "networkPolicy": {
        "clients": [{"namespaceSelector": {"matchLabels": {"team": "orders"}}}],
        "monitoring": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
    },
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboard": {"enabled": True},
    },
    "analytics": {
        "enabled": True,
        "sampler": {"enabled": True},
        "schedule": {
            "enabled": True,
            "storage": {"size": "5Gi", "class": "fast"},
            "kafkaProperties": {"secret": "kafka-user", "key": "client.properties"},
            "goal": {"resources": ["disk"], "maxBytes": "5Gi", "excludedTopics": ["a", "b"], "excludedBrokers": [1, 2]},
            "sparkConf": {"spark.sql.shuffle.partitions": "8"},
            "nodeSelector": {"spark": "true"},
            "tolerations": [{"operator": "Exists"}],
        },
    },
}

SMALL: dict[str, Any] = {
    "brokers": {"replicas": 1, "rackLabel": ""},
    "zookeeper": {"replicas": 1},
    "controllers": {"replicas": 1},
    "operator": {"allNamespaces": True},
    "networkPolicy": {"enabled": False},
    "uninstall": {"releaseResources": False},
}


STOCK = {"bootstrapServers": "kafka-1:9092,kafka-2:9092"}

SECURED = {
    "name": "secured",
    "bootstrapServers": ["kafka.example.org:9093"],
    "tls": {"caSecretRef": {"name": "kafka-ca"}},
    "authentication": {"type": "MutualTLS", "secretRef": {"name": "kafka-user"}},
    "allowedNamespaces": [{"namespaces": ["team-*"], "maxTopics": 10}],
    "autoRebalance": {"onBrokersAdded": True},
}

MANAGED = {
    "name": "managed",
    "bootstrapServers": ["kafka:9092"],
    "brokers": {"statefulSet": "kafka", "firstId": 0, "replicas": 3},
}

SAMPLER = {"enabled": True, "bootstrapServers": "kafka:9092", "serviceAccount": {"create": False, "name": "cloud"}}

SCHEDULE = {
    "enabled": True,
    "cluster": "steward",
    "storage": {"url": "s3a://bucket/steward"},
    "serviceAccount": {"create": True, "annotations": {"iam.gke.io/gcp-service-account": "kafka@example.org"}},
}

EXTERNAL_ZOOKEEPER = {"enabled": False, "connect": "zk-1:2181,zk-2:2181/kafka"}

MONITORING = {
    name: {"enabled": True, "labels": {"team": "kafka"}} for name in ("serviceMonitor", "dashboard", "prometheusRule")
}

OWN_CERTIFICATE: dict[str, Any] = {
    "tls": {"enabled": True, "secret": "kafka-tls", "caSecret": "kafka-ca"},
    "sasl": {"enabled": True, "mechanism": "PLAIN", "usersSecret": "kafka-users"},
}

COMBINATIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": EVERYTHING,
    "small": SMALL,
    "namespaced": NAMESPACED,
    "monitored": {"monitoring": MONITORING},
    "pods": dict.fromkeys(("brokers", "zookeeper", "controllers", "operator"), POD),
    "accounts": {name: {"serviceAccount": ACCOUNT} for name in ("operator", "brokers")},
    "existing accounts": {
        name: {"serviceAccount": {"create": False, "name": "mine"}} for name in ("operator", "brokers")
    },
    "digests": {"image": {"digest": DIGEST}, "kafka": {"image": {"digest": DIGEST}}},
    "registry": {"global": {"imageRegistry": "registry.example.org:5000/kafka"}},
    "other prefix": {"fullnameOverride": "orders"},
    "other prefix, everything": {"fullnameOverride": "orders", **EVERYTHING},
    "standbys": {"operator": {"replicas": 2}},
    "standbys, half at a time": {"operator": {"replicas": 4, "podDisruptionBudget": {"maxUnavailable": "50%"}}},
    "secrets": {"operator": {"secrets": ["*"], "namespaces": ["orders"]}},
    "AWS identity": {"operator": {"awsIdentityNamespaces": ["orders"], "namespaces": ["orders"]}},
    "no controllers": {"controllers": {"enabled": False}, "monitoring": MONITORING},
    "existing ZooKeeper": {"zookeeper": EXTERNAL_ZOOKEEPER},
    "controllers of other brokers": {
        "zookeeper": EXTERNAL_ZOOKEEPER,
        "brokers": {"enabled": False},
        "controllers": {"listeners": [{"name": "INTER_BROKER", "port": 9094}, {"name": "CLIENT", "port": 9092}]},
        "clusters": [STOCK],
    },
    "more clusters": {"clusters": [SECURED, MANAGED]},
    "secured": {"security": ALL_SECURITY},
    "secured, everything": {**EVERYTHING, "security": ALL_SECURITY},
    "TLS": {"security": TLS, "monitoring": MONITORING},
    "TLS and SASL, sampler": {"security": SASL, "analytics": {"sampler": {"enabled": True}}},
    "existing certificate, PLAIN": {"security": OWN_CERTIFICATE, "clusters": [SECURED]},
    "existing certificate, no users": {"security": {"tls": OWN_CERTIFICATE["tls"]}},
    "secured, existing ZooKeeper": {"security": ALL_SECURITY, "zookeeper": EXTERNAL_ZOOKEEPER},
    "operator only": {**OPERATOR_ONLY, "clusters": [STOCK]},
    "operator only, no cluster": OPERATOR_ONLY,
    "operator only, several clusters": {**OPERATOR_ONLY, "clusters": [STOCK, SECURED, MANAGED]},
    "operator only, all namespaces": {**OPERATOR_ONLY, "clusters": [SECURED], "operator": {"allNamespaces": True}},
    "operator only, namespaced": {**NAMESPACED, **OPERATOR_ONLY, "clusters": [STOCK]},
    "operator only, monitored": {**OPERATOR_ONLY, "clusters": [STOCK], "monitoring": MONITORING},
    "operator only, shards": {**OPERATOR_ONLY, "operator": {"replicas": 3, "shards": 3, "pods": True, **POD}},
    "operator only, webhook": {
        **OPERATOR_ONLY,
        "operator": {"webhook": {"enabled": True, "secret": "own", "caBundle": "Q0E="}},
    },
    "approvals by the webhook": {
        "operator": {"webhook": {"enabled": True, "secret": "own", "caBundle": "Q0E="}, "drain": False},
        "admission": {"approveRight": "Webhook"},
    },
    "operator only, no policies": {
        **OPERATOR_ONLY,
        "networkPolicy": {"enabled": False},
        "uninstall": {"releaseResources": False},
    },
    "operator only, sampler": {**OPERATOR_ONLY, "analytics": {"sampler": SAMPLER}, "monitoring": MONITORING},
    "operator only, analytics": {
        **OPERATOR_ONLY,
        "clusters": [STOCK],
        "analytics": {"enabled": True, "sampler": SAMPLER, "schedule": SCHEDULE},
        "monitoring": MONITORING,
    },
}


@pytest.mark.shows("F39")
@pytest.mark.parametrize("release", [RELEASE, LONGEST], ids=["short", "longest"])
def test_every_rendered_object_is_accepted(chart: Chart, api: KubernetesApi, release: str) -> None:
    """`helm template | kubectl apply --dry-run=server` for all COMBINATIONS of values: a field that a kind does not have is an error.

    Equal objects of several combinations are submitted once. The release with the longest name has a third of the combinations.
    """
    names = list(COMBINATIONS) if release == RELEASE else list(COMBINATIONS)[1::3]
    texts = [chart.text(COMBINATIONS[name], release) for name in names]
    documents = dict.fromkeys(
        document for text in texts for document in text.split("\n---\n") if "\nkind: " in document
    )

    done = api.kubectl(
        "apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin="\n---\n".join(documents)
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == len(documents)


def test_every_pod_is_accepted_where_the_restricted_standard_is_enforced(chart: Chart, api: KubernetesApi) -> None:
    """Restricted Pod Security. The namespace enforces it, so that a pod that falls short is refused."""
    values = {**copy.deepcopy(EVERYTHING), "security": ALL_SECURITY}
    del values["brokers"]["priorityClassName"]  # there is none of that name, for which a pod is refused before
    items = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{number}", "namespace": NAMESPACE, "labels": pod["metadata"]["labels"]},
            "spec": pod["spec"],
        }
        for number, pod in enumerate(pods(chart.render(values)).values())
    ]

    def submit(pods: list[dict[str, Any]]) -> str:
        listed = {"apiVersion": "v1", "kind": "List", "items": pods}
        return api.kubectl("apply", "--dry-run=server", "--filename=-", stdin=json.dumps(listed)).stderr

    assert submit([*items, *_spark_pods(chart, values)]) == ""
    items[0]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    assert 'violates PodSecurity "restricted:latest"' in submit(items[:1])


def _spark_pods(chart: Chart, values: dict[str, Any]) -> list[dict[str, Any]]:
    """What the operator and Spark make of the schedule: a driver, and an executor as Spark completes its template."""
    schedule = one(chart.render(values), "ScheduledSparkApplication", "steward-balance")
    metadata = {"name": "run", "namespace": JOBS, "uid": "0a1b2c3d-0000", "generation": 1, "resourceVersion": "1"}
    metadata["creationTimestamp"] = "2026-03-02T10:00:00Z"
    application = read_spark_application({"metadata": metadata, "spec": schedule["spec"]["template"]})
    driver, executor = copy.deepcopy((driver_pod(application, 1), executor_template(application, 1)))
    executor["metadata"] |= {"name": "executor", "namespace": JOBS}
    executor["spec"]["containers"][0] |= {"image": "steward-spark"}
    return [dict(driver), dict(executor)]
