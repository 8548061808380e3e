"""The main job: resources declared with kubectl take effect on real Kafka, with data flowing at the same time.

Real Kubernetes API, ZooKeeper and brokers; controller and operator are processes. Faults and bad input have test modules of their own.
"""

import pytest
import yaml
from confluent_kafka import Producer

from lab.checks.read_back import read_all
from lab.checks.traffic import Traffic
from lab.peers.steward import ROOT
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.kubernetes import KINDS, User, cluster_text, plan_text, topic_text
from tests.integration.moves import on_1_2_3, throttled

pytestmark = [pytest.mark.kafka, pytest.mark.kubernetes]

RECORDS = 300


def example(name: str) -> str:
    """Read an example of the repository."""
    return (ROOT / "examples" / name).read_text(encoding="utf-8")


def test_the_example_is_ready_and_carries_data(held: Held, user: User) -> None:
    """The README's first step: examples/cluster.yaml and topic.yaml; acks=all, and every record is read back."""
    cluster = yaml.safe_load(example("cluster.yaml"))
    cluster["spec"]["bootstrapServers"] = held.cluster.bootstrap().split(",")
    user.apply(yaml.safe_dump(cluster), example("topic.yaml"))
    user.wait_until_ready("orders")

    producer = Producer({"bootstrap.servers": held.cluster.bootstrap(), "acks": "all"})
    for number in range(RECORDS):
        producer.produce("orders", str(number), partition=number % 6)
    assert producer.flush(PATIENCE_S) == 0
    read = read_all({"bootstrap.servers": held.cluster.bootstrap()}, "orders", range(6))

    assert {str(number).encode() for number in range(RECORDS)} == {record.value for record in read}
    assert [len(replicas) for replicas in held.cluster.assignment("orders").values()] == [3] * 6
    assert held.config_of("orders") == {"min.insync.replicas": "2"}
    assert {
        "CLUSTER": "main",
        "PARTITIONS": "6",
        "RF": "3",
        "READY": "True",
        "REASON": "AsDeclared",
    }.items() <= user.row("topics", "orders").items()


def test_the_controller_is_shown_and_not_counted_as_a_broker(held: Held, user: User) -> None:
    """It is listed so that clients reach it, and holds no replica: neither a plan nor a replication factor counts on it."""
    assert {"BROKERS": "4", "CONTROLLER": str(held.controller.controller_id), "READY": "True"}.items() <= user.row(
        "clusters", "main"
    ).items()
    assert user.read("clusters", "main")["status"]["brokerIds"] == [1, 2, 3, 4]


def test_a_topic_follows_its_declaration(held: Held, user: User) -> None:
    """Partitions grow, settings change and return to the default; observedGeneration changes after the effect (O6)."""
    user.apply(topic_text("followed", 2, config={"retention.ms": "3600000", "cleanup.policy": "compact"}))
    user.wait_until_ready("followed")
    before = held.cluster.assignment("followed")

    user.apply(topic_text("followed", 5, config={"retention.ms": "7200000"}))
    user.wait_until_ready("followed")

    after = held.cluster.assignment("followed")
    assert before.items() <= after.items()
    assert len(after) == 5
    assert held.config_of("followed") == {"retention.ms": "7200000"}
    topic = user.read("topics", "followed")
    assert topic["metadata"]["generation"] == topic["status"]["observedGeneration"]
    assert topic["status"]["partitions"] == 5


def test_a_topic_is_deleted_with_its_resource_unless_it_is_retained(held: Held, user: User) -> None:
    """DeletionPolicy Delete and Retain (O4); the resource is removed only after the Kafka topic, so its name is free again."""
    user.apply(topic_text("deleted", 3), topic_text("kept", deletionPolicy="Retain"))
    user.wait_until_ready("deleted", "kept")
    first = user.read("topics", "deleted")["status"]["topicId"]

    user.delete("topics", "deleted")
    user.delete("topics", "kept")
    assert held.topics() & {"deleted", "kept"} == {"kept"}
    user.apply(topic_text("deleted"))
    user.wait_until_ready("deleted")

    assert first != user.read("topics", "deleted")["status"]["topicId"]
    assert len(held.cluster.assignment("deleted")) == 1


