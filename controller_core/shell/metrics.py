"""Metrics of the controller, by the names of Kafka's own controller metrics in Prometheus' form.

As with Kafka, topics that are to be deleted are neither offline nor out of balance, and a process that does not hold the
cluster counts nothing. Leaves out serving them over HTTP (http).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Summary

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.ids import NO_LEADER, NOBODY
from controller_core.views.partition_health import health_of

PREFIX = "kafka_controller_kafkacontroller"
STATS_PREFIX = "kafka_controller_controllerstats"
EVENTS_PREFIX = "kafka_controller_controllereventmanager"
CHANNELS_PREFIX = "kafka_controller_controllerchannelmanager"
EVENT_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
"""Buckets around the controller's own target: 50 ms from a broker's end to its successors' news."""


CONTROLLER_STATES: Mapping[type[events.Event], str] = {
    events.Activated: "controllerchange",
    events.BrokersRead: "leaderelection",
    events.Heal: "leaderelection",
    events.TopicsRead: "topicchange",
    events.CreateTopics: "topicchange",
    events.CreatePartitions: "topicchange",
    events.DeletionsRead: "topicdeletion",
    events.DeleteTopics: "topicdeletion",
    events.AdvanceDeletions: "topicdeletion",
    events.StopReplicaAnswered: "topicdeletion",
    events.TopicDeletionRead: "topicdeletion",
    events.ResumeTopics: "topicdeletion",
    events.AlterReassignments: "partitionreassignment",
    events.AdvanceMoves: "partitionreassignment",
    events.RepairAssignments: "partitionreassignment",
    events.MoveRequestsRead: "partitionreassignment",
    events.ReviewMoveRequests: "partitionreassignment",
    events.ElectLeaders: "manualleaderbalance",
    events.ElectionRequestsRead: "manualleaderbalance",
    events.ForgetElectionRequests: "manualleaderbalance",
    events.BalanceLeaders: "autoleaderbalance",
    events.AlterPartition: "isrchange",
    events.IsrChangesRead: "isrchange",
    events.LogDirsFailed: "logdirchange",
    events.TopicsChanged: "topicchange",
    events.AssignTopicIds: "topicchange",
    events.UncleanElectionRead: "uncleanleaderelectionenable",
    events.ReplicasAnswered: "leaderandisrresponsereceived",
    events.ControlledShutdown: "controlledshutdown",
    events.ReplicasRefused: "leaderandisrresponsereceived",
    events.ReplaceStaleLogs: "leaderandisrresponsereceived",
    events.StrayLogsFound: "topicdeletion",
    events.UnregisterBroker: "topicdeletion",
}
"""Kafka's ControllerState by event, as in the names of its timers (LeaderElectionRateAndTimeMs and the others). What Kafka does
not time, or times as Idle, is only among our own."""


