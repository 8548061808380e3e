"""Validation of Clusters by the API server, before any operator runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_operator.resources.security import FORMER_TYPES
from lab.peers.kubernetes import KubernetesApi
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.makers import raw_cluster

pytestmark = pytest.mark.kubernetes


@pytest.fixture(scope="module")
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    """A namespace for Clusters, emptied at the end."""
    made = Namespace(api, "crd-clusters")
    yield made
    made.empty()


def test_mode_has_the_values_of_release_0_1_0_except_a_new_quorum(namespace: Namespace) -> None:
    """The field has no effect. Manifests of 0.1.0 have lower-case values; nothing runs brokers with a quorum of Steward controllers."""
    modes = ("ZooKeeper", "External", "zookeeper", "external")

    assert [namespace.refusal(raw_cluster("moded", mode=mode)) for mode in modes] == [""] * len(modes)
    assert "Unsupported value" in namespace.refusal(raw_cluster("moded", mode="KRaft"))
    for mode in ("Quorum", "quorum"):
        for name in ("moded", "new-mode"):
            assert "quorum of Steward controllers are not supported yet" in namespace.refusal(
                raw_cluster(name, mode=mode)
            )


MSK = {"region": "eu-central-1"}
ENDPOINT = {"url": "https://login.example.org/token", "scope": "kafka", "caSecretRef": {"name": "ca"}}


BAD_SECURITY = [
    (
        {"authentication": {"type": "Plain", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"authentication": {"type": "MutualTLS", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "MutualTLS", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type MutualTLS",
    ),
    (
        {"authentication": {"type": "OAuthBearer", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "OAuthBearer", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type OAuthBearer",
    ),
    (
        {"tls": {}, "authentication": {"type": "Plain", "secretRef": {"name": "a"}, "tokenEndpoint": ENDPOINT}},
        "tokenEndpoint is only for type OAuthBearer",
    ),
    (
        {
            "tls": {},
            "authentication": {
                "type": "OAuthBearer",
                "secretRef": {"name": "a"},
                "tokenEndpoint": {"url": "http://login.example.org/token"},
            },
        },
        "spec.authentication.tokenEndpoint.url",
    ),
    (
        {"authentication": {"type": "plain", "secretRef": {"name": "a"}}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    (
        {"tls": {}, "authentication": {"type": "mtls", "username": "u", "secretRef": {"name": "a"}}},
        "username cannot be set with type MutualTLS",
    ),
    ({"authentication": {"type": "gssapi", "secretRef": {"name": "a"}}}, "Unsupported value"),
    ({"authentication": {"type": "ScramSHA512"}}, "secretRef is required, the Secret with the credentials"),
    (
        {"authentication": {"type": "AwsMskIam", "awsMskIam": MSK}},
        "type Plain, MutualTLS, OAuthBearer or AwsMskIam requires tls",
    ),
    ({"tls": {}, "authentication": {"type": "AwsMskIam"}}, "awsMskIam is required with type AwsMskIam"),
    (
        {"tls": {}, "authentication": {"type": "Plain", "secretRef": {"name": "a"}, "awsMskIam": MSK}},
        "it cannot be set with other types",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": {"region": "eu-central-1.evil.org/"}}},
        "spec.authentication.awsMskIam.region",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": {"region": "cn-north-1"}}},
        "MSK clusters in regions of China are not supported",
    ),
    (
        {"tls": {}, "authentication": {"type": "AwsMskIam", "awsMskIam": MSK | {"roleArn": "steward"}}},
        "spec.authentication.awsMskIam.roleArn",
    ),
    ({"tls": {"caSecretRef": {"name": "../a"}}}, "spec.tls.caSecretRef.name"),
    (
        {"prometheus": {"url": "http://prometheus:9090", "tokenSecretRef": {"name": "a"}}},
        "tokenSecretRef requires a url that begins with https",
    ),
    ({"prometheus": {"url": "https://user:secret@prometheus"}}, "spec.prometheus.url"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_SECURITY, ids=lambda value: str(value)[:40])
def test_invalid_security_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    """A password never goes over the wire as it is."""
    assert message in namespace.refusal(raw_cluster("bad-security", **spec))


def test_each_form_of_security_is_accepted(namespace: Namespace) -> None:
    """Each type of authentication, by the keys of its usual kind of Secret; former spellings are still accepted."""
    current = ("Plain", "ScramSHA256", "ScramSHA512", "OAuthBearer", "MutualTLS")
    for number, kind in enumerate((*current, *FORMER_TYPES)):
        authentication = {"type": kind, "secretRef": {"name": "user"}}
        namespace.apply(raw_cluster(f"by-{number}", tls={"caSecretRef": {"name": "ca"}}, authentication=authentication))
    scram = {"type": "ScramSHA512", "username": "u", "secretRef": {"name": "user", "passwordKey": "pass.word"}}
    namespace.apply(raw_cluster("scram-without-tls", authentication=scram))
    bearer = {"type": "OAuthBearer", "secretRef": {"name": "user", "clientIdKey": "id"}, "tokenEndpoint": ENDPOINT}
    namespace.apply(raw_cluster("by-token-endpoint", tls={}, authentication=bearer))
    role = MSK | {"roleArn": "arn:aws:iam::123456789012:role/kafka/steward"}
    secret = {"name": "user", "accessKeyIdKey": "id", "secretAccessKeyKey": "secret"}
    for name, more in {"msk-by-operator": {}, "msk-by-key": {"secretRef": secret}}.items():
        namespace.apply(raw_cluster(name, tls={}, authentication={"type": "AwsMskIam", "awsMskIam": role, **more}))


@pytest.mark.parametrize(
    ("server", "good"),
    [
        ("kafka-1.example.org:9092", True),
        ("10.0.0.1:9092", True),
        ("[::1]:9092", True),
        ("kafka", False),
        ("kafka:", False),
        ("kafka:port", False),
        ("http://kafka:9092", False),
    ],
)
def test_a_bootstrap_server_is_host_and_port(namespace: Namespace, server: str, good: bool) -> None:
    """Refused at apply."""
    refusal = namespace.refusal(raw_cluster(f"c-{abs(hash(server))}", server))

    assert good is (refusal == "")
    assert good or "A bootstrap server must have the form host:port" in refusal


BAD_BROKERS = [
    ({"statefulSet": "b", "replicas": 0}, "replicas must be at least 1."),
    ({"statefulSet": "b", "replicas": 1001}, "less than or equal to 1000"),
    ({"replicas": 3}, "spec.brokers.statefulSet: Required value"),
    ({"statefulSet": "../pods/x"}, "spec.brokers.statefulSet"),
    ({"statefulSet": "b", "firstId": -1}, "greater than or equal to 0"),
]


@pytest.mark.parametrize(("brokers", "message"), BAD_BROKERS, ids=lambda value: str(value)[:40])
def test_invalid_pods_are_refused_at_apply(namespace: Namespace, brokers: dict[str, Any], message: str) -> None:
    """Values that cannot work are refused; a name that leads elsewhere as well."""
    assert message in namespace.refusal(raw_cluster("bad-brokers", brokers=brokers))


def test_a_cluster_with_pods_has_a_name_that_fits_into_a_label(namespace: Namespace) -> None:
    """steward.dev/cluster on their StatefulSet has the Cluster's name, and a label's value has at most 63 characters."""
    assert "at most 63 characters" in namespace.refusal(raw_cluster("c" * 64, brokers={"statefulSet": "b"}))
    assert "at most 63 characters" in namespace.refusal(raw_cluster("c" * 64, controllers={"statefulSet": "b"}))
    namespace.apply(raw_cluster("c" * 64))
    namespace.apply(raw_cluster("c" * 63, brokers={"statefulSet": "b"}))


def test_brokers_are_scaled_by_kubectl_scale_and_keep_their_ids(namespace: Namespace) -> None:
    """The scale subresource; ids are written into the brokers' data."""
    namespace.apply(raw_cluster("scaled", brokers={"statefulSet": "b", "replicas": 3, "firstId": 5}))

    namespace.kubectl("scale", "cluster.steward.dev/scaled", "--replicas=4")

    found = namespace.get("Cluster", "scaled")
    assert found is not None
    assert found["spec"]["brokers"]["replicas"] == 4
    refusal = namespace.refusal(raw_cluster("scaled", brokers={"statefulSet": "b", "replicas": 4, "firstId": 6}))
    assert "firstId cannot be changed" in refusal


