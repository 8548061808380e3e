"""Deletion of a tenant's namespace with Topics in it: no finalizer is left."""

import time

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.faults import Faults
from e2e.release import Release
from e2e.resources import CLUSTERS, TOPICS, cluster, namespace, topic
from lab.processes.waiting import wait_until

GONE_WITHIN_S = 60.0

TENANT = "tenant"

TOPICS_OF_TENANT = 5


@pytest.mark.shows("E7")
def test_a_namespace_with_topics_in_it_is_gone_within_a_minute(release: Release, clients: KafkaClients) -> None:
    """Its topics go from Kafka too, as they were declared to."""
    tenant = _tenant(release)
    took = _deleted(release, TENANT)
    print(f"namespace with {TOPICS_OF_TENANT} Topics deleted after {took:.1f} s")

    assert took < GONE_WITHIN_S
    assert tenant
    wait_until(
        lambda: not [name for name in clients.describe()["topics"] if name.startswith(TENANT)],
        timeout_s=GONE_WITHIN_S,
        what="the tenant's topics deleted from Kafka",
        interval_s=0.5,
    )


@pytest.mark.shows("E7")
def test_a_namespace_is_deleted_while_a_broker_is_down(release: Release, faults: Faults) -> None:
    """Kafka keeps a topic until its last replica is deleted; the namespace does not wait for that."""
    _tenant(release)
    victim = release.broker(2)
    faults.pause(victim)
    try:
        took = _deleted(release, TENANT)
    finally:
        faults.resume(victim)
    print(f"the same while a broker was frozen: {took:.1f} s")
    release.wait_ready()

    assert took < GONE_WITHIN_S


def _tenant(release: Release) -> list[str]:
    names = [f"{TENANT}-{number}" for number in range(TOPICS_OF_TENANT)]
    kube = release.kube.within(TENANT)
    kube.apply(namespace(TENANT))
    kube.apply(cluster(chart.CLUSTER), *(topic(name, partitions=2) for name in names))
    kube.wait_condition(CLUSTERS, chart.CLUSTER, timeout_s=30)
    for name in names:
        kube.wait_condition(TOPICS, name, timeout_s=60)
    return names


def _deleted(release: Release, name: str) -> float:
    started = time.monotonic()
    release.kube.run("delete", "namespace", name, f"--timeout={GONE_WITHIN_S * 2:.0f}s", timeout_s=GONE_WITHIN_S * 3)
    return time.monotonic() - started
