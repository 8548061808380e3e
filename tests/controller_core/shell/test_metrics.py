"""Metrics with the names of Kafka's controller metrics."""

from typing import get_args

import numpy as np
import pytest
from prometheus_client import generate_latest

from controller_core.model import Broker, Cluster
from controller_core.model.changes import PartitionStates, RequestsToBrokers
from controller_core.model.events import AllocateProducerIds, Event, RepairPartitions
from controller_core.model.quorum_events import QuorumEvent
from controller_core.model.zookeeper_changes import BrokersObserved, DeletionBlocked, DeletionStarted
from controller_core.shell.metrics import CONTROLLER_STATES, Metrics
from controller_core.zookeeper_mode.transitions import apply
from tests.controller_core.shell.zookeeper.vocabulary import read_change
from tests.controller_core.states import NewState, partition_states

WITHOUT_STATE: frozenset[type[Event]] = frozenset({AllocateProducerIds})
"""Events for which Kafka has no timer of a controller state."""
PREFIX = "kafka_controller_kafkacontroller"


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of a process that has just started."""
    return Metrics()


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 1 and 2, and four partitions: in balance, out of balance, without a leader, without a state."""
    cluster = Cluster(1000, 9)
    apply(cluster, BrokersObserved((Broker(1, 101, ()), Broker(2, 102, ()))))
    apply(cluster, read_change(cluster, "topic orders 0=1,2 1=1,2 2=1,2 3=1,2"))
    apply(cluster, read_change(cluster, "known orders-0=1/0/1,2/0 orders-1=2/0/1,2/0 orders-2=-1/0/2/0"))
    return cluster


def sample(metrics: Metrics, name: str) -> float:
    """Read one of Kafka's controller gauges."""
    value = metrics.registry.get_sample_value(f"{PREFIX}_{name}")
    assert value is not None, name
    return value


def gauges(metrics: Metrics) -> dict[str, float]:
    """Read all gauges of the cluster."""
    words = "controllerepoch activebrokercount globaltopiccount globalpartitioncount offlinepartitionscount"
    words += " preferredreplicaimbalancecount topicstodeletecount reassigningpartitionscount"
    return {name: sample(metrics, name) for name in words.split()}


def test_the_whole_cluster_is_counted(metrics: Metrics, cluster: Cluster) -> None:
    """Kafka.controller: KafkaController's gauges."""
    apply(cluster, read_change(cluster, "move orders 0=2,1"))
    metrics.cluster.update(cluster)

    expected = {
        "controllerepoch": 9,
        "activebrokercount": 2,
        "globaltopiccount": 1,
        "globalpartitioncount": 4,
        "offlinepartitionscount": 2,
        "preferredreplicaimbalancecount": 4,
        "topicstodeletecount": 0,
        "reassigningpartitionscount": 1,
    }
    assert gauges(metrics) == expected


def test_refused_and_stray_replicas_are_counted(metrics: Metrics, cluster: Cluster) -> None:
    """Replicas that a broker rejects, and logs that wait for their deletion."""
    cluster.refused_replicas = {0: {2: "INCONSISTENT_TOPIC_ID"}, 1: {1: "INCONSISTENT_TOPIC_ID", 2: "UNKNOWN"}}
    cluster.stray_replicas = {2: {3, 4}}
    metrics.cluster.update(cluster)

    counted = {
        name: metrics.registry.get_sample_value(f"steward_controller_{name}")
        for name in ("refused_replicas", "stray_replicas")
    }
    assert counted == {"refused_replicas": 3, "stray_replicas": 2}


def test_an_unregistered_leader_counts_as_offline(metrics: Metrics, cluster: Cluster) -> None:
    """Until another replica is elected."""
    apply(cluster, BrokersObserved((Broker(2, 102, ()),)))
    metrics.cluster.update(cluster)

    assert sample(metrics, "offlinepartitionscount") == 3


def test_topics_pending_deletion_are_neither_offline_nor_out_of_balance(metrics: Metrics, cluster: Cluster) -> None:
    """KafkaController.offlinePartitionCount leaves out topics that are queued for deletion: otherwise every deletion would raise an alarm."""
    apply(cluster, read_change(cluster, "queued orders"))
    apply(cluster, DeletionStarted("orders", {1: (0, 1, 2, 3)}))
    metrics.cluster.update(cluster)

    assert sample(metrics, "offlinepartitionscount") == 0
    assert sample(metrics, "preferredreplicaimbalancecount") == 0
    assert sample(metrics, "topicstodeletecount") == 1


def test_a_process_that_is_not_the_active_controller_counts_nothing(metrics: Metrics, cluster: Cluster) -> None:
    """Sums over all processes must be right."""
    metrics.cluster.update(cluster)
    metrics.cluster.update(None)

    assert set(gauges(metrics).values()) == {0.0}


