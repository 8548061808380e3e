"""Policies of Topics by the operator's process, on a real API server and a stock Kafka cluster of version 3.9 (mode external)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_operator.names import ADOPT
from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from reconciler.names import PAUSE
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_topic
from tests.kafka_operator.stock import Stock

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

RESYNCS_S = 7.0
"""Two resyncs of three seconds each: enough time for an unwanted change."""


@pytest.fixture
def team(api: KubernetesApi, shop: Namespace) -> Iterator[Namespace]:
    """Another namespace."""
    made = Namespace(api, f"team-{shop.name}"[:63].strip("-"))
    yield made
    made.empty()


def declared(name: str, **spec: Any) -> dict[str, Any]:
    """A Topic of one partition with one copy."""
    return raw_topic(name, **{"partitions": 1, "replicationFactor": 1} | spec)


def annotate(namespace: Namespace, name: str, text: str) -> None:
    """Annotate a Topic."""
    namespace.kubectl("annotate", "--overwrite", "topic", name, text)


@pytest.mark.shows("F8", "E6", "F9")
def test_a_topic_observes_and_then_enforces(shop: Namespace, kafka: Stock) -> None:
    """Features 8: the drift is listed in the status, nothing is changed; Enforce reverts it."""
    kafka.create("e2e-observed", [[1, 2]])
    kafka.set_config("e2e-observed", "retention.ms", "9")
    spec = {"partitions": 2, "replicationFactor": 2, "config": {"retention.ms": "60000"}}
    shop.apply(declared("e2e-observed", policy="Observe", **spec))
    shop.until("Topic", "e2e-observed", "False", "Drifted")
    time.sleep(RESYNCS_S)

    expected = [
        {"field": "partitions", "declared": "2", "actual": "1"},
        {"field": "config.retention.ms", "declared": "60000", "actual": "9"},
    ]
    assert shop.status("Topic", "e2e-observed")["drift"] == expected
    assert (kafka.replicas("e2e-observed"), kafka.config("e2e-observed")) == ([[1, 2]], {"retention.ms": "9"})
    found = shop.get("Topic", "e2e-observed")
    assert found is not None
    assert "finalizers" not in found["metadata"]
    row = shop.kubectl("get", "topic", "e2e-observed", "-o", "wide").splitlines()[1].split()
    assert row[6:8] == ["Observe", "True"]
    shop.apply(declared("e2e-observed", **spec))
    shop.until("Topic", "e2e-observed", "True", "AsDeclared")
    wait_until(lambda: len(kafka.replicas("e2e-observed")) == 2, timeout_s=PATIENCE_S, what="all brokers know them")
    assert "drift" not in shop.status("Topic", "e2e-observed")


@pytest.mark.shows("F26", "E8")
def test_an_existing_topic_that_differs_is_adopted_by_consent(shop: Namespace, kafka: Stock) -> None:
    """Features (e) 8: the difference is shown, its digest is agreed to; one as declared is adopted at once."""
    kafka.create("e2e-equal", [[1]])
    kafka.create("e2e-found", [[1]])
    kafka.set_config("e2e-found", "retention.ms", "9")
    shop.apply(declared("e2e-equal"))
    shop.apply(declared("e2e-found", partitions=2, config={"retention.ms": "60000"}))
    shop.until("Topic", "e2e-equal", "True")
    shop.until_events("e2e-equal", ("Normal", "Adopted"))
    shop.until("Topic", "e2e-found", "False", "AdoptionPending")
    time.sleep(RESYNCS_S)
    assert (kafka.replicas("e2e-found"), kafka.config("e2e-found")) == ([[1]], {"retention.ms": "9"})
    message = shop.ready("Topic", "e2e-found")[2]
    assert "partitions 1 (declared 2), retention.ms 9 (declared 60000)" in message

    annotate(shop, "e2e-found", f"{ADOPT}={message.partition(f'{ADOPT}=')[2].partition(' ')[0]}")

    shop.until("Topic", "e2e-found", "True", "AsDeclared")
    assert kafka.config("e2e-found") == {"retention.ms": "60000"}
    shop.until_events("e2e-found", ("Warning", "AdoptionPending"), ("Normal", "Adopted"))


@pytest.mark.shows("F31")
def test_a_change_that_the_brokers_refuse_in_part_is_not_made(shop: Namespace, kafka: Stock) -> None:
    """Checked with validate_only before; partitions that are added can never be taken away."""
    shop.apply(declared("e2e-half"))
    shop.until("Topic", "e2e-half", "True")

    shop.apply(declared("e2e-half", partitions=3, config={"retention.ms": "long"}))

    shop.until("Topic", "e2e-half", "False", "InvalidConfig")
    assert "Invalid value long for configuration retention.ms" in shop.ready("Topic", "e2e-half")[2]
    assert len(kafka.replicas("e2e-half")) == 1


@pytest.mark.shows("F7")
def test_unmanaged_settings_are_not_changed(shop: Namespace, kafka: Stock) -> None:
    """By null, which server-side apply keeps, and by unmanagedConfig; what this Topic had set keeps its value."""

    def apply(**spec: Any) -> None:
        raw = declared("e2e-alone", **spec)
        raw["metadata"]["namespace"] = shop.name
        shop.api.kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(raw), check=True)

    apply(config={"retention.ms": "60000", "segment.ms": "70000"})
    shop.until("Topic", "e2e-alone", "True")
    apply(config={"retention.ms": None}, unmanagedConfig=["segment.ms"])
    wait_until(
        lambda: shop.status("Topic", "e2e-alone").get("observedGeneration") == 2,
        timeout_s=PATIENCE_S,
        what="the change has taken effect",
    )
    kafka.set_config("e2e-alone", "segment.ms", "80000")
    time.sleep(RESYNCS_S)

    assert kafka.config("e2e-alone") == {"retention.ms": "60000", "segment.ms": "80000"}
    assert shop.ready("Topic", "e2e-alone")[0] == "True"


def test_corrected_drift_and_a_recreated_topic_are_reported_once(shop: Namespace, kafka: Stock) -> None:
    """In events; the status stays as it is."""
    shop.apply(declared("e2e-mended", config={"retention.ms": "60000"}))
    shop.until("Topic", "e2e-mended", "True")
    kafka.set_config("e2e-mended", "retention.ms", "1")
    wait_until(
        lambda: kafka.config("e2e-mended") == {"retention.ms": "60000"}, timeout_s=PATIENCE_S, what="it is mended"
    )
    time.sleep(RESYNCS_S)

    shop.until_events("e2e-mended", ("Normal", "DriftReverted"))


@pytest.mark.shows("F5", "E5")
def test_an_edited_replication_factor_is_carried_out_under_a_throttle(shop: Namespace, kafka: Stock) -> None:
    """Features 5, (e) 5: without Cruise Control, with progress, and nothing of the throttle is left behind."""
    shop.apply(declared("e2e-factor", partitions=2))
    shop.until("Topic", "e2e-factor", "True")
    kafka.fill("e2e-factor", 50)

    shop.apply(declared("e2e-factor", partitions=2, replicationFactor=2, throttle={"bytesPerSecond": 10_000_000}))

    shop.until("Topic", "e2e-factor", "False", "ReplicationChanging")
    change = shop.status("Topic", "e2e-factor")["replicationChange"]
    assert (change["targetReplicationFactor"], change["reassignment"]) == (2, "e2e-factor-rf2-2")
    shop.until("Topic", "e2e-factor", "True", "AsDeclared")
    assert shop.status("Reassignment", "e2e-factor-rf2-2")["state"] == "Completed"
    wait_until(
        lambda: [len(replicas) for replicas in kafka.replicas("e2e-factor")] == [2, 2],
        timeout_s=PATIENCE_S,
        what="all brokers know the new copies",
    )
    assert kafka.config("e2e-factor") == {}
    assert shop.status("Topic", "e2e-factor")["replicationFactor"] == 2
    assert "replicationChange" not in shop.status("Topic", "e2e-factor")


@pytest.mark.shows("F29", "E14")
def test_topics_of_another_namespace_are_bound_by_the_clusters_rules(
    shop: Namespace, team: Namespace, kafka: Stock
) -> None:
    """Features 29, (e) 14: names, numbers; a tenant has no effect beyond them."""
    ref = {"name": "main", "namespace": shop.name}
    rule = {"namespaces": [team.name], "topicNames": ["e2e-${namespace}.*", "e2e-team-*"], "maxTopics": 1}
    team.apply(declared("first", clusterRef=ref, topicName="e2e-team-first"))
    team.until("Topic", "first", "False", "NotAllowed")
    shop.apply(raw_cluster("main", *kafka.bootstrap.split(","), allowedNamespaces=[rule]))
    team.until("Topic", "first", "True")
    team.apply(declared("second", clusterRef=ref, topicName="e2e-team-second"))
    team.until("Topic", "second", "False", "QuotaExceeded")
    team.apply(declared("third", clusterRef=ref, topicName="e2e-elsewhere"))
    team.until("Topic", "third", "False", "NameNotAllowed")
    assert "spec.allowedNamespaces[0].topicNames" in team.ready("Topic", "third")[2]
    assert not kafka.exists("e2e-elsewhere")
    assert not kafka.exists("e2e-team-second")

    team.delete("Topic", "first")

    team.until_gone("Topic", "first")
    team.until("Topic", "second", "True")


@pytest.mark.shows("F32")
def test_a_paused_topic_keeps_ready_and_goes_on_later(shop: Namespace, kafka: Stock) -> None:
    """Features 32."""
    shop.apply(declared("e2e-paused"))
    shop.until("Topic", "e2e-paused", "True")
    annotate(shop, "e2e-paused", f"{PAUSE}=true")
    wait_until(
        lambda: shop.status("Topic", "e2e-paused")["conditions"][-1]["type"] == "ReconciliationPaused",
        timeout_s=PATIENCE_S,
        what="it is paused",
    )
    shop.apply(declared("e2e-paused", partitions=2))
    time.sleep(RESYNCS_S)
    assert len(kafka.replicas("e2e-paused")) == 1
    assert shop.ready("Topic", "e2e-paused")[0] == "True"

    annotate(shop, "e2e-paused", f"{PAUSE}-")

    wait_until(lambda: len(kafka.replicas("e2e-paused")) == 2, timeout_s=PATIENCE_S, what="it goes on")


@pytest.mark.shows("F25")
def test_a_protected_topic_that_is_deleted_anyway_is_kept_in_kafka(shop: Namespace, kafka: Stock) -> None:
    """Without the chart's ValidatingAdmissionPolicy nothing keeps the resource; the event reports it."""
    shop.apply(declared("e2e-protected", deletionPolicy="Protect"))
    shop.until("Topic", "e2e-protected", "True")

    shop.delete("Topic", "e2e-protected")

    shop.until_gone("Topic", "e2e-protected")
    shop.until_events("e2e-protected", ("Warning", "TopicRetained"))
    assert kafka.exists("e2e-protected")


@pytest.mark.shows("F25")
def test_a_foreign_finalizer_holds_the_kafka_topic_too(shop: Namespace, kafka: Stock) -> None:
    """Koperator #953."""
    raw = declared("e2e-held")
    raw["metadata"]["finalizers"] = ["example.org/backup"]
    shop.apply(raw)
    shop.until("Topic", "e2e-held", "True")
    shop.delete("Topic", "e2e-held")
    shop.until("Topic", "e2e-held", "False", "Deleting")
    time.sleep(RESYNCS_S)
    assert kafka.exists("e2e-held")

    shop.kubectl(
        "patch",
        "topic",
        "e2e-held",
        "--type=merge",
        "--patch",
        json.dumps({"metadata": {"finalizers": ["steward.dev/operator"]}}),
    )

    shop.until_gone("Topic", "e2e-held")
    wait_until(lambda: not kafka.exists("e2e-held"), timeout_s=PATIENCE_S, what="the Kafka topic is gone")
