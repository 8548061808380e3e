"""Bodies of the requests that a controller sends to brokers.

Sources: protocol notes, Z30 to Z46; ControllerChannelManager and ControllerBrokerRequestBatch; LeaderAndIsrRequest,
UpdateMetadataRequest and StopReplicaRequest of Kafka 3.9.
"""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import Cluster, TopicPartition
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from controller_core.model.zookeeper_changes import ControlledShutdownStarted, OfflineReplicasObserved
from controller_core.shell.brokers import requests
from controller_core.shell.brokers.requests import (
    OwnAddress,
    is_covered_by_full_update,
    stop_replica,
    stopped_partitions,
)
from controller_core.zookeeper_mode.apis import CALLED
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import ApiKey, Body, codec
from tests.controller_core.shell.brokers.clusters import OWN, broker, cluster_of, lead, metadata
from tests.controller_core.shell.brokers.encoded_requests import EPOCH, leader_and_isr, plain_bytes, update_metadata
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


def test_a_leader_and_isr_contains_the_whole_partition_state(cluster: Cluster) -> None:
    """The state with the epoch of the controller that wrote it, its znode's version and the topic's id."""
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


def test_an_unclean_leader_gets_the_leader_recovery_state(cluster: Cluster) -> None:
    """KIP-704, ControllerChannelManager: LeaderAndIsr has the field, UpdateMetadata does not."""
    cluster.columns.recovering[cluster.row_of("orders", 0)] = True

    body = leader_and_isr(cluster, lead(cluster, 2, "orders-0", "orders-1"), OWN)

    states = partitions(body)
    assert states[0]["leader_recovery_state"] == 1
    assert "leader_recovery_state" not in states[1]


def test_live_leaders_are_listed_with_their_inter_broker_listener(cluster: Cluster) -> None:
    """Followers fetch through the inter-broker listener; leader -1 means no leader."""
    apply(cluster, read_change(cluster, "known orders-1=-1/1/3/1"))
    body = leader_and_isr(cluster, lead(cluster, 3), OWN)
    assert [leader["broker_id"] for leader in body["live_leaders"]] == [1]

    apply(cluster, read_change(cluster, "known orders-1=9/1/9/1"))
    assert [leader["broker_id"] for leader in leader_and_isr(cluster, lead(cluster, 3), OWN)["live_leaders"]] == [1]


def test_partitions_are_grouped_by_topic_and_new_ones_are_marked() -> None:
    """A broker creates the log of a new partition even if one of its log directories is offline."""
    cluster = cluster_of(broker(1), changes=[*ORDERS, "topic other 0=1", "known other-0=1/0/1/0"])
    body = leader_and_isr(cluster, lead(cluster, 1, "orders-1", "other-0", "orders-0", new=["other-0"]), OWN)

    is_new = {
        (topic["topic_name"], state["partition_index"]): state["is_new"]
        for topic in body["topic_states"]
        for state in topic["partition_states"]
    }
    assert [topic["topic_name"] for topic in body["topic_states"]] == ["orders", "other"]
    assert is_new == {("orders", 1): False, ("orders", 0): False, ("other", 0): True}


def test_a_topic_without_an_id_has_the_zero_id() -> None:
    """inter.broker.protocol.version below 2.8."""
    cluster = cluster_of(broker(1), changes=["topic old 0=1", "known old-0=1/0/1/0"])

    assert leader_and_isr(cluster, lead(cluster, 1), OWN)["topic_states"][0]["topic_id"] == UUID(int=0)
    assert update_metadata(cluster, metadata(cluster), OWN)["topic_states"][0]["topic_id"] == UUID(int=0)


def test_a_running_move_is_sent_with_added_and_removed_replicas() -> None:
    """KIP-455: the replicas are the union of both."""
    cluster = cluster_of(broker(1), broker(2), changes=MOVING)
    states = partitions(leader_and_isr(cluster, lead(cluster, 2), OWN))

    assert (
        states[0]["replicas"],
        states[0]["adding_replicas"],
        states[0]["removing_replicas"],
    ) == ([2, 3, 4, 1], [4], [1])
    assert "adding_replicas" not in states[1]


def test_a_move_whose_target_replicas_are_the_only_ones_left_is_not_sent() -> None:
    """REMOVING: for brokers the move is complete, although its completion is not written yet."""
    cluster = cluster_of(broker(1), broker(2), changes=NARROWED)
    state = partitions(leader_and_isr(cluster, lead(cluster, 2), OWN))[0]

    assert state["replicas"] == [2, 3, 4]
    assert state.get("adding_replicas", []) == []
    assert state.get("removing_replicas", []) == []
    assert partitions(update_metadata(cluster, metadata(cluster), OWN))[0]["replicas"] == [2, 3, 4]


