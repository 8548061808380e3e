"""The operator on a real API server and a stock Kafka cluster with its own controller (mode external)."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_cluster, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.stock import Brokers, Stock

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]


@pytest.mark.shows("F1", "F3")
def test_a_topic_is_created_extended_changed_and_deleted(
    shop: Namespace, kafka: Stock, operator: StewardOperator
) -> None:
    """Creation to Ready takes two writes; partitions and settings change; the Kafka topic is deleted with the resource."""
    before = _topic_writes(operator)
    shop.apply(raw_topic("e2e-life", config={"retention.ms": "60000", "min.insync.replicas": "2"}))
    shop.until("Topic", "e2e-life", "True", "AsDeclared")
    # The operator counts a write when it has the answer, which may be after the test has read the status.
    wait_until(lambda: _topic_writes(operator) - before >= 2, timeout_s=PATIENCE_S, what="both writes are answered")
    assert _topic_writes(operator) - before == 2
    # Brokers learn of a topic one after the other; the operator reads it from the controller.
    wait_until(lambda: len(kafka.replicas("e2e-life")) == 6, timeout_s=PATIENCE_S, what="all brokers know the topic")
    assert kafka.config("e2e-life") == {"retention.ms": "60000", "min.insync.replicas": "2"}
    found = json.dumps(shop.get("Topic", "e2e-life"))
    assert "kopf" not in found
    row = shop.kubectl("get", "topic", "e2e-life").splitlines()[1].split()
    assert row[:6] == ["e2e-life", "main", "6", "3", "True", "AsDeclared"]

    shop.apply(
        raw_topic("e2e-life", partitions=8, config={"retention.ms": "70000", "cleanup.policy": "compact, delete"})
    )
    wait_until(
        lambda: shop.status("Topic", "e2e-life").get("observedGeneration") == 2,
        timeout_s=PATIENCE_S,
        what="the change has taken effect",
    )
    wait_until(lambda: len(kafka.replicas("e2e-life")) == 8, timeout_s=PATIENCE_S, what="all brokers know them")
    assert kafka.config("e2e-life") == {"retention.ms": "70000", "cleanup.policy": "compact,delete"}

    shop.delete("Topic", "e2e-life")
    shop.until_gone("Topic", "e2e-life")
    wait_until(lambda: not kafka.exists("e2e-life"), timeout_s=PATIENCE_S, what="the Kafka topic is gone")


def test_a_cluster_status_has_its_brokers_and_controller(shop: Namespace, brokers: Brokers) -> None:
    """Number and ids of brokers, the controller's id, and Kafka's cluster id."""
    status = shop.status("Cluster", "main")

    assert (status["brokers"], status["brokerIds"]) == (3, [1, 2, 3])
    assert brokers.controller_id() == status["controllerId"]
    assert status["clusterId"]


def test_a_cluster_status_has_its_versions(shop: Namespace) -> None:
    """The brokers' software version and the inter-broker protocol."""
    versions = shop.status("Cluster", "main")["versions"]

    assert (versions["software"], versions["interBrokerProtocol"]) == ("3.9", "3.9-IV0")
    assert "metadataVersion" not in versions


@pytest.mark.parametrize(
    ("name", "spec", "reason", "message"),
    [
        ("rf", {"replicationFactor": 4}, "NotEnoughBrokers", "Replication factor: 4 larger than available brokers: 3."),
        ("key", {"config": {"no.such": "1"}}, "InvalidConfig", "Unknown topic config name: no.such"),
        (
            "value",
            {"config": {"retention.ms": "long"}},
            "InvalidConfig",
            "Invalid value long for configuration retention.ms: Not a number of type LONG",
        ),
    ],
)
@pytest.mark.shows("F31")
def test_bad_input_is_reported_with_the_brokers_message(
    shop: Namespace, kafka: Stock, name: str, spec: dict[str, object], reason: str, message: str
) -> None:
    """Ready has the reason and the message, nothing is created, and one event is posted. A corrected spec becomes Ready."""
    shop.apply(raw_topic(f"e2e-bad-{name}", **spec))

    shop.until("Topic", f"e2e-bad-{name}", "False", reason, message)
    assert not kafka.exists(f"e2e-bad-{name}")
    shop.apply(raw_topic(f"e2e-bad-{name}", replicationFactor=1))
    shop.until("Topic", f"e2e-bad-{name}", "True")
    shop.until_events(f"e2e-bad-{name}", ("Warning", reason), ("Normal", "AsDeclared"))


