"""Bodies of the requests that a controller sends.

Sources: protocol notes, Z30 to Z46; ControllerChannelManager and ControllerBrokerRequestBatch; LeaderAndIsrRequest,
UpdateMetadataRequest and StopReplicaRequest of Kafka 3.9.
"""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from controller_core.decisions.transition import apply
from controller_core.model.changes import ControlledShutdownStarted, OfflineReplicasObserved
from controller_core.model.cluster import Cluster
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, TopicPartition
from controller_core.model.sends import SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.shell.brokers import requests
from controller_core.shell.brokers.requests import (
    OwnAddress,
    is_covered_by_full_update,
    stop_replica,
    stopped_partitions,
)
from controller_core.zookeeper_mode.apis import CALLED
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from tests.controller_core.shell.brokers.clusters import OWN, broker, cluster_of, lead, metadata
from tests.controller_core.shell.brokers.told import EPOCH, leader_and_isr, plain_bytes, update_metadata
from tests.controller_core.shell.zookeeper.vocabulary import read_change

ORDERS = (
    "topic orders id=7 0=1,2,3 1=2,3,1",
    "known orders-0=1/4/1,2/6 orders-1=2/0/2,3,1/0",
)
MOVING = (*ORDERS, "move orders 0=2,3,4")
NARROWED = (*MOVING, "states orders-0=1/5/1,2,3,4", "states orders-0=2/6/2,3,4/2,3,4")


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 1 to 4 and the topic orders."""
    return cluster_of(broker(1), broker(2), broker(3), broker(4), changes=ORDERS)


def partitions(body: Body) -> dict[int, Any]:
    """The partitions of a body's only topic."""
    (topic,) = body["topic_states"]
    return {state["partition_index"]: state for state in topic["partition_states"]}


def test_a_leader_and_isr_says_all_that_is_written_of_a_partition(cluster: Cluster) -> None:
    """The state as it is, under the epoch of the controller that wrote it, its znode's version and the topic's id."""
    body = leader_and_isr(cluster, lead(cluster, 2, "orders-0"), OWN)
    state = {
        "partition_index": 0,
        "controller_epoch": 1,
        "leader": 1,
        "leader_epoch": 4,
        "isr": [1, 2],
        "partition_epoch": 6,
        "replicas": [1, 2, 3],
        "is_new": False,
    }
    assert body == {
        "controller_id": 1000,
        "controller_epoch": 9,
        "topic_states": [{"topic_name": "orders", "topic_id": UUID(int=7), "partition_states": [state]}],
        "live_leaders": [{"broker_id": 1, "host_name": "host1", "port": 9101}],
    }


def test_a_leader_that_was_not_in_sync_is_told_that_it_recovers(cluster: Cluster) -> None:
    """KIP-704, ControllerChannelManager: LeaderAndIsr says it, UpdateMetadata has no place for it."""
    cluster.columns.recovering[cluster.row_of("orders", 0)] = True

    body = leader_and_isr(cluster, lead(cluster, 2, "orders-0", "orders-1"), OWN)

    told = partitions(body)
    assert told[0]["leader_recovery_state"] == 1
    assert "leader_recovery_state" not in told[1]


def test_leaders_are_reached_by_the_inter_broker_listener_and_dead_ones_not_at_all(cluster: Cluster) -> None:
    """Followers fetch by the inter-broker listener; nobody leads where the leader is -1."""
    apply(cluster, read_change(cluster, "known orders-1=-1/1/3/1"))
    body = leader_and_isr(cluster, lead(cluster, 3), OWN)
    assert [leader["broker_id"] for leader in body["live_leaders"]] == [1]

    apply(cluster, read_change(cluster, "known orders-1=9/1/9/1"))
    assert [leader["broker_id"] for leader in leader_and_isr(cluster, lead(cluster, 3), OWN)["live_leaders"]] == [1]


def test_partitions_stand_under_their_topics_and_new_ones_are_marked() -> None:
    """A broker makes a log for a partition that is new to it even while one of its disks is away."""
    cluster = cluster_of(broker(1), changes=[*ORDERS, "topic other 0=1", "known other-0=1/0/1/0"])
    body = leader_and_isr(cluster, lead(cluster, 1, "orders-1", "other-0", "orders-0", new=["other-0"]), OWN)

    told = {
        (topic["topic_name"], state["partition_index"]): state["is_new"]
        for topic in body["topic_states"]
        for state in topic["partition_states"]
    }
    assert [topic["topic_name"] for topic in body["topic_states"]] == ["orders", "other"]
    assert told == {("orders", 1): False, ("orders", 0): False, ("other", 0): True}


