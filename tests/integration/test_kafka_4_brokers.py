"""Stock Kafka 4.3 brokers under Steward's controllers: registration, failures of brokers and controllers, controlled shutdown."""

import re
import shutil

import pytest

from kafka_log.format.names import CLUSTER_METADATA_FOLDER
from lab.checks.traffic import Traffic
from lab.downloads.jars import OLDEST_KRAFT_VERSION
from lab.peers.kraft import KraftNode
from tests.integration.steward_controllers import steward_cluster

pytestmark = pytest.mark.kafka


CAUSED_BY_BROKERS = ("CreateTopicsRequestData", "global error: Response-level error: STALE_BROKER_EPOCH. Retrying.")
"""Creations of internal topics that a broker itself gives up (NodeToControllerRequestThread of Kafka 4.3); and directories of replicas that it
reports with the epoch of its predecessor: it takes the epoch from its metadata, where its own registration comes last
(AssignmentsManager.maybeSendAssignments)."""


def errors_about_controllers(node: KraftNode) -> list[str]:
    """Return the errors in a broker's log that its controller caused: a refused or unknown request, or a record that it cannot apply."""
    text = node.process.log_path.read_text()
    found = re.findall(r"^\[.*\] (?:ERROR|FATAL) .*$", text, re.MULTILINE)
    return [line for line in found if not any(message in line for message in CAUSED_BY_BROKERS)]


LONG_SESSION = {"broker.session.timeout.ms": "600000", "steward.broker.disconnected.session.timeout.ms": "3000"}
"""No session ends in a test unless its connection has ended (ADR 57)."""

MANY_SNAPSHOTS = {"metadata.log.max.record.bytes.between.snapshots": "100"}
"""A new broker then gets a snapshot of the metadata."""


@pytest.mark.shows("F65", "F67")
def test_brokers_register_serve_clients_shut_down_and_are_killed_under_one_controller() -> None:
    """Two brokers; what clients wrote is read back, and a broker that shuts down or is killed leaves before its session ends.

    A broker without data gets a snapshot of the metadata from the controller (KIP-630), and the records from the other broker.
    """
    with steward_cluster(controllers=1, brokers=2, settings={**LONG_SESSION, **MANY_SNAPSHOTS}) as cluster:
        known = {node.node_id: node.alive() for node in cluster.brokers.values()}
        cluster.create("orders", 3, 2, min_insync_replicas="1")
        with Traffic(cluster.bootstrap, "orders", consume=False) as traffic:
            cluster.brokers[2].stop()
            after_stop = cluster.states("orders")
            cluster.brokers[2].launch()
            cluster.brokers[2].wait_until_ready()
            cluster.wait_for_isr("orders", {1, 2})
            cluster.brokers[2].kill()
            cluster.wait_for_isr("orders", {1})
            shutil.rmtree(cluster.brokers[2].data_folder)
            cluster.brokers[2].format()
            cluster.brokers[2].launch()
            cluster.wait_for_isr("orders", {1, 2})
            report = traffic.stop()
            snapshots = list((cluster.brokers[2].data_folder / CLUSTER_METADATA_FOLDER).glob("*.checkpoint"))

        assert known == {1: {1, 2}, 2: {1, 2}}
        assert snapshots != []
        assert set(after_stop.values()) == {(1, frozenset({1}))}
        assert (report.lost, report.twice, report.errors) == ((), (), ())
        assert report.read_back == report.acked > 0
        assert [errors_about_controllers(node) for node in cluster.brokers.values()] == [[], []]


@pytest.mark.shows("F65", "F66")
def test_nothing_acknowledged_is_lost_when_the_active_controller_and_then_a_broker_die() -> None:
    """Three controllers and two brokers: another controller goes on, and moves the leaders of the broker."""
    with steward_cluster(controllers=3, brokers=2) as cluster:
        cluster.create("orders", 4, 2, min_insync_replicas="1")
        with Traffic(cluster.bootstrap, "orders", consume=False) as traffic:
            first = cluster.active()
            cluster.loop.wait(first.crash())
            second = cluster.active()
            cluster.brokers[1].kill()
            cluster.wait_for_isr("orders", {2})
            cluster.brokers[1].launch()
            cluster.loop.wait(first.begin())
            cluster.brokers[1].wait_until_ready()
            cluster.wait_for_isr("orders", {1, 2})
            report = traffic.stop()

        assert second is not first
        assert (report.lost, report.twice, report.errors) == ((), (), ())
        assert report.read_back == report.acked > 0
        assert [errors_about_controllers(node) for node in cluster.brokers.values()] == [[], []]


@pytest.mark.shows("F65", "F66")
def test_brokers_of_kafka_4_0_and_4_3_serve_together_while_a_controller_and_both_brokers_die() -> None:
    """A cluster in the middle of an upgrade: its metadata.version is that of the older release."""
    versions = {1: OLDEST_KRAFT_VERSION}
    with steward_cluster(controllers=3, brokers=2, release="4.0-IV3", versions=versions) as cluster:
        cluster.create("orders", 4, 2, min_insync_replicas="1")
        with Traffic(cluster.bootstrap, "orders", consume=False) as traffic:
            first = cluster.active()
            cluster.loop.wait(first.crash())
            for broker in (1, 2):
                cluster.brokers[broker].kill()
                cluster.wait_for_isr("orders", {3 - broker})
                cluster.brokers[broker].launch()
                cluster.brokers[broker].wait_until_ready()
                cluster.wait_for_isr("orders", {1, 2})
            report = traffic.stop()

        assert (report.lost, report.twice, report.errors) == ((), (), ())
        assert report.read_back == report.acked > 0
        assert [errors_about_controllers(node) for node in cluster.brokers.values()] == [[], []]
        log = cluster.brokers[1].process.log_path.read_text()
        assert f"Kafka version: {OLDEST_KRAFT_VERSION}" in log
