"""A node is drained: its broker's leaders go first, and the broker comes back when the node does."""

from collections.abc import Iterator

import pytest

from e2e import release as chart
from e2e.clients import NOT_CLIENTS, KafkaClients, Witness
from e2e.conftest import unharmed
from e2e.release import Release
from e2e.resources import TOPICS, topic

NAME = "parcels"

BACK_WITHIN_S = 240.0
"""A broker's start on a busy machine, until all of its replicas are in sync."""

DRAINED_WITHIN_S = 240.0


@pytest.fixture(scope="module")
def parcels(release: Release) -> str:
    """A Topic of six partitions with three replicas each, at least two in sync for a write."""
    release.kube.apply(topic(NAME))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=30)
    return NAME


@pytest.fixture
def witness(parcels: str, clients: KafkaClients) -> Iterator[Witness]:
    """Load on the topic, which must have seen nothing wrong at the end of the test, and no partition under its min ISR."""
    with unharmed(parcels, clients) as running:
        yield running


@pytest.fixture
def drained(release: Release) -> Iterator[str]:
    """The node of broker 1, which is open again after the test."""
    node = release.broker(1)["spec"]["nodeName"]
    yield node
    release.kube.run("uncordon", node)
    release.wait_ready()


@pytest.mark.shows("F34")
def test_a_node_drain_ends_with_the_leaders_elsewhere_and_harms_no_client(
    parcels: str, witness: Witness, drained: str, release: Release, clients: KafkaClients
) -> None:
    """The budget refuses the eviction; the operator sees the cordoned node, has the leaders moved and deletes the pod."""
    assert witness
    pod = release.broker(1)
    options = ["--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={DRAINED_WITHIN_S:.0f}s"]
    options.append(f"--pod-selector={NOT_CLIENTS}")  # a drain does not recreate pods without a controller
    release.kube.run("drain", drained, *options, timeout_s=DRAINED_WITHIN_S + 30)
    events = release.kube.items("events")

    assert pod["metadata"]["uid"] not in _uids(release)
    assert all(partition.leader != 1 for partition in clients.partitions(parcels).values())
    assert any("Draining" in event.get("reason", "") for event in events), "the operator reports it in an event"


def test_the_broker_comes_back_when_its_node_does(parcels: str, release: Release, clients: KafkaClients) -> None:
    """Its data are on that node: it is in every ISR again."""
    release.kube.wait_workload(chart.BROKERS, timeout_s=BACK_WITHIN_S)
    clients.wait_in_sync(parcels, timeout_s=BACK_WITHIN_S)


def _uids(release: Release) -> set[str]:
    return {pod["metadata"]["uid"] for pod in release.pods(chart.BROKERS) if _ready(pod)}


def _ready(pod: dict[str, dict[str, object]]) -> bool:
    conditions = pod["status"].get("conditions", [])
    assert isinstance(conditions, list)
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