def test_a_topic_without_an_id_has_the_zero_id() -> None:
    """inter.broker.protocol.version below 2.8."""
    cluster = cluster_of(broker(1), changes=["topic old 0=1", "known old-0=1/0/1/0"])

    assert leader_and_isr(cluster, lead(cluster, 1), OWN)["topic_states"][0]["topic_id"] == UUID(int=0)
    assert update_metadata(cluster, metadata(cluster), OWN)["topic_states"][0]["topic_id"] == UUID(int=0)


def test_while_a_move_runs_replicas_are_told_of_it() -> None:
    """KIP-455: the union, what is added and what is to be removed."""
    cluster = cluster_of(broker(1), broker(2), changes=MOVING)
    told = partitions(leader_and_isr(cluster, lead(cluster, 2), OWN))

    assert (
        told[0]["replicas"],
        told[0]["adding_replicas"],
        told[0]["removing_replicas"],
    ) == ([2, 3, 4, 1], [4], [1])
    assert "adding_replicas" not in told[1]


def test_once_the_target_stands_alone_no_move_is_told_any_more() -> None:
    """REMOVING: for brokers the move is over; only its end is not written yet."""
    cluster = cluster_of(broker(1), broker(2), changes=NARROWED)
    told = partitions(leader_and_isr(cluster, lead(cluster, 2), OWN))[0]

    assert told["replicas"] == [2, 3, 4]
    assert told.get("adding_replicas", []) == []
    assert told.get("removing_replicas", []) == []
    assert partitions(update_metadata(cluster, metadata(cluster), OWN))[0]["replicas"] == [2, 3, 4]


def test_everybody_hears_who_leads_and_which_replicas_are_away(cluster: Cluster) -> None:
    """A broker that is shutting down is away already, and a replica in a failed log directory (isReplicaOnline)."""
    apply(cluster, ControlledShutdownStarted(3))
    apply(cluster, OfflineReplicasObserved(2, (TopicPartition("orders", 1),), ()))
    body = update_metadata(cluster, metadata(cluster, "orders-1"), OWN)
    expected = {
        "partition_index": 1,
        "controller_epoch": 1,
        "leader": 2,
        "leader_epoch": 0,
        "isr": [2, 3, 1],
        "zk_version": 0,
        "replicas": [2, 3, 1],
        "offline_replicas": [2, 3],
    }
    assert partitions(body)[1] == expected
    assert [live["id"] for live in body["live_brokers"]] == [1, 2, 3, 4, 1000]


def test_topics_that_are_being_deleted_are_told_with_a_leader_of_minus_two(cluster: Cluster) -> None:
    """LeaderAndIsr.LeaderDuringDelete: clients then see no such topic."""
    body = update_metadata(cluster, metadata(cluster, deleting=True), OWN)

    assert {state["leader"] for state in partitions(body).values()} == {LEADER_DURING_DELETE}
    assert [state["leader_epoch"] for state in partitions(body).values()] == [4, 0]


def test_the_controller_is_listed_on_each_of_its_listeners(cluster: Cluster) -> None:
    """Protocol notes, Z20 and Z24: that is how brokers and clients find it."""
    *_, own = update_metadata(cluster, metadata(cluster), OWN)["live_brokers"]
    first = update_metadata(cluster, metadata(cluster), OWN)["live_brokers"][0]

    assert own == {
        "id": 1000,
        "rack": None,
        "endpoints": [
            {"host": "steward", "port": 9990, "listener": "CLIENT", "security_protocol": 0},
            {"host": "steward", "port": 9991, "listener": "INTERNAL", "security_protocol": 0},
        ],
    }
    assert [endpoint["security_protocol"] for endpoint in first["endpoints"]] == [3, 0]


@pytest.mark.parametrize(
    ("racks", "own_rack", "expected"),
    [
        pytest.param([None, None], None, None, id="no racks"),
        pytest.param([None, None], "a", None, id="a rack of ours alone would stop auto-creation"),
        pytest.param(["b", "c"], None, "b", id="that of the broker with the lowest id"),
        pytest.param(["b", "c"], "a", "a", id="ours where brokers have some"),
        pytest.param([None, "c"], None, "c", id="some have one"),
    ],
)
def test_the_controller_has_a_rack_where_the_brokers_have_racks(
    racks: list[str | None], own_rack: str | None, expected: str | None
) -> None:
    """AdminUtils: "Not all brokers have rack information" where only some of all that are listed have one."""
    cluster = cluster_of(*(broker(number + 1, rack) for number, rack in enumerate(racks)))
    own = OwnAddress(OWN.endpoints, "INTERNAL", own_rack)

    assert update_metadata(cluster, metadata(cluster), own)["live_brokers"][-1]["rack"] == expected