BAD_AUTO = [
    ({"onImbalance": {"thresholdPercent": 5}}, "greater than or equal to 10"),
    ({"approval": "Maybe"}, "Unsupported value"),
    ({"template": {"maxBytesMoved": "much"}}, "maxBytesMoved must be a number of bytes larger than 0"),
    ({"template": {"throttle": {}}}, "exactly one of bytesPerSecond and adaptive"),
    ({"template": {"guard": {"action": "Rollback"}}}, "guard requires at least one of maxUnderMinIsrPartitions"),
]


@pytest.mark.parametrize(("auto", "message"), BAD_AUTO, ids=lambda value: str(value)[:40])
def test_a_bad_automatic_rebalance_is_refused_at_apply(
    namespace: Namespace, auto: dict[str, Any], message: str
) -> None:
    """The same words as a Reassignment's own."""
    assert message in namespace.refusal(raw_cluster("bad-auto", autoRebalance=auto))


def test_an_automatic_rebalance_is_accepted(namespace: Namespace) -> None:
    """Whole, and with everything left to what it is by default."""
    template = {
        "throttle": {"bytesPerSecond": 5},
        "windows": [{"schedule": "0 22 * * *", "duration": "6h"}],
        "guard": {"maxOfflinePartitions": 0, "queries": [{"name": "load", "query": "up", "max": 2}]},
        "canary": {"partitions": 1},
        "maxBytesMoved": "500Gi",
        "excludedTopics": ["ledger"],
    }
    namespace.apply(
        raw_cluster("auto", autoRebalance={"onBrokersAdded": True, "onImbalance": {}, "template": template})
    )
