"""A cluster of Kafka 4.x in KRaft mode: its start, faults and recovery, as tests need them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from lab.kraft import CONTROLLER_ID, KraftCluster, kraft_cluster
from lab.traffic import Traffic
from lab.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def breakable() -> Iterator[KraftCluster]:
    """A cluster whose brokers may be stopped and killed."""
    with kraft_cluster((1, 2, 3), controller_id=CONTROLLER_ID) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap()})
        admin.create_topics([NewTopic("load", 3, 3, config={"min.insync.replicas": "2"})])["load"].result(PATIENCE_S)
        yield cluster


def test_the_controller_is_a_node_beside_the_brokers(breakable: KraftCluster) -> None:
    """Clients see only the brokers."""
    assert {1, 2, 3} == breakable.broker(1).alive()
    assert CONTROLLER_ID == breakable.controller_id()


def test_load_over_a_stopped_and_a_killed_broker_loses_nothing(breakable: KraftCluster) -> None:
    """They restart on their ports with their data; a killed one registers when its former session has expired."""
    with Traffic(breakable.bootstrap(), "load") as traffic:
        traffic.wait_for_acks(100)
        breakable.broker(2).restart()
        breakable.broker(3).kill()
        wait_until(lambda: breakable.broker(1).alive() == {1, 2}, timeout_s=PATIENCE_S, what="3 is seen to be away")
        breakable.broker(3).start()
        traffic.wait_for_acks(100)
        report = traffic.stop()

    assert report.ok, report
    assert report.acked == report.read_back > 200
    wait_until(breakable.know_each_other, timeout_s=PATIENCE_S, what="all are back")