def test_update_metadata_contains_leaders_and_offline_replicas(cluster: Cluster) -> None:
    """Offline are the replicas of a broker in controlled shutdown, and those in a failed log directory (isReplicaOnline)."""
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


def test_topics_under_deletion_have_leader_minus_two(cluster: Cluster) -> None:
    """LeaderAndIsr.LeaderDuringDelete: brokers then hide the topic from clients."""
    body = update_metadata(cluster, metadata(cluster, deleting=True), OWN)

    assert {state["leader"] for state in partitions(body).values()} == {LEADER_DURING_DELETE}
    assert [state["leader_epoch"] for state in partitions(body).values()] == [4, 0]


def test_the_controller_is_listed_on_each_of_its_listeners(cluster: Cluster) -> None:
    """Protocol notes, Z20 and Z24: brokers and clients find it this way."""
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
        pytest.param([None, None], "a", None, id="a rack only of the controller would prevent auto-creation"),
        pytest.param(["b", "c"], None, "b", id="the rack of the broker with the lowest id"),
        pytest.param(["b", "c"], "a", "a", id="the configured rack if brokers have racks"),
        pytest.param([None, "c"], None, "c", id="only some brokers have a rack"),
    ],
)
def test_the_controller_has_a_rack_if_the_brokers_have_racks(
    racks: list[str | None], own_rack: str | None, expected: str | None
) -> None:
    """AdminUtils: "Not all brokers have rack information" if only some of the listed brokers have a rack."""
    cluster = cluster_of(*(broker(number + 1, rack) for number, rack in enumerate(racks)))
    own = OwnAddress(OWN.endpoints, "INTERNAL", own_rack)

    assert update_metadata(cluster, metadata(cluster), own)["live_brokers"][-1]["rack"] == expected


def stop(*, delete: bool) -> SendStopReplica:
    """A StopReplica of two partitions of one topic and one of another."""
    names = (TopicPartition("orders", 0), TopicPartition("other", 5), TopicPartition("orders", 1))
    return SendStopReplica(3, names, (5, EPOCH_DURING_DELETE, 1), delete)


def test_a_stop_replica_has_a_leader_epoch_for_each_partition(cluster: Cluster) -> None:
    """A broker accepts a leader epoch that is not below its own; -2 passes every check (EpochDuringDelete)."""
    body = stop_replica(cluster, stop(delete=True))

    assert (body["controller_id"], body["controller_epoch"]) == (1000, 9)
    assert [
        (topic["topic_name"], [tuple(state.values()) for state in topic["partition_states"]])
        for topic in body["topic_states"]
    ] == [
        ("orders", [(0, 5, True), (1, 1, True)]),
        ("other", [(5, -2, True)]),
    ]


def test_the_partitions_to_delete_are_read_from_the_request(cluster: Cluster) -> None:
    """The answer does not contain them."""
    assert stopped_partitions(stop_replica(cluster, stop(delete=True))) == {
        TopicPartition("orders", 0): 5,
        TopicPartition("orders", 1): 1,
        TopicPartition("other", 5): EPOCH_DURING_DELETE,
    }
    assert stopped_partitions(stop_replica(cluster, stop(delete=False))) == {}


def test_rows_in_any_order_are_grouped_by_topic() -> None:
    """Topics in the order of their first occurrence, and partitions in order within them, as in the plain twin."""
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

    body = leader_and_isr(cluster, SendLeaderAndIsr(1, rows, rows % 2 == 0), OWN)
    update_metadata(cluster, SendMetadata((1, 2), rows), OWN)

    expected = {"c": [0], "b": [0, 1], "a": [0, 2, 1]}
    assert {
        topic["topic_name"]: [state["partition_index"] for state in topic["partition_states"]]
        for topic in body["topic_states"]
    } == expected


def test_update_metadata_without_rows_has_no_topics(cluster: Cluster) -> None:
    """It contains only the live brokers."""
    nothing = np.zeros(0, dtype=np.int32)

    assert update_metadata(cluster, SendMetadata((1,), nothing), OWN)["topic_states"] == []


def test_the_full_state_covers_all_but_deletions(cluster: Cluster) -> None:
    """Requests that are kept when the full state replaces a queue."""
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
def test_every_body_can_be_encoded_in_every_version_that_is_used(key: ApiKey, version: int) -> None:
    """Protocol notes, Z36: ibp 2.6 takes LeaderAndIsr 4, UpdateMetadata 6 and StopReplica 3; moves, ids, racks and recovery are omitted there."""
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