def test_a_move_under_load_shows_its_progress_and_ends_at_its_target(held: Held, user: User) -> None:
    """C9 and examples/reassignment.yaml, as a user sees it: half of it waits behind a throttle, which is then removed."""
    on_1_2_3(held, user, "orders", 6)
    text = example("reassignment.yaml")
    plan = {item["partition"]: item["replicas"] for item in yaml.safe_load(text)["spec"]["plan"]}

    with Traffic(held.cluster.bootstrap(), "orders") as traffic:
        with throttled(held, "orders", 4, "0:4,1:4,2:4"):
            user.apply(text)
            half = {"STATE": "Running", "MOVED": "3/6", "READY": "False", "REASON": "Running"}
            wait_until(
                lambda: half.items() <= user.row("reassignments", "orders-to-2-3-4").items(),
                timeout_s=PATIENCE_S,
                what="half of the move in kubectl get",
                context=lambda: str(user.row("reassignments", "orders-to-2-3-4")),
            )
            during = held.cluster.assignment("orders")
        user.wait_until_ready("orders-to-2-3-4", kind="reassignments")
        after = held.cluster.assignment("orders")
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert all({1, 2, 3, 4} == set(during[partition]) for partition in (0, 1, 2))
    assert plan == after
    assert {
        "STATE": "Completed",
        "PROGRESS %": "100",
        "MOVED": "6/6",
        "READY": "True",
        "REASON": "Completed",
    }.items() <= user.row("reassignments", "orders-to-2-3-4").items()
    assert report.ok, report.summary()
    assert user.row("topics", "orders")["READY"] == "True"


@pytest.mark.parametrize("by", ["cancel", *in_soak("deletion")])
def test_a_cancelled_move_returns_to_the_old_assignment(held: Held, user: User, by: str) -> None:
    """C9, O9: partitions that have not completed return to their old replicas; Kafka does not keep their order (ReplicaAssignment.originReplicas)."""
    name = f"moved-{by}"
    on_1_2_3(held, user, name, 2)
    plan = {(name, 0): [4, 2, 3], (name, 1): [4, 3, 1]}

    with throttled(held, name, 4):
        user.apply(plan_text("away", plan))
        user.wait_for("reassignments", "away", "False", "Running")
        if by == "deletion":
            user.delete("reassignments", "away")
        else:
            user.apply(plan_text("away", plan, action="Cancel"))
            user.wait_for("reassignments", "away", "False", "Cancelled")
        # A cancellation is accepted before the added brokers have deleted their copies (ADR 4).
        wait_until(
            lambda: [sorted(replicas) for replicas in held.cluster.assignment(name).values()] == [[1, 2, 3]] * 2,
            timeout_s=PATIENCE_S,
            what=f"{name} where it was",
        )

    assert held.cluster.zookeeper.read(f"{CHROOT}/admin/reassign_partitions") is None
    held.wait_until_all_are_back(name)


def test_a_plan_follows_from_the_brokers_named_for_a_topic(held: Held, user: User) -> None:
    """The short form: replicas on one of the brokers stay there, and the resulting plan is written into the resource."""
    before = on_1_2_3(held, user, "spread", 3)
    user.apply(
        yaml.safe_dump(
            {
                "apiVersion": "steward.dev/v1alpha1",
                "kind": "Reassignment",
                "metadata": {"name": "spread-to-2-3-4"},
                "spec": {"clusterRef": {"name": "main"}, "topics": [{"name": "spread", "brokers": [2, 3, 4]}]},
            }
        )
    )
    user.wait_until_ready("spread-to-2-3-4", kind="reassignments")

    after = held.cluster.assignment("spread")
    assert [[4 if broker == 1 else broker for broker in replicas] for replicas in before.values()] == list(
        after.values()
    )
    written = user.read("reassignments", "spread-to-2-3-4")["status"]["plan"]
    assert after == {item["partition"]: item["replicas"] for item in written}


def test_an_uninstallation_leaves_nothing_behind(held: Held, user: User) -> None:
    """Everything of a namespace is deleted at once, including a running move; no finalizer stays, nor a topic."""
    on_1_2_3(held, user, "last", 2)
    user.apply(cluster_text(["127.0.0.1:1"], "never-there"), topic_text("nowhere", cluster="never-there"))
    with throttled(held, "last", 4):
        user.apply(plan_text("last-move", {("last", 0): [4, 2, 3]}))
        user.wait_for("reassignments", "last-move", "False", "Running")

        user.kubectl("delete", ",".join(KINDS), "--all", "--wait=false")
        user.wait_until_removed()

    assert "last" not in held.topics()
    assert ("Warning", "TopicKept") not in user.events()
