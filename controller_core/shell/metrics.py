"""Metrics of the controller, with the names of Kafka's controller metrics in Prometheus' form.

As in Kafka, topics that are pending deletion are neither offline nor out of balance, and a process that is not the active controller
reports 0 for the cluster.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, Cluster, changes, events, zookeeper_events
from controller_core.views.service_health import service_health

PREFIX = "kafka_controller_kafkacontroller"
STATS_PREFIX = "kafka_controller_controllerstats"
EVENTS_PREFIX = "kafka_controller_controllereventmanager"
CHANNELS_PREFIX = "kafka_controller_controllerchannelmanager"
EVENT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Buckets around the controller's target: 50 ms from a broker's failure until the new leaders are notified."""

CONTROLLER_STATES: Mapping[type[events.Event], str] = {
    zookeeper_events.Activated: "controllerchange",
    zookeeper_events.BrokersRead: "leaderelection",
    events.RepairPartitions: "leaderelection",
    zookeeper_events.TopicsRead: "topicchange",
    events.CreateTopics: "topicchange",
    events.CreatePartitions: "topicchange",
    zookeeper_events.DeletionsRead: "topicdeletion",
    events.DeleteTopics: "topicdeletion",
    zookeeper_events.AdvanceDeletions: "topicdeletion",
    zookeeper_events.StopReplicaAnswered: "topicdeletion",
    zookeeper_events.TopicDeletionRead: "topicdeletion",
    zookeeper_events.ResumeTopics: "topicdeletion",
    events.AlterReassignments: "partitionreassignment",
    events.AdvanceMoves: "partitionreassignment",
    zookeeper_events.RepairAssignments: "partitionreassignment",
    zookeeper_events.ReassignmentRequestsRead: "partitionreassignment",
    zookeeper_events.ReviewReassignmentRequests: "partitionreassignment",
    events.ElectLeaders: "manualleaderbalance",
    zookeeper_events.ElectionRequestsRead: "manualleaderbalance",
    zookeeper_events.RemoveElectionRequests: "manualleaderbalance",
    events.BalanceLeaders: "autoleaderbalance",
    events.AlterPartition: "isrchange",
    zookeeper_events.IsrChangesRead: "isrchange",
    zookeeper_events.LogDirsFailed: "logdirchange",
    zookeeper_events.TopicsChanged: "topicchange",
    zookeeper_events.AssignTopicIds: "topicchange",
    zookeeper_events.UncleanElectionRead: "uncleanleaderelectionenable",
    zookeeper_events.LeaderAndIsrAnswered: "leaderandisrresponsereceived",
    zookeeper_events.ControlledShutdown: "controlledshutdown",
    zookeeper_events.LeaderAndIsrRejected: "leaderandisrresponsereceived",
    zookeeper_events.ReplaceStaleLogs: "leaderandisrresponsereceived",
    zookeeper_events.StrayLogsFound: "topicdeletion",
    events.UnregisterBroker: "topicdeletion",
}
"""Kafka's ControllerState by event, as in the names of its timers (LeaderElectionRateAndTimeMs and the others). Events that Kafka
does not time, or times as Idle, are only in steward_controller_event_seconds."""


