"""Validation by the API server of a Topic's policies, ignored settings, throttle and other namespaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.peers.kubernetes import KubernetesApi
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.makers import raw_cluster, raw_topic

pytestmark = pytest.mark.kubernetes

THROTTLED = "leader.replication.throttled.replicas"


@pytest.fixture(scope="module")
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    """A namespace with one Topic that names a Cluster elsewhere."""
    made = Namespace(api, "crd-topics")
    made.apply(raw_topic("far", clusterRef={"name": "main", "namespace": "kafka"}))
    yield made
    made.empty()


REFUSED = [
    ({"config": {THROTTLED: "*"}}, "cannot be set in a Topic"),
    ({"config": {"follower.replication.throttled.replicas": "0:1"}}, "cannot be set in a Topic"),
    (
        {"config": {"a": "1"}, "unmanagedConfig": ["a"]},
        "must not be listed in both config and unmanagedConfig",
    ),
    ({"unmanagedConfig": ["a", "a"]}, "Duplicate value"),
    ({"policy": "Watch"}, 'supported values: "Enforce", "Observe"'),
    ({"deletionPolicy": "Never"}, 'supported values: "Delete", "Retain", "Protect"'),
    ({"throttle": {}}, "throttle requires exactly one of bytesPerSecond and adaptive."),
    (
        {"throttle": {"adaptive": {"minBytesPerSecond": 2, "maxBytesPerSecond": 2}}},
        "minBytesPerSecond must be less than maxBytesPerSecond.",
    ),
]


@pytest.mark.shows("F30")
@pytest.mark.parametrize(("spec", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_contradictions_are_refused_at_apply(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    """With a message, before any operator runs."""
    assert message in namespace.refusal(raw_topic("bad", **spec))


def test_the_clusters_namespace_cannot_be_changed(namespace: Namespace) -> None:
    """As the Cluster itself: a topic does not move between clusters."""
    for ref in ({"name": "main"}, {"name": "main", "namespace": "other"}):
        assert "clusterRef cannot be changed" in namespace.refusal(raw_topic("far", clusterRef=ref))


def test_a_throttled_setting_may_be_left_alone(namespace: Namespace) -> None:
    """To name it there does no harm; it is left alone anyhow."""
    namespace.apply(raw_topic("throttled", unmanagedConfig=[THROTTLED]))


def test_null_comes_through_create_and_server_side_apply_and_not_through_plain_apply(
    namespace: Namespace, api: KubernetesApi
) -> None:
    """A plain apply is a merge patch, in which null takes a key away: unmanagedConfig is what always arrives."""
    spec = {"config": {"retention.ms": None, "segment.ms": "1"}, "unmanagedConfig": ["cleanup.policy"]}
    config = {}
    for name, arguments in {
        "created": ("create",),
        "server-side": ("apply", "--server-side"),
        "plain": ("apply",),
    }.items():
        raw = raw_topic(name, **spec)
        raw["metadata"]["namespace"] = namespace.name
        api.kubectl(*arguments, "--filename=-", stdin=json.dumps(raw), check=True)
        found = namespace.get("Topic", name)
        assert found is not None
        assert found["spec"]["unmanagedConfig"] == ["cleanup.policy"]
        config[name] = found["spec"]["config"]

    assert {"retention.ms": None, "segment.ms": "1"} == config["created"] == config["server-side"]
    assert config["plain"] == {"segment.ms": "1"}


RULES = [
    ({"namespaces": []}, "should have at least 1 items"),
    ({"topicNames": ["a"]}, "namespaces: Required value"),
    ({"namespaces": ["Team"]}, "should match"),
    ({"namespaces": ["team-*"], "topicNames": ["a b"]}, "should match"),
    ({"namespaces": ["team-*"], "topicNames": ["${name}.x"]}, "should match"),
    ({"namespaces": ["team-*"], "maxTopics": -1}, "greater than or equal to 0"),
    ({"namespaces": ["team-*"], "minBytesPerSecond": 0}, "greater than or equal to 1"),
    (
        {"namespaces": ["team-*"], "minBytesPerSecond": 9, "maxBytesPerSecond": 8},
        "must not be larger than maxBytesPerSecond",
    ),
    ({"namespaces": ["team-*"], "maxBytesPerSecond": 999_999}, "minBytesPerSecond (1000000 by default)"),
]


@pytest.mark.parametrize(("rule", "message"), RULES, ids=lambda value: str(value)[:40])
def test_an_invalid_rule_for_namespaces_is_refused(namespace: Namespace, rule: dict[str, Any], message: str) -> None:
    """A pattern has * alone; ${namespace} is the only thing that is filled in."""
    assert message in namespace.refusal(raw_cluster("bad-rule", allowedNamespaces=[rule]))


def test_rules_for_namespaces_are_accepted(namespace: Namespace) -> None:
    """Names, patterns, numbers."""
    rules = [
        {"namespaces": ["team-a"], "topicNames": ["${namespace}.*", "shared"], "maxTopics": 10, "maxPartitions": 100},
        {"namespaces": ["team-b"], "minBytesPerSecond": 1, "maxBytesPerSecond": 999_999},
        {"namespaces": ["*"]},
    ]
    namespace.apply(raw_cluster("rules", allowedNamespaces=rules))
