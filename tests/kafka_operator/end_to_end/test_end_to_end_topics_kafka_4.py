"""Policies of Topics on a stock Kafka 4.x cluster with a quorum of its own (KRaft): those that need more of the brokers than topics and settings."""

from __future__ import annotations

import pytest

from lab.peers.kraft import KraftCluster
from tests.kafka_operator.end_to_end.test_end_to_end_topics import (
    test_a_change_that_the_brokers_refuse_in_part_is_not_made,
    test_an_edited_replication_factor_is_carried_out_under_a_throttle,
)
from tests.kafka_operator.stock import Stock

__all__ = [
    "test_a_change_that_the_brokers_refuse_in_part_is_not_made",
    "test_an_edited_replication_factor_is_carried_out_under_a_throttle",
]

pytestmark = [pytest.mark.kubernetes, pytest.mark.kafka]


@pytest.fixture(scope="module")
def kafka(kraft_cluster: KraftCluster) -> Stock:
    """It takes the place of the cluster of version 3.9."""
    return Stock(kraft_cluster.bootstrap())
