"""A fourth broker comes, takes a topic over, gives it back, and goes."""

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.release import Release
from e2e.resources import CLUSTERS, REASSIGNMENTS, TOPICS, move_topics, topic
from lab.processes.waiting import wait_until

NAME = "shipments"

DONE_WITHIN_S = 240.0


@pytest.fixture(scope="module")
def shipments(release: Release) -> str:
    """A Topic of four partitions on brokers 0, 1 and 2."""
    release.kube.apply(topic(NAME, partitions=4))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=30)
    return NAME


def test_a_topic_moves_to_a_new_broker_under_load(shipments: str, release: Release, clients: KafkaClients) -> None:
    """`helm upgrade` with one broker more, then a Reassignment onto brokers 1, 2 and 3."""
    release.install(brokers={"replicas": 4})
    wait_until(
        lambda: (release.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]["brokerIds"] == [0, 1, 2, 3],
        timeout_s=DONE_WITHIN_S,
        what="broker 3 listed",
        interval_s=0.5,
    )
    witness = clients.witness(shipments, min_isr=2)
    release.kube.apply(move_topics("shipments-to-three", {shipments: [1, 2, 3]}))
    release.kube.wait_condition(REASSIGNMENTS, "shipments-to-three", timeout_s=DONE_WITHIN_S)
    report = witness.stop()

    assert all(sorted(partition.replicas) == [1, 2, 3] for partition in clients.partitions(shipments).values())
    assert report.wrong() == {}


@pytest.mark.shows("F21")
def test_scaling_in_is_refused_while_the_broker_holds_replicas(shipments: str, release: Release) -> None:
    """The condition names them."""
    release.upgrade(brokers={"replicas": 3})
    release.kube.wait_condition(
        CLUSTERS, chart.CLUSTER, "Scaled", timeout_s=DONE_WITHIN_S, status="False", reason="ScaleInRefused"
    )

    assert shipments in release.kube.condition(CLUSTERS, chart.CLUSTER, "Scaled")["message"]
    assert len(release.pods(chart.BROKERS)) == 4


@pytest.mark.shows("F21")
def test_the_pod_of_a_drained_broker_is_removed(shipments: str, release: Release, clients: KafkaClients) -> None:
    """Once its replicas are elsewhere, the pod that was declared away goes."""
    witness = clients.witness(shipments, min_isr=2)
    held = [name for name, partitions in clients.describe()["topics"].items() if _on(3, partitions)]
    release.kube.apply(move_topics("three-to-none", {name: [0, 1, 2] for name in held}))
    release.kube.wait_condition(REASSIGNMENTS, "three-to-none", timeout_s=DONE_WITHIN_S)
    wait_until(
        lambda: len(release.pods(chart.BROKERS)) == 3,
        timeout_s=DONE_WITHIN_S,
        what="three pods of brokers",
        context=lambda: str((release.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]),
        interval_s=0.5,
    )
    release.kube.wait_condition(CLUSTERS, chart.CLUSTER, "Scaled", timeout_s=DONE_WITHIN_S)
    report = witness.stop()

    assert report.wrong() == {}


def _on(broker_id: int, partitions: dict[str, dict[str, list[int]]]) -> bool:
    return any(broker_id in partition["replicas"] for partition in partitions.values())