def test_a_colliding_name_is_reported(shop: Namespace) -> None:
    """Kafka rejects it: a.b and a_b would have the same metric names."""
    shop.apply(raw_topic("e2e.collides"))
    shop.until("Topic", "e2e.collides", "True")
    shop.apply(raw_topic("second", topicName="e2e_collides"))

    shop.until("Topic", "second", "False", "InvalidTopic")


@pytest.mark.shows("F6")
def test_drift_is_reverted_and_undeclared_settings_are_kept(shop: Namespace, kafka: Stock) -> None:
    """At the next resync, without a write to Kubernetes."""
    shop.apply(raw_topic("e2e-drift", config={"retention.ms": "60000"}))
    shop.until("Topic", "e2e-drift", "True")
    found = shop.get("Topic", "e2e-drift")
    assert found is not None
    kafka.set_config("e2e-drift", "segment.ms", "90000")
    kafka.set_config("e2e-drift", "retention.ms", "1")

    wanted = {"retention.ms": "60000", "segment.ms": "90000"}
    wait_until(lambda: kafka.config("e2e-drift") == wanted, timeout_s=PATIENCE_S, what="the drift is reverted")
    again = shop.get("Topic", "e2e-drift")
    assert again is not None
    assert found["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


@pytest.mark.shows("F28", "F2")
def test_the_oldest_topic_wins_and_the_next_takes_over(shop: Namespace, kafka: Stock) -> None:
    """O5."""
    shop.apply(raw_topic("e2e-first", topicName="e2e-shared", partitions=2))
    shop.until("Topic", "e2e-first", "True")
    time.sleep(1.1)  # creationTimestamp has whole seconds
    shop.apply(raw_topic("e2e-second", topicName="e2e-shared", partitions=3))

    shop.until("Topic", "e2e-second", "False", "Conflict")
    assert f"{shop.name}/e2e-first" in shop.ready("Topic", "e2e-second")[2]
    assert len(kafka.replicas("e2e-shared")) == 2
    shop.delete("Topic", "e2e-first")
    shop.until("Topic", "e2e-second", "True")
    wait_until(lambda: len(kafka.replicas("e2e-shared")) == 3, timeout_s=PATIENCE_S, what="it was recreated")


@pytest.mark.shows("F11", "F20", "F41", "E15")
def test_a_reassignment_moves_partitions_and_shows_its_progress(shop: Namespace, kafka: Stock) -> None:
    """It ends Ready with exactly the target replicas; the status keeps the base; it is deleted after its time to live."""
    kafka.create("e2e-move", [[1, 2]] * 4)
    kafka.fill("e2e-move", 50)
    plan = raw_plan("e2e-move", p0=[2, 3], p1=[3, 2], p2=[3, 1], p3=[1, 2])
    shop.apply(raw_reassignment(plan=plan))

    shop.until("Reassignment", "move", "True", "Completed")

    target = [[2, 3], [3, 2], [3, 1], [1, 2]]
    wait_until(lambda: kafka.replicas("e2e-move") == target, timeout_s=PATIENCE_S, what="all brokers know the target")
    status = shop.status("Reassignment", "move")
    assert (
        status["state"],
        status["progress"]["percent"],
        status["progress"]["partitions"],
    ) == ("Completed", 100, "4/4")
    assert [item["replicas"] for item in status["base"]] == [[1, 2]] * 4
    row = shop.kubectl("get", "reassignment", "move").splitlines()[1].split()
    assert row[:5] == ["move", "main", "Completed", "100", "4/4"]
    assert row[6:8] == ["True", "Completed"]
    moved, _, total = row[5].partition("/")
    assert moved == total != "0B"
    shop.until_events("move", ("Normal", "Running"), ("Normal", "Completed"))
    shop.apply(raw_reassignment(plan=plan, ttlSecondsAfterFinished=1))
    shop.until_gone("Reassignment", "move")


@pytest.mark.shows("F17", "F19", "E3")
def test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled(
    shop: Namespace, kafka: Stock, operator: StewardOperator
) -> None:
    """Kill -9 while it runs; a second plan for the same partition; action Cancel."""
    kafka.create("e2e-slow", [[1, 2], [1, 2]])
    kafka.fill("e2e-slow", 400)
    kafka.throttle(3, "e2e-slow", 1000)
    try:
        plan = raw_plan("e2e-slow", p0=[2, 3], p1=[2, 1])
        shop.apply(raw_reassignment(plan=plan))
        shop.until("Reassignment", "move", "False", "Running", "1 of 2 partitions have completed.")
        operator.kill()
        operator.start()
        shop.apply(raw_reassignment("other", plan=raw_plan("e2e-slow", p0=[1, 3])))
        shop.until("Reassignment", "other", "False", "Overlap")
        assert shop.status("Reassignment", "other")["state"] == "Failed"
        assert shop.ready("Reassignment", "move")[:2] == ("False", "Running")

        shop.apply(raw_reassignment(plan=plan, action="Cancel"))
        shop.until("Reassignment", "move", "False", "Cancelled")

        def is_cancelled() -> bool:
            first, second = kafka.replicas("e2e-slow")
            return (set(first), second) == ({1, 2}, [2, 1])

        wait_until(is_cancelled, timeout_s=PATIENCE_S, what="completed moves stay, the others are undone")
    finally:
        kafka.throttle(3, "e2e-slow", None)


def test_a_reassignment_deleted_while_it_runs_is_cancelled_first(shop: Namespace, kafka: Stock) -> None:
    """The finalizer stays until none of its moves runs."""
    kafka.create("e2e-stop", [[1, 2]])
    kafka.fill("e2e-stop", 400)
    kafka.throttle(3, "e2e-stop", 1000)
    try:
        shop.apply(raw_reassignment(topics=[{"name": "e2e-stop", "brokers": [2, 3]}]))
        shop.until("Reassignment", "move", "False", "Running")
        shop.delete("Reassignment", "move")
        shop.until_gone("Reassignment", "move")

        wait_until(
            lambda: {1, 2} == set(kafka.replicas("e2e-stop")[0]),
            timeout_s=PATIENCE_S,
            what="the partition has its previous replicas",
        )
    finally:
        kafka.throttle(3, "e2e-stop", None)


@pytest.mark.parametrize(
    ("reason", "plan"),
    [
        ("UnknownTopic", raw_plan("e2e-nowhere", p0=[1, 2])),
        ("UnknownPartition", raw_plan("e2e-plans", p0=[2, 3], p7=[1, 2])),
        ("UnknownBroker", raw_plan("e2e-plans", p0=[2, 9])),
    ],
)
def test_a_bad_plan_has_a_reason_and_moves_nothing(
    shop: Namespace, kafka: Stock, reason: str, plan: list[dict[str, object]]
) -> None:
    """Each error has its own reason."""
    if not kafka.exists("e2e-plans"):
        kafka.create("e2e-plans", [[1, 2], [1, 2]])
    shop.apply(raw_reassignment(plan=plan))

    shop.until("Reassignment", "move", "False", reason)

    assert "nothing is moved" in shop.ready("Reassignment", "move")[2].lower()
    assert kafka.replicas("e2e-plans") == [[1, 2], [1, 2]]


def test_an_unreachable_cluster_is_unknown_with_one_event_until_its_address_is_corrected(
    shop: Namespace, kafka: Stock
) -> None:
    """Ready=Unknown, retried with backoff, one event."""
    shop.apply(raw_cluster("away", "127.0.0.1:1"))
    shop.apply(raw_topic("e2e-away", cluster="away"))
    shop.until("Cluster", "away", "Unknown", "ClusterUnreachable")
    shop.until("Topic", "e2e-away", "Unknown", "ClusterUnreachable")
    message = "No broker of Cluster away responds at 127.0.0.1:1."
    assert [shop.ready("Cluster", "away")[2], shop.ready("Topic", "e2e-away")[2]] == [message, message]
    time.sleep(5)  # some more attempts, none of which may post an event
    shop.until_events("away", ("Warning", "ClusterUnreachable"))
    shop.until_events("e2e-away", ("Warning", "ClusterUnreachable"))

    shop.apply(raw_cluster("away", *kafka.bootstrap.split(",")))

    shop.until("Topic", "e2e-away", "True")


def test_a_topic_without_its_cluster_waits_for_it(shop: Namespace, kafka: Stock) -> None:
    """The order of apply does not matter."""
    shop.apply(raw_topic("e2e-early", cluster="later"))
    shop.until("Topic", "e2e-early", "Unknown", "ClusterNotFound")

    shop.apply(raw_cluster("later", *kafka.bootstrap.split(",")))

    shop.until("Topic", "e2e-early", "True")


def test_an_operator_killed_while_it_creates_many_topics_converges(shop: Namespace, operator: StewardOperator) -> None:
    """Kill -9 twice during the creation; all topics become Ready."""
    count = 40
    texts = [raw_topic(f"e2e-many-{index}", partitions=1, replicationFactor=1) for index in range(count)]
    items = [{**text, "metadata": {**text["metadata"], "namespace": shop.name}} for text in texts]
    shop.api.kubectl(
        "create", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), check=True
    )
    for pause_s in (0.1, 0.4):
        time.sleep(pause_s)
        operator.kill()
        operator.start()

    def all_ready() -> bool:
        return all(shop.ready("Topic", f"e2e-many-{index}")[0] == "True" for index in range(count))

    wait_until(all_ready, timeout_s=PATIENCE_S, what="all topics are ready")


