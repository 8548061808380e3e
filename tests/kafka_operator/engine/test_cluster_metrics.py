"""Health of a cluster in numbers: under-replicated, offline, imbalance, versions (Cluster.status)."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from kafka_operator.admin.cluster_metrics import count, query_cluster_metrics, query_versions
from kafka_operator.admin.requests import Request
from kafka_operator.decide.clusters.cluster import (
    CLUSTER_METRICS_EVERY_S,
    CLUSTER_METRICS_SHARE,
    POLL_INTERVAL_S,
    ClusterSnapshot,
    cluster_metrics_pause_s,
    decide_cluster,
)
from kafka_operator.decide.clusters.cluster_metrics import METADATA_VERSIONS, ClusterMetrics, read_versions
from kafka_operator.decide.kafka.log_dirs import BrokerLogDirs
from kafka_operator.decide.kafka.observed import NO_LEADER, ObservedCluster, Unavailable
from kafka_operator.engine.cluster_reader import ClusterReader
from kafka_operator.resources.cluster import ClusterStatus, Imbalance, Versions, read_cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.reassignment import Partition
from kafka_wire import ApiKey, Body
from reconciler.decide.steps import WriteStatus
from tests.kafka_operator.fake_connection import AWAY, Answer, FakeConnection, columns
from tests.kafka_operator.makers import CREATED, NOW, cluster, moving, raw_cluster
from tests.kafka_operator.seats import Seat, count_partitions
from tests.kafka_operator.world import running
from tests.reconciler.virtual_time import in_virtual_time

SEEN = ObservedCluster("abc", 2, (1, 2, 3))


def seat(index: int, leader: int, replicas: tuple[int, ...] = (1, 2, 3), in_sync: int = 3) -> Seat:
    """One partition of `orders`."""
    return Seat(Partition("orders", index), leader, replicas, in_sync)


def test_partitions_are_counted_as_kafkas_tools_count_them() -> None:
    """`kafka-topics --under-replicated-partitions`, and partitions without a leader; examples by name."""
    cluster_metrics = count_partitions([seat(0, 1), seat(2, 1, in_sync=2), seat(1, NO_LEADER, in_sync=1)], {})

    assert (cluster_metrics.partitions, cluster_metrics.under_replicated, cluster_metrics.offline) == (3, 2, 1)
    assert cluster_metrics.offline_examples == (Partition("orders", 1),)
    assert cluster_metrics.under_replicated_examples == (Partition("orders", 1), Partition("orders", 2))


def test_a_replica_that_a_move_adds_is_not_missed() -> None:
    """KIP-455: while it moves, a partition owes the replicas of before."""
    union = Seat(Partition("orders", 0), 1, (4, 2, 1), 2)
    moves = moving("orders", 0, (1, 2), (4, 2))

    assert count_partitions([union], moves).under_replicated == 0
    assert count_partitions([replace(union, in_sync=1)], moves).under_replicated == 1
    assert count_partitions([union], {}).under_replicated == 1


def test_imbalance_names_the_broker_that_lacks_most() -> None:
    """leader.imbalance.per.broker.percentage: the share of what a broker would lead; rounded up, so that 0 is none."""
    seats = [seat(index, 1) for index in range(199)] + [seat(199, 2), seat(200, 3, (2, 3)), seat(201, 2, (2, 3))]

    assert count_partitions(seats, {}).imbalance == Imbalance(2, 1, 2, 50)
    assert count_partitions(seats[:10], {}).imbalance == Imbalance(0, 0, None, 0)
    assert count_partitions([], {}).imbalance == Imbalance()


def test_a_partition_without_a_leader_counts_as_imbalance() -> None:
    """KafkaController.preferredReplicaImbalanceCount: its leader is not the preferred replica."""
    imbalance = count_partitions([seat(0, 1), seat(1, NO_LEADER, (2, 1))], {}).imbalance

    assert imbalance == Imbalance(1, 50, 2, 100)


def test_versions_are_those_of_the_feature_or_of_the_protocol() -> None:
    """KRaft has metadata.version, ZooKeeper mode has inter.broker.protocol.version; a level of the future is a number."""
    assert read_versions([(4, 0), (4, 0)], {"metadata.version": 25, "kraft.version": 1}, "ignored") == Versions(
        ("4.0",), "4.0-IV3", None, (("kraft.version", 1),)
    )
    assert read_versions([(3, 9), (3, 8)], {}, "3.9-IV0") == Versions(("3.8", "3.9"), None, "3.9-IV0")
    assert read_versions([], {"metadata.version": 99}, None).metadata_version == "level 99"
    assert list(range(1, 31)) == [level for level, _ in METADATA_VERSIONS]


def test_a_status_is_read_back_as_it_was_written() -> None:
    """Otherwise every poll would write it again (O1)."""
    snapshot = ClusterSnapshot(
        SEEN,
        ClusterMetrics(10, 1, 0, Imbalance(1, 10, 2, 50), (), (Partition("orders", 1),)),
        Versions(("3.9", "4.0"), "4.0-IV3", None, (("kraft.version", 1),)),
    )
    step = decide_cluster(cluster(), snapshot, NOW, 0.0)
    assert isinstance(step, WriteStatus)
    raw = raw_cluster()
    raw["metadata"] |= {"uid": "uid-c", "resourceVersion": "5", "creationTimestamp": CREATED}
    raw["status"] = step.status.to_patch()

    assert step.status == read_cluster(raw).status


@pytest.mark.parametrize(
    ("cluster_metrics", "status", "reason", "message"),
    [
        (ClusterMetrics(partitions=3), "True", "AllInSync", "every replica is in sync"),
        (
            ClusterMetrics(3, 2, 0, under_replicated_examples=(Partition("a", 1), Partition("b", 2))),
            "False",
            "UnderReplicated",
            "such as a-1, b-2.",
        ),
        (ClusterMetrics(3, 2, 1, offline_examples=(Partition("a", 1),)), "False", "OfflinePartitions", "such as a-1."),
    ],
)
def test_health_is_a_condition_in_addition_to_ready(
    cluster_metrics: ClusterMetrics, status: str, reason: str, message: str
) -> None:
    """Ready means that the cluster answers, Healthy that no replica is missing. Partitions without a leader are worth an event."""
    step = decide_cluster(cluster(), ClusterSnapshot(SEEN, cluster_metrics), NOW, 0.0)
    assert isinstance(step, WriteStatus)
    ready, healthy = step.status.conditions
    assert (ready.type, ready.status) == ("Ready", "True")
    assert ("Healthy", status, reason) == (healthy.type, healthy.status, healthy.reason)
    assert message in healthy.message
    assert (step.event is not None) is (reason == "OfflinePartitions")

    away = decide_cluster(
        replace(cluster(), status=step.status), Unavailable("ClusterUnreachable", "No broker answers."), NOW, 0.0
    )
    assert isinstance(away, WriteStatus)
    assert isinstance(away.status, ClusterStatus)
    shown = {condition.type: condition.status for condition in away.status.conditions}
    assert shown == {"Ready": "Unknown", "Reconciling": "True", "Healthy": "Unknown"}
    assert cluster_metrics.under_replicated == away.status.under_replicated


def test_counting_takes_at_most_a_twentieth_of_the_time() -> None:
    """Cheap at 200,000 partitions."""
    assert cluster_metrics_pause_s(0.01) == CLUSTER_METRICS_EVERY_S
    assert cluster_metrics_pause_s(10) == 10 * CLUSTER_METRICS_SHARE


def metadata(partitions: int, *, in_sync: int = 2) -> Body:
    """A Metadata answer with so many partitions of 100 topics."""
    topics = [
        {
            "name": f"topic-{number}",
            "topic_id": uuid.UUID(int=number + 1),
            "partitions": [
                {
                    "partition_index": index,
                    "leader_id": 1,
                    "replica_nodes": [1, 2],
                    "isr_nodes": [1, 2][:in_sync],
                    "offline_replicas": [],
                }
                for index in range(partitions // 100)
            ],
        }
        for number in range(100)
    ]
    brokers = [{"node_id": node_id, "host": "kafka", "port": 9092} for node_id in (1, 2)]
    return {"controller_id": 1, "brokers": brokers, "topics": topics}


def test_a_metadata_answer_is_counted() -> None:
    """From its columns."""
    assert count(columns(metadata(1_000))).sum_up({}) == ClusterMetrics(partitions=1_000, imbalance=Imbalance())


def connection(in_sync: int) -> FakeConnection:
    """A cluster that answers Metadata, moves, ApiVersions and DescribeConfigs; broker 2 is away."""

    def answer(node: int | str, request: Request) -> Answer:
        if node == 2:
            return AWAY
        entry = {"name": "inter.broker.protocol.version", "value": "3.9-IV0"}
        answers: dict[ApiKey, Answer] = {
            ApiKey.METADATA: metadata(100, in_sync=in_sync),
            ApiKey.LIST_PARTITION_REASSIGNMENTS: {"topics": []},
            ApiKey.API_VERSIONS: {"api_keys": [{"api_key": 1, "min_version": 4, "max_version": 17}]},
            ApiKey.DESCRIBE_CONFIGS: {"results": [{"resource_name": str(node), "configs": [entry]}]},
        }
        return answers[request.key]

    return FakeConnection(answer)


async def test_moves_are_asked_for_only_where_something_lacks() -> None:
    """One request for a cluster that is well."""
    well, unwell = connection(2), connection(1)

    assert (await query_cluster_metrics(well)).under_replicated == 0
    assert (await query_cluster_metrics(unwell)).under_replicated == 100
    assert (len(well.requests), len(unwell.requests)) == (1, 2)


async def test_the_software_of_brokers_is_derived_from_their_apis() -> None:
    """One that does not answer is left out."""
    found = await query_versions(connection(2), (1, 2, 3))

    assert found == Versions(("3.9",), None, "3.9-IV0")


def counting(clock: list[float], took_s: float) -> tuple[ClusterReader, list[tuple[int, ...]], list[float]]:
    """Polls of a cluster whose brokers are the last list, with the times at which partitions were counted."""
    brokers: list[tuple[int, ...]] = [(1, 2, 3)]
    counted: list[float] = []

    class Admin:
        async def describe_cluster(self) -> ObservedCluster:
            return ObservedCluster("id", 1, brokers[-1])

        async def describe_cluster_metrics(self) -> ClusterMetrics:
            counted.append(clock[0])
            clock[0] += took_s
            return ClusterMetrics(partitions=0, imbalance=Imbalance())

        async def describe_versions(self, _: object) -> Versions:
            return Versions()

        async def describe_log_dir_states(self, _: object) -> BrokerLogDirs:
            return {}

    class OneCluster:
        async def use(self, _: object, call: Any) -> Any:
            return await call(Admin())

    return ClusterReader(OneCluster(), lambda: clock[0]), brokers, counted


@pytest.mark.parametrize(("took_s", "expected"), [(0.0, [0, 30, 50, 60, 90]), (1.0, [0, 31, 52, 73])])
async def test_partitions_are_counted_at_once_and_once_more_where_brokers_change(
    took_s: float, expected: list[float]
) -> None:
    """At the next poll and the one after, since replicas are fetched in between; never in more than a twentieth of the time."""
    clock = [0.0]
    vitals, brokers, counted = counting(clock, took_s)
    while clock[0] < 100:
        if clock[0] >= 45:
            brokers.append((1, 2))
        await vitals.read(ClusterRef("kafka", "main"))
        clock[0] += 10
    assert counted == expected


@in_virtual_time
async def test_a_broker_that_goes_is_seen_in_the_clusters_status_and_again_when_it_is_back() -> None:
    """Within one poll of the brokers; and while nothing changes nothing is written (O1)."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3), (4,)])
        main = next(iter(world.kube.objects))

        def status() -> dict[str, Any]:
            found: dict[str, Any] = world.kube.objects[main].get("status", {})
            return found

        await world.until(lambda: status().get("underReplicated") == 0)
        world.kafka.broker_ids = (1, 2, 3)
        await world.until(lambda: (status()["underReplicated"], status()["offline"]) == (1, 1), POLL_INTERVAL_S + 5)
        world.kafka.broker_ids = (1, 2, 3, 4)
        await world.until(lambda: (status()["underReplicated"], status()["offline"]) == (0, 0), POLL_INTERVAL_S + 5)
        assert [event.reason for event in world.kube.events] == ["OfflinePartitions", "AllInSync"]
        assert status()["versions"]["software"] == "3.9"

        world.kube.writes.clear()
        await world.run(600)
        assert world.kube.writes == []