class Metrics:
    """The controller's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.active = self._gauge("activecontrollercount", "1 while this process holds the cluster.")
        self.epoch = self._gauge("controllerepoch", "Epoch of the present tenure.")
        self.brokers = self._gauge("activebrokercount", "Registered brokers.")
        self.unreachable = Gauge(
            "steward_controller_unreachable_brokers",
            "Registered brokers without the inter-broker listener: they count as down.",
            registry=self.registry,
        )
        self.topics = self._gauge("globaltopiccount", "Topics.")
        self.all_partitions = self._gauge("globalpartitioncount", "Partitions.")
        self.offline = self._gauge("offlinepartitionscount", "Partitions without a leader.")
        self.imbalance = self._gauge(
            "preferredreplicaimbalancecount", "Partitions that their preferred replica does not lead."
        )
        self.to_delete = self._gauge("topicstodeletecount", "Topics queued for deletion.")
        self.topics_ineligible = self._gauge(
            "topicsineligibletodeletecount", "Topics queued for deletion that cannot go on now."
        )
        self.replicas_to_delete = self._gauge("replicastodeletecount", "Replicas of topics queued for deletion.")
        self.replicas_ineligible = self._gauge(
            "replicasineligibletodeletecount", "Those of them whose broker is away, or could not delete."
        )
        self.moves = self._gauge("reassigningpartitionscount", "Partitions with a running reassignment.")
        self.refused = self._own_gauge(
            "refused_replicas", "Replicas that their live broker refuses; another replica leads where one can."
        )
        self.left_behind = self._own_gauge(
            "left_behind_replicas", "Logs outside the assignment that brokers have still to delete."
        )
        self._of_the_cluster = (
            self.epoch,
            self.brokers,
            self.unreachable,
            self.topics,
            self.all_partitions,
            self.offline,
            self.imbalance,
            self.to_delete,
            self.topics_ineligible,
            self.replicas_to_delete,
            self.replicas_ineligible,
            self.moves,
            self.refused,
            self.left_behind,
        )
        self.stray_logs = Gauge(
            "steward_controller_stray_logs",
            "Logs that brokers hold and that are not assigned to them, by what they are.",
            ["broker_id", "kind"],
            registry=self.registry,
        )
        self.elections = Counter(f"{STATS_PREFIX}_leaderelections", "Leaders elected.", registry=self.registry)
        self.unclean_elections = Counter(
            f"{STATS_PREFIX}_uncleanleaderelections", "Leaders elected from outside the ISR.", registry=self.registry
        )
        self.state_ms = {
            state: Summary(
                f"{STATS_PREFIX}_{state}rateandtimems", "Milliseconds in this state.", registry=self.registry
            )
            for state in sorted(set(CONTROLLER_STATES.values()))
        }
        self.queue_ms = Summary(
            f"{EVENTS_PREFIX}_eventqueuetimems", "Milliseconds that events waited.", registry=self.registry
        )
        self.queue_size = Gauge(f"{EVENTS_PREFIX}_eventqueuesize", "Events that wait.", registry=self.registry)
        self.requests = Gauge(
            f"{CHANNELS_PREFIX}_queuesize", "Requests that wait for a broker.", ["broker_id"], registry=self.registry
        )
        self.all_requests = Gauge(
            f"{CHANNELS_PREFIX}_totalqueuesize", "Requests that wait for any broker.", registry=self.registry
        )
        self.unreadable_topics = Gauge(
            "steward_controller_unreadable_topics",
            "Topics whose znode cannot be decoded: their last known state is in force, and their assignment cannot change.",
            registry=self.registry,
        )
        self.event_seconds = Histogram(
            "steward_controller_event_seconds",
            "From an event's arrival to the end of its turn.",
            ["event"],
            buckets=EVENT_SECONDS,
            registry=self.registry,
        )

        self.longest_stall = Gauge(
            "steward_controller_loop_longest_stall_seconds",
            "Longest time since the last scrape in which the event loop could not run.",
            registry=self.registry,
        )
        self.longest_cpu = Gauge(
            "steward_controller_loop_longest_cpu_seconds",
            "Most CPU time that the event loop used in one go since the last scrape.",
            registry=self.registry,
        )
        self.sessions_given_up = Gauge(
            "steward_controller_sessions_given_up",
            "ZooKeeper sessions closed since the start because the event loop was blocked.",
            registry=self.registry,
        )

    def _own_gauge(self, name: str, words: str) -> Gauge:
        return Gauge(f"steward_controller_{name}", words, registry=self.registry)

    def _gauge(self, name: str, words: str) -> Gauge:
        return Gauge(f"{PREFIX}_{name}", words, registry=self.registry)

    @contextmanager
    def event(self, event: events.Event) -> Iterator[Callable[[], None]]:
        """Time an event from its arrival; what is given is to be called when its turn begins."""
        arrived_s = begun_s = time.perf_counter()

        def begins() -> None:
            nonlocal begun_s
            begun_s = time.perf_counter()
            self.queue_ms.observe((begun_s - arrived_s) * 1000)

        try:
            yield begins
        finally:
            ended_s = time.perf_counter()
            self.event_seconds.labels(type(event).__name__).observe(ended_s - arrived_s)
            if (state := CONTROLLER_STATES.get(type(event))) is not None:
                self.state_ms[state].observe((ended_s - begun_s) * 1000)

    def change(self, cluster: Cluster, change: changes.Change) -> None:
        """Count a committed change, before it is applied."""
        if isinstance(change, changes.PartitionStates):
            elected = (change.leader != NO_LEADER) & (change.leader != cluster.columns.leader[change.rows])
            self.elections.inc(int(elected.sum()))
            if change.unclean is not None:
                self.unclean_elections.inc(int(change.unclean.sum()))

    def update_queues(self, waiting_events: int, requests: Mapping[int, int]) -> None:
        """Take in how many events wait, and how many requests for each broker."""
        self.queue_size.set(waiting_events)
        self.requests.clear()
        for broker, count in requests.items():
            self.requests.labels(str(broker)).set(count)
        self.all_requests.set(sum(requests.values()))

    def update(self, cluster: Cluster | None) -> None:
        """Look at the whole cluster: a few passes over columns. None: another holds it, so that nothing is ours to count."""
        if cluster is None:
            for gauge in self._of_the_cluster:
                gauge.set(0)
            return
        columns = cluster.columns
        rows = columns.used()
        health = health_of(cluster)
        self.epoch.set(cluster.controller_epoch)
        self.brokers.set(len(cluster.brokers))
        self.unreachable.set(len(cluster.unreachable))
        self.topics.set(len(cluster.topics))
        self.all_partitions.set(len(rows))
        self.offline.set(int(health.flags.offline.sum()))
        self.imbalance.set(int(health.flags.not_led_by_preferred.sum()))
        self._look_at_deletions(cluster)
        self.moves.set(len(cluster.moves))
        self.refused.set(sum(map(len, cluster.refused_replicas.values())))
        self.left_behind.set(sum(map(len, cluster.left_behind.values())))

    def _look_at_deletions(self, cluster: Cluster) -> None:
        columns, registered = cluster.columns, cluster.columns.flags(cluster.unfenced())
        rows = [cluster.topics[name].rows for name in cluster.deletions]
        replicas = columns.replicas[np.concatenate(rows)] if rows else np.zeros((0, 1), dtype=np.int32)
        refused = [len(cluster.topics[name].rows) for name, deletion in cluster.deletions.items() if deletion.refused]
        self.to_delete.set(len(cluster.deletions))
        self.topics_ineligible.set(sum(bool(deletion.blocked) for deletion in cluster.deletions.values()))
        self.replicas_to_delete.set(int((replicas != NOBODY).sum()))
        self.replicas_ineligible.set(int((~registered[replicas] & (replicas != NOBODY)).sum()) + sum(refused))
