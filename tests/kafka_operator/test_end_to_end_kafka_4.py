"""The same stories as on version 3.9, on a stock Kafka 4.x cluster with a quorum of its own: three brokers, and a controller beside them."""

from __future__ import annotations

import pytest

from lab.kraft import KraftCluster
from tests.kafka_operator.stock import Brokers, Stock
from tests.kafka_operator.test_end_to_end import (
    test_a_cluster_shows_what_it_is,
    test_a_reassignment_moves_and_shows_how_far_it_is,
    test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled,
    test_a_topic_is_created_grows_changes_and_goes,
    test_drift_is_reverted_and_foreign_settings_stay,
)
from tests.kafka_operator.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_leaders_return_to_a_broker_that_is_back,
    test_what_is_imported_applies_and_is_ready_at_once,
)

__all__ = [
    "test_a_cluster_shows_what_it_is",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_reassignment_moves_and_shows_how_far_it_is",
    "test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled",
    "test_a_topic_is_created_grows_changes_and_goes",
    "test_drift_is_reverted_and_foreign_settings_stay",
    "test_leaders_return_to_a_broker_that_is_back",
    "test_what_is_imported_applies_and_is_ready_at_once",
]

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def brokers(kraft_cluster: KraftCluster) -> Brokers:
    """The cluster that takes the place of the one of version 3.9."""
    return kraft_cluster


@pytest.fixture(scope="module")
def kafka(kraft_cluster: KraftCluster) -> Stock:
    """The same, as its owner uses it."""
    return Stock(kraft_cluster.bootstrap())