@pytest.mark.shows("F37")
def test_probes_and_metrics_are_served(operator: StewardOperator, shop: Namespace) -> None:
    """/healthz (polled by the lab), /readyz, /metrics with the names that alerts use."""
    assert shop.ready("Cluster", "main")[0] == "True"
    port, _ = operator._probe
    ready = http_get(port, "/readyz")
    assert ready is not None
    assert ready.status == 200
    text = operator.metrics()
    for name in (
        "steward_reconciliations_total",
        "steward_reconciliations_successful_total",
        "steward_reconciliations_failed_total",
        "steward_reconciliations_duration_seconds_bucket",
        "steward_reconciliations_queue_size",
        "steward_admin_call_duration_seconds_count",
        "steward_kubernetes_call_duration_seconds_count",
    ):
        assert name in text


def test_sigterm_ends_the_operator_with_exit_code_0(
    api: KubernetesApi, operator: StewardOperator, tmp_path: Path
) -> None:
    """The process stops gracefully."""
    assert operator.ready
    other = StewardOperator(api.kubeconfig_for(OPERATOR), tmp_path)
    other.start()

    assert other.stop() == 0
    other.close()


def test_an_operator_without_access_logs_it_and_exits(api: KubernetesApi, tmp_path: Path) -> None:
    """Kubernetes restarts the pod, and the log states the reason."""
    unauthorized = json.loads(api.kubeconfig_for(OPERATOR).read_text(encoding="utf-8"))
    unauthorized["users"][0]["user"]["token"] = "wrong"
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(unauthorized), encoding="utf-8")
    process = StewardOperator(path, tmp_path)
    process.launch()
    wait_until(lambda: not process.process.running, timeout_s=PATIENCE_S, what="the process has exited")

    assert "Operator cannot start" in process.process.log_text()
    process.close()


def _topic_writes(operator: StewardOperator) -> float:
    names = ("patch_topic", "patch_topic_status")
    sample = 'steward_kubernetes_call_duration_seconds_count{{call="{}"}}'
    return sum(operator.metric(sample.format(name)) or 0.0 for name in names)
