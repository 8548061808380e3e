"""Tests of version 3.9 on a stock Kafka 4.x cluster: three brokers and a controller of its own.

Those whose outcome does not depend on the version are in test_end_to_end_kafka_4_further.py.
"""

from __future__ import annotations

import json

import pytest
from confluent_kafka.admin import NewTopic
from typer.testing import CliRunner

from kafka_operator.decide.clusters.cordon import SETTING
from lab.peers.kraft import KraftCluster
from lab.processes.waiting import wait_until
from steward.main import kubectl_app
from tests.kafka_operator.end_to_end.test_end_to_end import (
    test_a_cluster_status_has_its_brokers_and_controller,
    test_a_topic_is_created_extended_changed_and_deleted,
)
from tests.kafka_operator.end_to_end.test_end_to_end import (
    test_bad_input_is_reported_with_the_brokers_message as report_bad_input,
)
from tests.kafka_operator.end_to_end.test_end_to_end_moves import (
    SLOW,
    test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back,
    until_state,
)
from tests.kafka_operator.live import PATIENCE_S, Namespace
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.stock import Brokers, Stock

__all__ = [
    "test_a_cluster_status_has_its_brokers_and_controller",
    "test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back",
    "test_a_topic_is_created_extended_changed_and_deleted",
]

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]

TOO_MANY = (
    "Unable to replicate the partition 4 time(s): "
    "The target replication factor of 4 cannot be reached because only 3 broker(s) are registered "
    "or some brokers have all their log directories cordoned."
)


@pytest.fixture(scope="module")
def brokers(kraft_cluster: KraftCluster) -> Brokers:
    """The cluster that replaces the one of version 3.9."""
    return kraft_cluster


@pytest.fixture(scope="module")
def kafka(kraft_cluster: KraftCluster) -> Stock:
    """The same cluster, as its owner uses it."""
    return Stock(kraft_cluster.bootstrap())


def test_a_cluster_status_has_its_versions(shop: Namespace) -> None:
    """The brokers' software version, and metadata.version instead of an inter-broker protocol."""
    versions = shop.status("Cluster", "main")["versions"]

    assert (versions["software"], versions["metadataVersion"]) == ("4.3", "4.3-IV0")
    assert "interBrokerProtocol" not in versions


@pytest.mark.shows("F31")
@pytest.mark.parametrize(
    ("name", "spec", "reason", "message"),
    [
        (
            "rf",
            {"replicationFactor": 4},
            "NotEnoughBrokers",
            TOO_MANY,
        ),
        ("key", {"config": {"no.such": "1"}}, "InvalidConfig", "Unknown topic config name: no.such"),
    ],
)
def test_bad_input_is_reported_with_the_brokers_message(
    shop: Namespace, kafka: Stock, name: str, spec: dict[str, object], reason: str, message: str
) -> None:
    """Its own controller has words of its own; the reasons are the same."""
    report_bad_input(shop, kafka, name, spec, reason, message)


@pytest.mark.shows("F14")
def test_the_goal_racks_moves_a_second_replica_out_of_its_rack(shop: Namespace, kafka: Stock) -> None:
    """Brokers 2 and 3 are in one rack: approved and carried out, one of the replicas is on broker 1, and nothing else moves."""
    kafka.create("e2e-racks", [[2, 3], [1, 2]])
    goal = {"racks": True, "topics": ["e2e-racks"]}
    shop.apply(raw_reassignment(goal=goal))
    proposed = until_state(shop, "Proposed")
    assert [item["partition"] for item in proposed["plan"]] == [0]

    shop.apply(raw_reassignment(goal=goal, approvedDigest=proposed["digest"]))

    until_state(shop, "Completed")
    target = [proposed["plan"][0]["replicas"], [1, 2]]
    assert 1 in target[0]
    wait_until(lambda: kafka.replicas("e2e-racks") == target, timeout_s=PATIENCE_S, what="the racks are respected")


