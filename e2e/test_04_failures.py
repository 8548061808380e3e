"""kill -9 of each kind of pod under load: nothing acknowledged is lost, and all is in sync again soon after."""

import json
from collections.abc import Iterator

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients, Witness
from e2e.conftest import unharmed
from e2e.faults import Faults
from e2e.release import Release
from e2e.resources import CLUSTERS, TOPICS, topic
from lab.processes.waiting import wait_until

NAME = "payments"

HEALED_WITHIN_S = 180.0
"""A session's end, a container's start again with kubelet's back-off, and a broker's own start on a busy machine."""


@pytest.fixture(scope="module")
def payments(release: Release) -> str:
    """A Topic of six partitions with three replicas each, at least two in sync for a write."""
    release.kube.apply(topic(NAME))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=30)
    return NAME


@pytest.fixture
def witness(payments: str, clients: KafkaClients) -> Iterator[Witness]:
    """Load on the topic, from before the fault until the end of the test, where it must have seen nothing wrong."""
    with unharmed(payments, clients) as running:
        yield running


def test_a_leaders_partitions_are_led_by_others_after_its_kill(
    payments: str, witness: Witness, release: Release, clients: KafkaClients, faults: Faults
) -> None:
    """Seen by its clients as a gap of a session and an election; then the broker is back in every ISR."""
    assert witness
    victim = clients.partitions(payments)[0].leader
    faults.kill(release.broker(victim))
    took = clients.wait_partitions(
        payments,
        lambda partitions: all(partition.leader not in {victim, -1} for partition in partitions.values()),
        timeout_s=HEALED_WITHIN_S,
        what=f"leaders other than broker {victim}",
    )
    print(f"other leaders than broker {victim} after {took:.1f} s, measured by polls of about a second")
    clients.wait_in_sync(payments, timeout_s=HEALED_WITHIN_S)


def test_another_controller_takes_over_after_the_active_ones_kill(
    payments: str, witness: Witness, release: Release, clients: KafkaClients, faults: Faults
) -> None:
    """The one on standby, or the killed one after its restart; never none for long."""
    assert witness
    epoch_before = _controller_epoch(release)
    faults.kill(release.controller(clients.describe()["controller"]))
    wait_until(
        lambda: _controller_epoch(release) > epoch_before,
        timeout_s=HEALED_WITHIN_S,
        what=f"a controller of a later epoch than {epoch_before}",
        interval_s=0.5,
    )
    release.kube.apply(topic("during-failover", partitions=1))
    release.kube.wait_condition(TOPICS, "during-failover", timeout_s=HEALED_WITHIN_S)
    clients.wait_in_sync(payments, timeout_s=HEALED_WITHIN_S)
    release.wait_ready()


def test_what_was_declared_while_the_operator_was_dead_is_done_when_it_is_back(
    release: Release, clients: KafkaClients, faults: Faults
) -> None:
    """It stores no state: all is read again."""
    faults.kill(release.pods(chart.OPERATOR)[0])
    release.kube.apply(topic("declared-in-an-outage", partitions=2))
    release.kube.wait_condition(TOPICS, "declared-in-an-outage", timeout_s=HEALED_WITHIN_S)

    assert len(clients.partitions("declared-in-an-outage")) == 2


def test_the_loss_of_one_zookeeper_server_is_no_event_for_clients(
    payments: str, witness: Witness, release: Release, clients: KafkaClients, faults: Faults
) -> None:
    """Two of three continue; a broker that was connected to the third finds another within its session."""
    assert witness
    for pod in release.pods(chart.ZOOKEEPER):
        faults.kill(pod)
        release.kube.wait_workload(chart.ZOOKEEPER, timeout_s=HEALED_WITHIN_S)
    clients.wait_in_sync(payments, timeout_s=HEALED_WITHIN_S)


def test_the_cluster_is_whole_afterwards(release: Release) -> None:
    """Every pod ready, every broker listed, nothing left to be settled."""
    release.wait_ready()
    release.kube.wait_condition(CLUSTERS, chart.CLUSTER, timeout_s=HEALED_WITHIN_S)

    assert (release.kube.get(CLUSTERS, chart.CLUSTER) or {})["status"]["brokerIds"] == [0, 1, 2]


def _controller_epoch(release: Release) -> int:
    """Return the active Steward controller, -1 when none is active at the moment or a broker is."""
    epochs = [-1]
    for pod in release.pods(chart.CONTROLLER):
        answer = release.kube.attempt("exec", pod["metadata"]["name"], "--", "steward", "controller", "state", "--json")
        state = {} if answer.returncode else json.loads(answer.stdout)
        if state.get("active"):
            epochs.append(state["controller_epoch"])
    return max(epochs)
