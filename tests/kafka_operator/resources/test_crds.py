"""Validation of Topics by the API server, and what all resources have in common, before any operator runs."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from lab.peers.kubernetes import KubernetesApi
from tests.kafka_operator.live import ROOT, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.twins.kstatus import kstatus

pytestmark = pytest.mark.kubernetes

LONG = "a" * 250


@pytest.fixture(scope="module")
def namespace(api: KubernetesApi) -> Iterator[Namespace]:
    """A namespace with the Topic `orders`, which the cases try to change."""
    made = Namespace(api, "crds")
    made.apply(raw_topic(topicName="Orders", config={"retention.ms": "1"}))
    made.apply(raw_topic("plain"))
    yield made
    made.empty()


NEW_TOPICS = [
    ({"partitions": 0}, "Number of partitions must be larger than 0."),
    ({"partitions": -1}, "Number of partitions must be larger than 0."),
    ({"replicationFactor": 0}, "Replication factor must be larger than 0."),
    ({"replicationFactor": 40000}, "Replication factor must be at most 32767."),
    ({"topicName": ""}, "The topic's name is empty."),
    ({"topicName": "."}, 'The topic\'s name cannot be "." or "..".'),
    ({"topicName": ".."}, 'The topic\'s name cannot be "." or "..".'),
    ({"topicName": LONG}, "The topic's name is longer than the 249 characters that Kafka allows."),
    ({"topicName": "a b"}, "The topic's name is illegal: it may contain only ASCII letters and digits"),
    ({"topicName": "ümlaut"}, "The topic's name is illegal"),
    ({"topicName": "a/b"}, "The topic's name is illegal"),
    ({"deletionPolicy": "Maybe"}, 'supported values: "Delete", "Retain", "Protect"'),
    ({"config": {"retention.ms": 5}}, "must be of type string"),
    ({"clusterRef": {}}, "spec.clusterRef.name: Required value"),
]


@pytest.mark.shows("F30")
@pytest.mark.parametrize(("spec", "message"), NEW_TOPICS, ids=lambda value: str(value)[:40])
def test_a_bad_topic_is_refused_at_apply(namespace: Namespace, spec: dict[str, Any], message: str) -> None:
    """An illegal name, RF 0: refused at apply by CEL, with a message."""
    raw = raw_topic("bad")
    raw["spec"] |= spec

    assert message in namespace.refusal(raw)


def test_a_resource_name_too_long_for_kafka_is_refused(namespace: Namespace) -> None:
    """metadata.name may have 253 characters, a topic 249; another name for Kafka helps."""
    assert "longer than the 249 characters" in namespace.refusal(raw_topic(LONG))
    namespace.apply(raw_topic(LONG, topicName="short"))


CHANGED_TOPICS = [
    ("orders", {"partitions": 5}, "The number of partitions can never be decreased"),
    ("orders", {"topicName": "other"}, "The topic's name cannot be changed"),
    ("orders", {"topicName": None}, "The topic's name cannot be changed"),
    ("plain", {"topicName": "other"}, "The topic's name cannot be changed"),
    ("orders", {"clusterRef": {"name": "other"}}, "clusterRef cannot be changed"),
]


@pytest.mark.shows("F2", "F4", "O8")
@pytest.mark.parametrize(("name", "spec", "message"), CHANGED_TOPICS, ids=lambda value: str(value)[:40])
def test_a_bad_change_of_a_topic_is_refused(
    namespace: Namespace, name: str, spec: dict[str, Any], message: str
) -> None:
    """Fewer partitions, a changed topic name: refused at apply by CEL, with a message (O8)."""
    raw = raw_topic("orders", topicName="Orders") if name == "orders" else raw_topic(name)
    raw["spec"] |= spec
    raw["spec"] = {key: value for key, value in raw["spec"].items() if value is not None}

    assert message in namespace.refusal(raw)


def test_valid_changes_of_a_topic_are_accepted(namespace: Namespace) -> None:
    """More partitions, another replication factor, other settings; the default name written out."""
    namespace.apply(raw_topic("plain", partitions=9, replicationFactor=2, config={"a": "b"}))
    namespace.apply(raw_topic("plain", topicName="plain", partitions=9, replicationFactor=2))


def test_a_new_resource_is_in_progress_before_the_operator_has_seen_it(namespace: Namespace) -> None:
    """The default of `status` holds although users cannot write it; no operator runs here."""
    namespace.apply(raw_topic("unseen"))
    found = namespace.get("Topic", "unseen")

    assert found is not None
    assert (found["status"], kstatus(found)) == ({"observedGeneration": -1}, "InProgress")


def test_resources_are_listed_by_their_cluster(namespace: Namespace) -> None:
    """`kubectl get topics --field-selector spec.clusterRef.name=main` (selectableFields, Kubernetes 1.31 and later)."""
    namespace.apply(raw_topic("elsewhere", cluster="other"))
    path = f"/apis/steward.dev/v1alpha1/namespaces/{namespace.name}/topics"

    answer = namespace.api.send("GET", f"{path}?fieldSelector=spec.clusterRef.name%3Dother")

    assert [item["metadata"]["name"] for item in json.loads(answer.body)["items"]] == ["elsewhere"]


@pytest.mark.parametrize("name", ["cluster", "cluster-secured", "topic", "reassignment", "election"])
def test_the_examples_are_accepted(namespace: Namespace, name: str) -> None:
    """Users copy them."""
    raw = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
    raw = copy.deepcopy(raw)
    raw["metadata"]["name"] = f"example-{name}"

    namespace.apply(raw)


def test_short_names_and_the_category_list_the_resources(namespace: Namespace) -> None:
    """`kubectl get steward`; short names that do not clash with Strimzi's kt and kr."""
    namespace.apply(raw_cluster())
    namespace.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4])))

    assert "topic.steward.dev/orders" in namespace.kubectl("get", "steward", "-o", "name")
    for short, column in (("stopic", "PARTITIONS"), ("sra", "PROGRESS %"), ("scl", "CONTROLLER")):
        assert column in namespace.kubectl("get", short)


def test_status_is_a_subresource(namespace: Namespace) -> None:
    """A user's apply does not touch it, and the generation does not move with it."""
    raw = raw_topic("with-status")
    raw["status"] = {"partitions": 99}
    namespace.apply(raw)

    assert namespace.status("Topic", "with-status") == {"observedGeneration": -1}
