"""Reassignments: a replication factor is raised, and a topic moves, under load."""

import pytest

from e2e.clients import KafkaClients
from e2e.release import Release
from e2e.resources import REASSIGNMENTS, TOPICS, move, topic

pytestmark = pytest.mark.smoke

DONE_WITHIN_S = 120.0

NAME = "invoices"


@pytest.fixture(scope="module")
def invoices(release: Release) -> str:
    """A Topic of three partitions with one replica each."""
    release.kube.apply(topic(NAME, partitions=3, replication_factor=1, min_isr=1))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=DONE_WITHIN_S)
    return NAME


@pytest.mark.shows("F11")
def test_a_reassignment_raises_the_replication_factor_under_load(
    invoices: str, release: Release, clients: KafkaClients
) -> None:
    """Exactly the replicas of the plan, in its order, all in sync when it is Ready."""
    plan = {(invoices, 0): [0, 1, 2], (invoices, 1): [1, 2, 0], (invoices, 2): [2, 0, 1]}
    witness = clients.witness(invoices, min_isr=1)
    release.kube.apply(move("invoices-to-three", plan))
    release.kube.wait_condition(REASSIGNMENTS, "invoices-to-three", timeout_s=DONE_WITHIN_S)
    partitions = clients.partitions(invoices)
    report = witness.stop()

    assert plan == {(invoices, number): state.replicas for number, state in partitions.items()}
    assert all(sorted(partition.isr) == sorted(partition.replicas) for partition in partitions.values())
    assert report.wrong() == {}


def test_a_plan_with_a_broker_that_is_not_there_moves_nothing(
    invoices: str, release: Release, clients: KafkaClients
) -> None:
    """The condition names it."""
    before = clients.partitions(invoices)
    release.kube.apply(move("invoices-nowhere", {(invoices, 0): [0, 1, 7]}))
    release.kube.wait_condition(REASSIGNMENTS, "invoices-nowhere", timeout_s=DONE_WITHIN_S, status="False")

    assert "7" in release.kube.condition(REASSIGNMENTS, "invoices-nowhere")["message"]
    assert before == clients.partitions(invoices)
