"""`helm upgrade`, `helm test`, values that cannot work, and `helm uninstall`."""

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.release import Release
from e2e.resources import CLUSTERS, TOPICS, topic
from lab.processes.waiting import wait_until

NAME = "ledger"

ROLLED_WITHIN_S = 480.0
"""Three brokers, each some twenty seconds from its end until all of its replicas are in sync; controllers at the same time."""


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"brokers": {"replicas": 0}}, "replicas"),
        ({"topics": {"replicationFactor": 5}}, "replicationFactor"),
        ({"zookeeper": {"replicas": 2}}, "zookeeper"),
    ],
    ids=["no brokers", "more replicas than brokers", "an even number of ZooKeeper servers"],
)
def test_values_that_cannot_work_are_refused_by_name(
    release: Release, values: dict[str, dict[str, int]], named: str
) -> None:
    """Before anything is changed."""
    assert named in release.refusal(**values)


@pytest.mark.shows("F33")
def test_an_upgrade_restarts_all_brokers_under_load_and_loses_nothing(release: Release, clients: KafkaClients) -> None:
    """A changed setting of brokers and controllers, as `kubectl rollout restart` would be: all pods are replaced.

    The operator replaces one broker at a time and continues when its replicas are in sync, so that no partition is under its min ISR.
    """
    release.kube.apply(topic(NAME))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=30)
    before = _uids(release)
    witness = clients.witness(NAME, min_isr=2)
    release.install(kafka=chart.kafka_values(config={"log.retention.hours": 24}), controllers={"logLevel": "DEBUG"})
    wait_until(
        lambda: not before & _uids(release),
        timeout_s=ROLLED_WITHIN_S,
        what="every pod of brokers and controllers replaced",
        context=lambda: str((release.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]),
        interval_s=1.0,
    )
    release.wait_ready()
    clients.wait_in_sync(NAME, timeout_s=ROLLED_WITHIN_S)
    release.kube.wait_condition(CLUSTERS, chart.CLUSTER, "Settled", timeout_s=60)
    report = witness.stop()

    assert report.wrong() == {}
    assert report.under_min_isr == []


@pytest.mark.smoke
def test_helm_test_produces_and_consumes(release: Release) -> None:
    """The chart's own test checks whether an installation works."""
    assert "Succeeded" in release.test()


@pytest.mark.smoke
def test_uninstall_leaves_nothing_wedged(release: Release) -> None:
    """Topics that were declared can be deleted afterwards, although no operator is there to remove finalizers."""
    release.uninstall()
    release.delete_namespace()

    assert release.kube.get("namespace", chart.NAMESPACE) is None
    assert release.kube.items("clusterroles", f"app.kubernetes.io/instance={chart.NAME}") == []


def _uids(release: Release) -> set[str]:
    return {pod["metadata"]["uid"] for workload in (chart.BROKERS, chart.CONTROLLER) for pod in release.pods(workload)}