class PartitionGauges:
    """Gauges of topics and partitions, of both modes."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, documentation: str) -> Gauge:
            return Gauge(f"{PREFIX}_{name}", documentation, registry=registry)

        self._topics = gauge("globaltopiccount", "Topics.")
        self._partitions = gauge("globalpartitioncount", "Partitions.")
        self._offline = gauge("offlinepartitionscount", "Partitions without a leader.")
        self._imbalance = gauge(
            "preferredreplicaimbalancecount", "Partitions whose leader is not the preferred replica."
        )

    def update(self, cluster: Cluster | None) -> None:
        """Compute all gauges in a few passes over the columns; None: they are 0."""
        if cluster is None:
            for gauge in (self._topics, self._partitions, self._offline, self._imbalance):
                gauge.set(0)
            return
        health = service_health(cluster)
        self._topics.set(len(cluster.topics))
        self._partitions.set(len(cluster.columns.used()))
        self._offline.set(int(health.flags.offline.sum()))
        self._imbalance.set(int(health.flags.not_led_by_preferred.sum()))


class ClusterGauges:
    """Gauges of the cluster's state; all are 0 while another process is the active controller."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._all: list[Gauge] = []
        kafka, own = f"{PREFIX}_", "steward_controller_"
        self._epoch = self._add(f"{kafka}controllerepoch", "Epoch of the active term.")
        self._brokers = self._add(f"{kafka}activebrokercount", "Registered brokers.")
        self._unreachable = self._add(
            f"{own}unreachable_brokers", "Registered brokers without the inter-broker listener: they count as down."
        )
        self._partitions = PartitionGauges(registry)
        self._to_delete = self._add(f"{kafka}topicstodeletecount", "Topics queued for deletion.")
        self._topics_ineligible = self._add(
            f"{kafka}topicsineligibletodeletecount",
            "Topics queued for deletion whose deletion cannot proceed at present.",
        )
        self._replicas_to_delete = self._add(f"{kafka}replicastodeletecount", "Replicas of topics queued for deletion.")
        self._replicas_ineligible = self._add(
            f"{kafka}replicasineligibletodeletecount",
            "Replicas of topics queued for deletion whose broker is down, or failed to delete them.",
        )
        self._moves = self._add(f"{kafka}reassigningpartitionscount", "Partitions with a running reassignment.")
        self._refused = self._add(
            f"{own}refused_replicas", "Replicas that their live broker refuses; another replica leads where one can."
        )
        self._stray_replicas = self._add(
            f"{own}stray_replicas", "Logs outside the assignment that brokers still have to delete."
        )

    def _add(self, name: str, documentation: str) -> Gauge:
        gauge = Gauge(name, documentation, registry=self._registry)
        self._all.append(gauge)
        return gauge

    def update(self, cluster: Cluster | None) -> None:
        """Compute all gauges in a few passes over the columns; None: another process is the active controller."""
        self._partitions.update(cluster)
        if cluster is None:
            for gauge in self._all:
                gauge.set(0)
            return
        self._epoch.set(cluster.controller_epoch)
        self._brokers.set(len(cluster.brokers))
        self._unreachable.set(len(cluster.unreachable))
        self._update_deletions(cluster)
        self._moves.set(len(cluster.moves))
        self._refused.set(sum(map(len, cluster.refused_replicas.values())))
        self._stray_replicas.set(sum(map(len, cluster.stray_replicas.values())))

    def _update_deletions(self, cluster: Cluster) -> None:
        columns, registered = cluster.columns, cluster.columns.flags(cluster.unfenced())
        rows = [cluster.topics[name].rows for name in cluster.deletions]
        replicas = columns.replicas[np.concatenate(rows)] if rows else np.zeros((0, 1), dtype=np.int32)
        refused = [len(cluster.topics[name].rows) for name, deletion in cluster.deletions.items() if deletion.refused]
        self._to_delete.set(len(cluster.deletions))
        self._topics_ineligible.set(sum(bool(deletion.blocked) for deletion in cluster.deletions.values()))
        self._replicas_to_delete.set(int((replicas != NO_BROKER).sum()))
        self._replicas_ineligible.set(int((~registered[replicas] & (replicas != NO_BROKER)).sum()) + sum(refused))


def unclean_elections(registry: CollectorRegistry) -> Counter:
    """Return the counter of unclean elections, of both modes."""
    documentation = "Leaders elected from outside the ISR."
    return Counter(f"{STATS_PREFIX}_uncleanleaderelections", documentation, registry=registry)


def elected(cluster: Cluster, change: changes.PartitionStates) -> BoolArray:
    """Return which partitions of a change get another leader; to be called before the change is applied."""
    found: BoolArray = (change.leader != NO_LEADER) & (change.leader != cluster.columns.leader[change.rows])
    return found


