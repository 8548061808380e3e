"""Further tests of version 3.9 on a stock Kafka 4.x cluster: what they ask of the brokers is the same in both versions."""

from __future__ import annotations

import pytest

from tests.kafka_operator.test_end_to_end import test_drift_is_reverted_and_undeclared_settings_are_kept
from tests.kafka_operator.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_imported_topics_are_accepted_and_ready_at_once,
)
from tests.kafka_operator.test_end_to_end_kafka_4 import brokers, kafka
from tests.kafka_operator.test_end_to_end_moves import (
    prometheus,
    test_a_query_over_its_threshold_takes_a_running_move_back,
)
from tests.kafka_operator.test_end_to_end_topics import (
    test_a_topic_observes_and_then_enforces,
    test_an_existing_topic_that_differs_is_adopted_by_consent,
    test_corrected_drift_and_a_recreated_topic_are_reported_once,
    test_unmanaged_settings_are_not_changed,
)

__all__ = [
    "brokers",
    "kafka",
    "prometheus",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_query_over_its_threshold_takes_a_running_move_back",
    "test_a_topic_observes_and_then_enforces",
    "test_an_existing_topic_that_differs_is_adopted_by_consent",
    "test_corrected_drift_and_a_recreated_topic_are_reported_once",
    "test_drift_is_reverted_and_undeclared_settings_are_kept",
    "test_imported_topics_are_accepted_and_ready_at_once",
    "test_unmanaged_settings_are_not_changed",
]

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.kafka,
    pytest.mark.timeout(240),
    pytest.mark.soak("kafka_operator/test_end_to_end_kafka_4.py"),
]
