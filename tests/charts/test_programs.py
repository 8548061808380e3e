"""The programs that the chart runs in pods of their own."""

from __future__ import annotations

import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from kafka_wire import Body, ErrorCode
from kafka_wire.net.client import ConnectionFailed
from lab.peers.authority import Authority
from lab.peers.cluster import KafkaCluster
from lab.peers.kubernetes import KubernetesApi
from tests.charts.conftest import OTHER_NAMESPACE
from tests.charts.rendering import NAMESPACE, program

FINALIZER = "steward.dev/operator"
"""The operator's own (reconciler.names)."""

LABELS = "app.kubernetes.io/component=operator"


def declare(api: KubernetesApi, namespace: str, name: str, finalizers: list[str]) -> None:
    """Make a Topic as the operator would hold it."""
    topic = {
        "apiVersion": "steward.dev/v1alpha1",
        "kind": "Topic",
        "metadata": {"name": name, "namespace": namespace, "finalizers": finalizers},
        "spec": {"clusterRef": {"name": "steward"}, "partitions": 1, "replicationFactor": 1},
    }
    api.kubectl("apply", "--filename=-", stdin=json.dumps(topic), check=True)


def finalizers(api: KubernetesApi, namespace: str, name: str) -> list[str]:
    """Read a Topic's."""
    found = api.get(f"/apis/steward.dev/v1alpha1/namespaces/{namespace}/topics/{name}")
    assert found is not None
    return list(json.loads(found)["metadata"].get("finalizers", []))


def client_of(api: KubernetesApi) -> Any:
    """The program's own client, as the admin."""
    token = json.loads(api.kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    return program("kubernetes_api").Api(
        api.url, token, ssl.create_default_context(cafile=str(api.certificate_authority))
    )


@pytest.mark.kubernetes
@pytest.mark.parametrize("served", [[NAMESPACE, OTHER_NAMESPACE], ["*"]])
def test_an_uninstall_lets_go_of_everything_and_keeps_it(api: KubernetesApi, served: list[str]) -> None:
    """Helm uninstall leaves nothing wedged. Others' finalizers are others' business."""
    release = program("release_resources")
    assert FINALIZER == release.FINALIZER
    declare(api, NAMESPACE, "plain", [])
    declare(api, NAMESPACE, "held", [FINALIZER, "example.org/backup"])
    declare(api, OTHER_NAMESPACE, "held", [FINALIZER])
    client = client_of(api)

    assert release.release_all(client, served) == 2
    assert (
        finalizers(api, NAMESPACE, "plain"),
        finalizers(api, NAMESPACE, "held"),
        finalizers(api, OTHER_NAMESPACE, "held"),
    ) == ([], ["example.org/backup"], [])
    assert release.release_all(client, served) == 0


@pytest.mark.kubernetes
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_operator_and_brokers_are_stopped_before_the_rest_goes(api: KubernetesApi, kind: str) -> None:
    """They are scaled to nothing; what is not there is stopped already."""
    release = program("release_resources")
    container = {"name": "operator", "image": "steward:dev"}
    of_set = {"serviceName": "steward"} if kind == "StatefulSet" else {}
    workload = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "steward-operator", "namespace": OTHER_NAMESPACE},
        "spec": {
            "replicas": 1,
            **of_set,
            "selector": {"matchLabels": {"app": "operator"}},
            "template": {"metadata": {"labels": {"app": "operator"}}, "spec": {"containers": [container]}},
        },
    }
    api.kubectl("apply", "--filename=-", stdin=json.dumps(workload), check=True)
    client = client_of(api)

    release.stop(client, OTHER_NAMESPACE, f"{kind.lower()}s/steward-operator", LABELS)
    release.stop(client, OTHER_NAMESPACE, f"{kind.lower()}s/not-there", LABELS)

    found = client.get(f"/apis/apps/v1/namespaces/{OTHER_NAMESPACE}/{kind.lower()}s/steward-operator")
    assert found["spec"]["replicas"] == 0


@pytest.mark.kafka
async def test_records_come_back(kafka_cluster: KafkaCluster) -> None:
    """Helm test that produces and consumes; it leaves no topic behind."""
    check = program("produce_and_consume")

    settings = check.node_settings("PLAINTEXT")
    assert await check.produce_and_consume(kafka_cluster.bootstrap(), "steward-test-here", settings) == check.RECORDS


async def test_a_broker_that_is_starting_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after an install, and in an upgrade, there may be fewer brokers than replicas."""
    check = program("produce_and_consume")
    monkeypatch.setattr(check, "RETRY_S", 0)
    answers: list[Any] = [
        ErrorCode.INVALID_REPLICATION_FACTOR,
        ConnectionFailed("closed", sent=True),
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]

    class Client:
        """Refuses twice, and has then carried out what it did not answer."""

        async def call_controller(self, *_: object, **__: object) -> Body:
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return {"topics": [{"error_code": answer}]}

    await check.Check(Client(), "steward-test-here").create()

    assert answers == []


def test_an_unreachable_cluster_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pod's log is what `helm test --logs` shows."""
    check = program("produce_and_consume")
    monkeypatch.setattr(check, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(check, "RETRY_S", 0.01)

    assert check.main("127.0.0.1:1") == 1
    assert (
        "127.0.0.1:1: the topic cannot be created: no broker returned the cluster's metadata" in capsys.readouterr().err
    )


def test_the_test_of_a_secured_release_uses_the_files_that_the_chart_mounts(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ca.crt and password of the release's own Secrets."""
    check = program("produce_and_consume")
    monkeypatch.setattr(check, "CREDENTIALS", tmp_path)
    (tmp_path / "ca.crt").write_text(authority.certificate.read_text("ascii"))
    (tmp_path / "password").write_text("own-password")
    (tmp_path / "password").chmod(0o440)
    settings = check.node_settings("SASL_SSL", "SCRAM-SHA-512", "steward")

    assert settings.ssl.verify_mode == ssl.CERT_REQUIRED
    assert (settings.sasl.mechanism, settings.sasl.user) == ("SCRAM-SHA-512", "steward")
    assert check.node_settings("PLAINTEXT").ssl is None


def test_a_missing_secret_is_reported_in_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The message names the file."""
    check = program("produce_and_consume")
    monkeypatch.setattr(check, "CREDENTIALS", tmp_path)

    assert check.main("127.0.0.1:1", "SSL") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert f"the authorities in {tmp_path}/ca.crt cannot be read" in line
