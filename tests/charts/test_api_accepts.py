"""A real API server takes every rendered object, and every pod where the restricted standard is enforced."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from kafka_operator.decide.spark_driver import driver_pod, executor_template
from kafka_operator.resources.spark_application import read_spark_application
from lab.kubernetes import KubernetesApi
from tests.charts.rendering import JOBS, NAMESPACE, Chart, one, pods

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


@pytest.mark.parametrize("values", [{}, EVERYTHING, SMALL], ids=["defaults", "everything", "small"])
def test_every_rendered_object_is_taken(chart: Chart, api: KubernetesApi, values: dict[str, Any]) -> None:
    """`helm template | kubectl apply --dry-run=server`: a field that the kind does not have is an error."""
    text = chart.text(values)

    done = api.kubectl("apply", "--dry-run=server", "--validate=strict", "--filename=-", stdin=text)

    assert (done.returncode, done.stderr) == (0, "")
    assert text.count("\nkind: ") == len(done.stdout.splitlines())


def test_every_pod_is_taken_where_the_restricted_standard_is_enforced(chart: Chart, api: KubernetesApi) -> None:
    """Restricted Pod Security. The namespace enforces it, so that a pod that falls short is refused."""
    values = copy.deepcopy(EVERYTHING)
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
    executor["metadata"] |= {"name": "executor", "namespace": JOBS}  # type: ignore[operator]
    executor["spec"]["containers"][0] |= {"image": "steward-spark"}  # type: ignore[index]
    return [dict(driver), dict(executor)]
