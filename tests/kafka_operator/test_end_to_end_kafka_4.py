"""The same stories as on version 3.9, on a stock Kafka 4.x cluster with a quorum of its own: three brokers, and a controller beside them."""

from __future__ import annotations

import pytest

from lab.kraft import KraftCluster
from tests.kafka_operator.live import Namespace
from tests.kafka_operator.stock import Brokers, Stock
from tests.kafka_operator.test_end_to_end import (
    test_a_cluster_shows_what_it_is,
    test_a_topic_is_created_grows_changes_and_goes,
    test_drift_is_reverted_and_foreign_settings_stay,
)
from tests.kafka_operator.test_end_to_end import (
    test_bad_input_is_told_in_the_brokers_words as tell_bad_input,
)
from tests.kafka_operator.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_what_is_imported_applies_and_is_ready_at_once,
)
from tests.kafka_operator.test_end_to_end_moves import (
    test_a_goal_is_proposed_approved_and_reached,
    test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back,
)

__all__ = [
    "test_a_cluster_shows_what_it_is",
    "test_a_goal_is_proposed_approved_and_reached",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_throttled_move_is_cancelled_and_one_without_goes_there_and_back",
    "test_a_topic_is_created_grows_changes_and_goes",
    "test_drift_is_reverted_and_foreign_settings_stay",
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
    """The cluster that takes the place of the one of version 3.9."""
    return kraft_cluster


@pytest.fixture(scope="module")
def kafka(kraft_cluster: KraftCluster) -> Stock:
    """The same, as its owner uses it."""
    return Stock(kraft_cluster.bootstrap())


def test_a_cluster_shows_its_versions(shop: Namespace) -> None:
    """What brokers are, and the level of their metadata in the place of a protocol between brokers."""
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
def test_bad_input_is_told_in_the_brokers_words(
    shop: Namespace, kafka: Stock, name: str, spec: dict[str, object], reason: str, words: str
) -> None:
    """Its own controller has words of its own; the reasons are the same."""
    tell_bad_input(shop, kafka, name, spec, reason, words)