def stop(*, delete: bool) -> SendStopReplica:
    """Stop two partitions of one topic and one of another."""
    names = (TopicPartition("orders", 0), TopicPartition("other", 5), TopicPartition("orders", 1))
    return SendStopReplica(3, names, (5, EPOCH_DURING_DELETE, 1), delete)


def test_a_stop_replica_carries_an_epoch_for_each_partition(cluster: Cluster) -> None:
    """A broker takes it under an epoch that is not below its own; -2 passes every check (EpochDuringDelete)."""
    body = stop_replica(cluster, stop(delete=True))

    assert (body["controller_id"], body["controller_epoch"]) == (1000, 9)
    assert [
        (topic["topic_name"], [tuple(state.values()) for state in topic["partition_states"]])
        for topic in body["topic_states"]
    ] == [
        ("orders", [(0, 5, True), (1, 1, True)]),
        ("other", [(5, -2, True)]),
    ]


def test_what_a_stop_replica_asks_to_delete_is_read_from_it(cluster: Cluster) -> None:
    """The answer does not say what was asked."""
    assert stopped_partitions(stop_replica(cluster, stop(delete=True))) == {
        TopicPartition("orders", 0): 5,
        TopicPartition("orders", 1): 1,
        TopicPartition("other", 5): EPOCH_DURING_DELETE,
    }
    assert stopped_partitions(stop_replica(cluster, stop(delete=False))) == {}


def test_rows_of_many_topics_in_any_order_are_told_topic_by_topic() -> None:
    """In the order in which topics appear, and partitions within them: what the plain twin does, one by one."""
    cluster = cluster_of(
        broker(1),
        broker(2),
        changes=(
            "topic a id=1 0=1,2 1=2,1 2=1",
            "topic b id=2 0=2 1=1,2",
            "topic c 0=1,2",
            "known a-0=1/4/1,2/6 a-1=2/0/2/0 a-2=1/1/1/1 b-0=2/0/2/0 b-1=-1/3/1/9 c-0=1/0/1,2/0",
        ),
    )
    rows = np.array([5, 3, 0, 4, 2, 1], dtype=np.int32)

    told = leader_and_isr(cluster, SendLeaderAndIsr(1, rows, rows % 2 == 0), OWN)
    update_metadata(cluster, SendMetadata((1, 2), rows), OWN)

    expected = {"c": [0], "b": [0, 1], "a": [0, 2, 1]}
    assert {
        topic["topic_name"]: [state["partition_index"] for state in topic["partition_states"]]
        for topic in told["topic_states"]
    } == expected


def test_no_rows_are_no_topics(cluster: Cluster) -> None:
    """Who lives is told alone."""
    nothing = np.zeros(0, dtype=np.int32)

    assert update_metadata(cluster, SendMetadata((1,), nothing), OWN)["topic_states"] == []


def test_only_topics_that_are_no_more_are_never_told_again(cluster: Cluster) -> None:
    """What a broker that lags must hear all the same."""
    state = metadata(cluster)
    assert is_covered_by_full_update(requests.leader_and_isr(cluster, lead(cluster, 1), OWN))
    assert is_covered_by_full_update(requests.update_metadata(cluster, state, OWN))
    assert not is_covered_by_full_update(requests.update_metadata(cluster, metadata(cluster, deleting=True), OWN))
    assert not is_covered_by_full_update(stop_replica(cluster, stop(delete=False)))


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (key, version)
        for key in (ApiKey.LEADER_AND_ISR, ApiKey.UPDATE_METADATA, ApiKey.STOP_REPLICA)
        for version in range(CALLED[key].lowest, CALLED[key].highest + 1)
    ],
    ids=str,
)
def test_every_body_can_be_written_in_every_version_that_is_called(key: ApiKey, version: int) -> None:
    """Protocol notes, Z36: ibp 2.6 takes LeaderAndIsr 4, UpdateMetadata 6 and StopReplica 3; moves, ids, racks and recovery are left out there."""
    cluster = cluster_of(broker(1, "a"), broker(2, "b"), changes=MOVING)
    cluster.columns.recovering[:] = True
    bodies = {
        ApiKey.LEADER_AND_ISR: leader_and_isr(cluster, lead(cluster, 2, new=["orders-0"]), OWN),
        ApiKey.UPDATE_METADATA: update_metadata(cluster, metadata(cluster), OWN),
        ApiKey.STOP_REPLICA: stop_replica(cluster, stop(delete=True)),
    }
    name = key.message + "Request"
    written = {**bodies[key], "broker_epoch": EPOCH}
    read = codec.decode(name, version, plain_bytes(key, version, written))

    assert (read["controller_id"], read["controller_epoch"], read["broker_epoch"]) == (1000, 9, EPOCH)
    assert [topic["topic_name"] for topic in written["topic_states"]] == [t["topic_name"] for t in read["topic_states"]]