def change(*states: NewState) -> PartitionStates:
    """A change of states."""
    found = partition_states(states, RequestsToBrokers.LEADER_AND_ISR)
    assert found is not None
    return found


def test_elections_are_counted_and_changes_of_an_isr_are_not(metrics: Metrics, cluster: Cluster) -> None:
    """LeaderElectionRateAndTimeMs; C7: unclean elections have their own counter."""
    rows = cluster.topics["orders"].rows.tolist()
    elected = change(NewState(rows[0], 2, 1, (2,)), NewState(rows[2], 3, 1, (3,), unclean=True))
    shrunk = change(NewState(rows[1], 2, 1, (2,)))
    leaderless = change(NewState(rows[0], -1, 2, (2,)))
    for node_metrics in (elected, shrunk, leaderless):
        metrics.count_elections(cluster, node_metrics)

    name = "kafka_controller_controllerstats"
    assert metrics.registry.get_sample_value(f"{name}_leaderelections_total") == 2
    assert metrics.registry.get_sample_value(f"{name}_uncleanleaderelections_total") == 1


def test_changes_without_states_count_no_election(metrics: Metrics, cluster: Cluster) -> None:
    """Topics, moves and deletions."""
    metrics.count_elections(cluster, read_change(cluster, "queue orders"))

    assert metrics.registry.get_sample_value("kafka_controller_controllerstats_leaderelections_total") == 0


def test_events_are_timed_by_their_kind_also_when_they_fail(metrics: Metrics) -> None:
    """From an event's arrival to its end."""
    with metrics.events.time(RepairPartitions()) as begins:
        begins()
    with pytest.raises(ZeroDivisionError), metrics.events.time(RepairPartitions()):
        raise ZeroDivisionError

    assert (
        metrics.registry.get_sample_value("steward_controller_event_seconds_count", {"event": "RepairPartitions"}) == 2
    )


def test_events_are_timed_in_kafkas_states_from_their_begin(metrics: Metrics) -> None:
    """ControllerState.rateAndTimeMetricName; the time in the queue is another metric (EventQueueTimeMs)."""
    with metrics.events.time(RepairPartitions()) as begins:
        begins()

    name = "kafka_controller_controllerstats_leaderelectionrateandtimems_count"
    assert metrics.registry.get_sample_value(name) == 1
    queue = "kafka_controller_controllereventmanager_eventqueuetimems_count"
    assert metrics.registry.get_sample_value(queue) == 1


def test_every_event_has_one_of_kafkas_states_or_is_listed_without() -> None:
    """A new event needs a decision here. The states are those of ZooKeeper mode: Kafka's KRaft controller has none."""
    assert set(get_args(Event)) == set(CONTROLLER_STATES) | WITHOUT_STATE | set(get_args(QuorumEvent))


def test_queues_are_counted_for_each_broker(metrics: Metrics) -> None:
    """ControllerChannelManager: QueueSize by broker, TotalQueueSize; a broker that left is no longer counted."""
    metrics.update_queues(4, {1: 2, 2: 3})
    metrics.update_queues(1, {2: 3})

    prefix = "kafka_controller_controllerchannelmanager"
    assert metrics.registry.get_sample_value("kafka_controller_controllereventmanager_eventqueuesize") == 1
    assert metrics.registry.get_sample_value(f"{prefix}_totalqueuesize") == 3
    assert metrics.registry.get_sample_value(f"{prefix}_queuesize", {"broker_id": "2"}) == 3
    assert metrics.registry.get_sample_value(f"{prefix}_queuesize", {"broker_id": "1"}) is None


def test_ineligible_deletions_are_counted(metrics: Metrics, cluster: Cluster) -> None:
    """TopicDeletionManager: ReplicasToDeleteCount, ReplicasIneligibleToDeleteCount, TopicsIneligibleToDeleteCount."""
    apply(cluster, BrokersObserved((Broker(2, 102, ()),)))
    apply(cluster, read_change(cluster, "queued orders"))
    apply(cluster, DeletionBlocked("orders", "brokers [1] are away"))
    metrics.cluster.update(cluster)

    counted = ("topicstodeletecount", "topicsineligibletodeletecount", "replicastodeletecount")
    assert [sample(metrics, name) for name in counted] == [1, 1, 8]
    assert sample(metrics, "replicasineligibletodeletecount") == 4


def test_all_metrics_can_be_scraped(metrics: Metrics, cluster: Cluster) -> None:
    """Prometheus' text form, with documentation."""
    metrics.cluster.update(cluster)
    text = generate_latest(metrics.registry).decode()

    assert f"# HELP {PREFIX}_offlinepartitionscount Partitions without a leader." in text
    assert np.isfinite([float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")]).all()