@pytest.mark.shows("E18")
def test_what_if_by_the_name_of_a_cluster_has_the_figures_of_the_reassignments_proposal(
    shop: Namespace, kafka: Stock
) -> None:
    """`kubectl steward what-if --remove-brokers`, then a Reassignment with that goal: the same bytes, the same replicas by broker."""
    kafka.create("e2e-what-if", [[3, 1], [2, 3], [1, 2]])
    kafka.fill("e2e-what-if", 150)
    where = ["--cluster", "main", "--namespace", shop.name, "--kubeconfig", str(shop.api.kubeconfig)]
    shop.apply(raw_reassignment(goal={"removeBrokers": [3]}))
    proposal = until_state(shop, "Proposed")["proposal"]

    answer = CliRunner().invoke(kubectl_app, ["what-if", *where, "--remove-brokers", "3", "--output", "json"])

    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["repair"]["bytes"] == proposal["bytesToMove"] > 900_000
    proposed = {broker["id"]: broker["replicasAfter"] for broker in proposal["brokers"]}
    assert {broker["id"]: broker["replicas_after"] for broker in document["brokers"]} == {3: 0} | proposed
    assert document["notes"] == []
    wrong = CliRunner().invoke(kubectl_app, ["what-if", *where[:1], "mian", *where[2:], "--lose", "broker=3"])
    assert (wrong.exit_code, wrong.stderr) == (
        1,
        f"steward what-if: Namespace {shop.name} has no Cluster mian. Clusters there: main.\n",
    )


@pytest.mark.shows("E17")
def test_a_consumer_group_that_lags_blocks_the_start_until_it_has_caught_up(shop: Namespace, kafka: Stock) -> None:
    """Offsets of the group's coordinator and ends of the partitions' leaders."""
    kafka.create("e2e-lag", [[1, 2]])
    kafka.fill("e2e-lag", 30)
    kafka.commit("e2e-billing", "e2e-lag", 10)
    guard = {
        "consumerLag": [{"group": "e2e-billing", "maxRecords": 5}],
        "maxUnderMinIsrPartitions": 1000,
        "resumeAfterSeconds": 0,
    }
    shop.apply(raw_reassignment(plan=raw_plan("e2e-lag", p0=[2, 3]), guard=guard))
    shop.until("Reassignment", "move", "False", "GuardBreached")
    assert "lag of group e2e-billing: 20 (maximum 5)" in shop.ready("Reassignment", "move")[2]
    assert kafka.replicas("e2e-lag") == [[1, 2]]

    kafka.commit("e2e-billing", "e2e-lag", 30)

    until_state(shop, "Completed")


ENOUGH_PARTITIONS = 48
"""Kafka takes racks in turn and draws the order of their brokers again after each three partitions (StripedReplicaPlacer). Brokers 2 and 3
share a rack, so that one of them gets none of three partitions with probability 1/4, and none of 48 with less than one in a thousand million."""


def holders_of_a_new_topic(kafka: Stock, topic: str) -> set[int]:
    """The brokers on which Kafka places a new topic."""
    new = NewTopic(topic, num_partitions=ENOUGH_PARTITIONS, replication_factor=1)
    kafka.admin.create_topics([new])[topic].result(PATIENCE_S)
    wait_until(lambda: kafka.exists(topic), timeout_s=PATIENCE_S, what=f"the brokers know {topic}")
    return {broker for replicas in kafka.replicas(topic) for broker in replicas}


@pytest.mark.shows("F43")
def test_a_broker_that_is_removed_takes_no_new_replicas_until_the_removal_is_cancelled(
    shop: Namespace, kafka: Stock
) -> None:
    """KIP-1066: Kafka 4.3 places no replica on a cordoned broker; `cordoned.log.dirs` is removed at the end."""
    kafka.create("e2e-cordoned", [[3, 1], [3, 2]])
    kafka.fill("e2e-cordoned", 200)
    removal = {"goal": {"removeBrokers": [3]}, "approval": "Automatic", "throttle": SLOW}
    shop.apply(raw_reassignment(**removal))

    until_state(shop, "Running")

    assert kafka.broker_config(3, SETTING) == "*"
    assert [cordon["id"] for cordon in shop.status("Cluster", "main")["cordons"]] == [3]
    assert holders_of_a_new_topic(kafka, "e2e-placed-elsewhere") == {1, 2}
    shop.apply(raw_reassignment(**removal, action="Cancel"))
    until_state(shop, "Cancelled")
    wait_until(lambda: kafka.broker_config(3, SETTING) is None, timeout_s=PATIENCE_S, what="the cordon is removed")
    assert holders_of_a_new_topic(kafka, "e2e-placed-everywhere") == {1, 2, 3}
