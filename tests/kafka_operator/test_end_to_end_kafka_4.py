"""The same tests as on version 3.9, on a stock Kafka 4.x cluster: three brokers and a controller of its own."""

from __future__ import annotations

import pytest

from lab.kraft import KraftCluster
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.makers import raw_plan, raw_reassignment
from tests.kafka_operator.stock import Brokers, Stock
from tests.kafka_operator.test_end_to_end import (
    test_a_cluster_status_has_its_brokers_and_controller,
    test_a_topic_is_created_extended_changed_and_deleted,
    test_drift_is_reverted_and_undeclared_settings_are_kept,
)
from tests.kafka_operator.test_end_to_end import (
    test_bad_input_is_reported_with_the_brokers_message as report_bad_input,
)
from tests.kafka_operator.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_what_is_imported_applies_and_is_ready_at_once,
)
from tests.kafka_operator.test_end_to_end_moves import (
    test_a_canary_moves_and_the_others_wait_for_the_approval_of_the_same_plan,
    test_a_goal_is_proposed_approved_and_reached,
    test_a_plan_outside_its_windows_waits_and_moves_once_one_is_open,
    test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back,
    until_state,
)

__all__ = [
    "test_a_canary_moves_and_the_others_wait_for_the_approval_of_the_same_plan",
    "test_a_cluster_status_has_its_brokers_and_controller",
    "test_a_goal_is_proposed_approved_and_reached",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_plan_outside_its_windows_waits_and_moves_once_one_is_open",
    "test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back",
    "test_a_topic_is_created_extended_changed_and_deleted",
    "test_drift_is_reverted_and_undeclared_settings_are_kept",
    "test_what_is_imported_applies_and_is_ready_at_once",
]

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka, pytest.mark.timeout(240)]

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
    ("name", "spec", "reason", "words"),
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
    shop: Namespace, kafka: Stock, name: str, spec: dict[str, object], reason: str, words: str
) -> None:
    """Its own controller has words of its own; the reasons are the same."""
    report_bad_input(shop, kafka, name, spec, reason, words)


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
    shop.take(raw_reassignment(plan=raw_plan("e2e-lag", p0=[2, 3]), guard=guard))
    shop.until("Reassignment", "move", "False", "GuardBreached")
    assert "lag of group e2e-billing: 20 (maximum 5)" in shop.ready("Reassignment", "move")[2]
    assert kafka.replicas("e2e-lag") == [[1, 2]]

    kafka.commit("e2e-billing", "e2e-lag", 30)

    until_state(shop, "Completed")
