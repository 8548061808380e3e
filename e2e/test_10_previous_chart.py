"""From the last release to this one: resources of the old one continue under the new one."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.kind.programs import clients as programs
from e2e.kube import Kube
from e2e.release import Release
from e2e.resources import CLUSTERS, TOPICS, topic

NAME = "archive"

SETTLED_WITHIN_S = 300

SMALL: dict[str, Any] = {"brokers": {"replicas": 1}, "zookeeper": {"replicas": 1}, "controllers": {"replicas": 1}}
"""One pod of each: the test is about the change of charts, not about faults."""


@pytest.fixture(scope="module")
def previous(kube: Kube) -> Iterator[Release]:
    """The last release's chart, CRDs and program, in a namespace that has nothing else: no data of an earlier installation either."""
    release = Release(kube, programs().helm)
    release.uninstall_if_present()
    release.delete_namespace()
    kube.attempt("create", "namespace", chart.NAMESPACE)
    print(f"helm install of the last release to all Ready: {release.install_previous(**SMALL):.0f} s")
    yield release
    release.uninstall()
    kube.delete("namespace", chart.NAMESPACE, "--wait=false")


def test_an_upgrade_from_the_previous_chart_keeps_topics_and_records(previous: Release, clients: KafkaClients) -> None:
    """CRDs first, as documented; then `helm upgrade`. The only broker may be away for a while, its records may not.

    The operator does not replace it by itself, since its partitions would be offline; the user accepts that by deleting the pod.
    """
    previous.kube.apply(topic(NAME, partitions=3, replication_factor=1, min_isr=1))
    previous.kube.wait_condition(TOPICS, NAME, timeout_s=60)
    witness = clients.witness(NAME, min_isr=1)
    previous.install(**SMALL)
    previous.kube.wait_condition(
        CLUSTERS,
        chart.CLUSTER,
        "Settled",
        status="False",
        reason="WouldFallUnderMinIsr",
        timeout_s=SETTLED_WITHIN_S,
    )
    previous.kube.delete("pod", f"{chart.NAME}-broker-0")
    previous.kube.wait_condition(CLUSTERS, chart.CLUSTER, "Settled", timeout_s=SETTLED_WITHIN_S)
    previous.wait_ready()
    previous.kube.apply(topic(NAME, partitions=4, replication_factor=1, min_isr=1))
    previous.kube.wait_condition(TOPICS, NAME, timeout_s=60)
    report = witness.stop()

    listed = json.loads(previous.run("list", "--output=json"))
    current = yaml.safe_load((chart.CHART / "Chart.yaml").read_text("utf-8"))["version"]
    assert [release["chart"] for release in listed] == [f"{chart.NAME}-{current}"]
    assert report.wrong() == {}