class EventMetrics:
    """Timers of events, and the number of waiting ones."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._state_ms = {
            state: Summary(f"{STATS_PREFIX}_{state}rateandtimems", "Milliseconds in this state.", registry=registry)
            for state in sorted(set(CONTROLLER_STATES.values()))
        }
        self._queue_ms = Summary(
            f"{EVENTS_PREFIX}_eventqueuetimems", "Milliseconds for which events waited.", registry=registry
        )
        self._event_seconds = Histogram(
            "steward_controller_event_seconds",
            "From an event's arrival to its end.",
            ["event"],
            buckets=EVENT_SECONDS,
            registry=registry,
        )
        self.queue_size = Gauge(f"{EVENTS_PREFIX}_eventqueuesize", "Waiting events.", registry=registry)

    @contextmanager
    def time(self, event: events.Event) -> Iterator[Callable[[], None]]:
        """Time an event from its arrival; the caller calls the yielded function when the event begins to run."""
        arrived_s = begun_s = time.perf_counter()

        def begins() -> None:
            nonlocal begun_s
            begun_s = time.perf_counter()
            self._queue_ms.observe((begun_s - arrived_s) * 1000)

        try:
            yield begins
        finally:
            ended_s = time.perf_counter()
            self._event_seconds.labels(type(event).__name__).observe(ended_s - arrived_s)
            if (state := CONTROLLER_STATES.get(type(event))) is not None:
                self._state_ms[state].observe((ended_s - begun_s) * 1000)


class LoopGauges:
    """Gauges of the event loop and its watchdog."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.longest_stall = Gauge(
            "steward_controller_loop_longest_stall_seconds",
            "Longest time since the last scrape in which the event loop could not run.",
            registry=registry,
        )
        self.longest_cpu = Gauge(
            "steward_controller_loop_longest_cpu_seconds",
            "Most CPU time that the event loop used in one go since the last scrape.",
            registry=registry,
        )
        self.sessions_given_up = Gauge(
            "steward_controller_sessions_given_up",
            "ZooKeeper sessions closed since the start because the event loop was blocked.",
            registry=registry,
        )


class Metrics:
    """All metrics of a controller process, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.active = Gauge(
            f"{PREFIX}_activecontrollercount", "1 while this process is the active controller.", registry=self.registry
        )
        self.cluster = ClusterGauges(self.registry)
        self.events = EventMetrics(self.registry)
        self.loop = LoopGauges(self.registry)
        self.stray_logs = Gauge(
            "steward_controller_stray_logs",
            "Logs on brokers that are not assigned to them, by kind.",
            ["broker_id", "kind"],
            registry=self.registry,
        )
        self.unreadable_topics = Gauge(
            "steward_controller_unreadable_topics",
            "Topics whose znode cannot be decoded: their last known state is in force, and their assignment cannot change.",
            registry=self.registry,
        )
        self._elections = Counter(f"{STATS_PREFIX}_leaderelections", "Leaders elected.", registry=self.registry)
        self._unclean_elections = unclean_elections(self.registry)
        self._requests = Gauge(
            f"{CHANNELS_PREFIX}_queuesize", "Requests waiting for a broker.", ["broker_id"], registry=self.registry
        )
        self._all_requests = Gauge(
            f"{CHANNELS_PREFIX}_totalqueuesize", "Requests waiting for any broker.", registry=self.registry
        )

    def count_elections(self, cluster: Cluster, change: changes.Change) -> None:
        """Count the elections of a committed change; to be called before the change is applied."""
        if isinstance(change, changes.PartitionStates):
            self._elections.inc(int(elected(cluster, change).sum()))
            if change.unclean is not None:
                self._unclean_elections.inc(int(change.unclean.sum()))

    def update_queues(self, waiting_events: int, requests: Mapping[int, int]) -> None:
        """Set the number of waiting events, and of waiting requests by broker."""
        self.events.queue_size.set(waiting_events)
        self._requests.clear()
        for broker, count in requests.items():
            self._requests.labels(str(broker)).set(count)
        self._all_requests.set(sum(requests.values()))
