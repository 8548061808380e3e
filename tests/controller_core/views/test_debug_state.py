"""`/state`: brokers, health counts, running operations and what they wait for."""

import json

import pytest

from controller_core.model import Broker, Cluster, Endpoint, Move
from controller_core.model.zookeeper_changes import BrokersObserved, ControlledShutdownStarted, DeletionStarted
from controller_core.views import state_schema
from controller_core.views.debug_state import cluster_document, standby_document, topic_document
from controller_core.zookeeper_mode.transitions import apply
from tests.controller_core.shell.zookeeper.vocabulary import read_change


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 1 and 2; partitions in balance, out of sync, without a leader, and without a state."""
    cluster = Cluster(1000, 9)
    brokers = Broker(1, 101, (Endpoint("CLIENT", "host1", 9092, "PLAINTEXT"),), "a"), Broker(2, 102, ())
    apply(cluster, BrokersObserved(brokers))
    apply(cluster, read_change(cluster, "topic orders id=7 0=1,2 1=2,1 2=1,2 3=1,2"))
    apply(cluster, read_change(cluster, "known orders-0=1/4/1,2/6 orders-1=1/0/1/0 orders-2=-1/0/2/0"))
    return cluster


def test_partitions_are_counted_and_brokers_are_listed(cluster: Cluster) -> None:
    """The counts are those of kafka-topics and the metrics."""
    apply(cluster, ControlledShutdownStarted(2))

    document = cluster_document(cluster, "cluster-of-tests", {1: 3}, waiting_events=2)

    assert (
        document["active"],
        document["cluster_id"],
        document["controller_id"],
        document["controller_epoch"],
        document["waiting_events"],
    ) == (True, "cluster-of-tests", 1000, 9, 2)
    assert document["partitions"] == {"in_service": 4, "offline": 2, "under_replicated": 3, "not_led_by_preferred": 3}
    assert document["offline_partitions"] == ["orders-2", "orders-3"]
    assert document["brokers"] == [
        {
            "id": 1,
            "epoch": 101,
            "rack": "a",
            "state": "live",
            "endpoints": ["CLIENT://host1:9092"],
            "leads": 2,
            "in_sync": 2,
            "replicas": 4,
            "queued_requests": 3,
        },
        {
            "id": 2,
            "epoch": 102,
            "rack": None,
            "state": "shutting down",
            "endpoints": [],
            "leads": 0,
            "in_sync": 2,
            "replicas": 4,
            "queued_requests": 0,
        },
    ]


def test_running_operations_list_the_brokers_they_wait_for(cluster: Cluster) -> None:
    """The reason of a stuck move or a blocked deletion is shown."""
    apply(cluster, read_change(cluster, "topic old 0=1,2"))
    apply(cluster, read_change(cluster, "move orders 0=2,1"))
    apply(cluster, read_change(cluster, "queued old"))
    apply(cluster, DeletionStarted("old", {2: (0,)}))
    cluster.stray_replicas[0] = {4, 3}
    cluster.refused_replicas[1] = {2: "INCONSISTENT_TOPIC_ID"}

    document = cluster_document(cluster, "", {}, 0)

    (move,) = document["reassignments"]["listed"]
    assert (move["partition"], move["stage"], move["replicas"]) == ("orders-0", "planned", [2, 1])
    assert document["deletions"]["listed"] == [{"topic": "old", "started": True, "blocked": "", "waits_for": {"2": 1}}]
    assert document["stray_replicas"] == {"in_all": 1, "listed": [{"partition": "orders-0", "brokers": [3, 4]}]}
    refused = [{"partition": "orders-1", "broker": 2, "error": "INCONSISTENT_TOPIC_ID"}]
    assert document["refused_replicas"] == {"in_all": 1, "listed": refused}
    assert json.loads(json.dumps(document)) == document


def test_lists_are_truncated_and_contain_their_full_length(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """200,000 offline partitions are too many for a document."""
    monkeypatch.setattr(state_schema, "MAX_LISTED", 1)
    apply(cluster, read_change(cluster, "move orders 0=2,1 1=1,2"))

    document = cluster_document(cluster, "", {}, 0)

    assert (document["reassignments"]["in_all"], len(document["reassignments"]["listed"])) == (2, 1)
    assert (document["partitions"]["offline"], document["offline_partitions"]) == (2, ["orders-2"])


def test_an_empty_cluster_has_no_entries() -> None:
    """No brokers and no topics."""
    document = cluster_document(Cluster(1000, 1), "", {}, 0)

    assert document["partitions"] == {"in_service": 0, "offline": 0, "under_replicated": 0, "not_led_by_preferred": 0}


def test_a_topic_document_lists_all_partitions(cluster: Cluster) -> None:
    """Kafka's names of the states."""
    document = topic_document(cluster, "orders")

    assert document is not None
    assert (document["partitions_in_all"], document["topic_id"]) == (4, "00000000-0000-0000-0000-000000000007")
    states = ["OnlinePartition", "OnlinePartition", "OfflinePartition", "NewPartition"]
    assert states == [partition["state"] for partition in document["partitions"]]
    assert document["partitions"][0] == {
        "partition": 0,
        "state": "OnlinePartition",
        "leader": 1,
        "leader_epoch": 4,
        "partition_epoch": 6,
        "isr": [1, 2],
        "replicas": [1, 2],
    }


def test_an_unknown_topic_has_no_document(cluster: Cluster) -> None:
    """Such as a mistyped name."""
    assert topic_document(cluster, "order") is None


def test_a_standby_controller_reports_that_it_is_not_active() -> None:
    """A standby knows nothing about partitions."""
    assert standby_document(1000) == {"active": False, "controller_id": 1000}


def test_replicas_that_a_reassignment_adds_are_not_under_replicated(cluster: Cluster) -> None:
    """KIP-455: `orders-1` has broker 1 in sync, and broker 2 is being added."""
    row = cluster.row_of("orders", 1)
    assert row is not None
    before = cluster_document(cluster, "", {}, 0)["partitions"]["under_replicated"]

    cluster.moves[row] = Move((2, 1), adding=(2,), removing=())

    assert cluster_document(cluster, "", {}, 0)["partitions"]["under_replicated"] == before - 1
