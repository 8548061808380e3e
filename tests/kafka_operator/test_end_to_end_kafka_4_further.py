"""Further tests of version 3.9 on a stock Kafka 4.x cluster: what they ask of the brokers is the same in both versions."""

from __future__ import annotations

import pytest

from tests.kafka_operator.test_end_to_end import test_drift_is_reverted_and_undeclared_settings_are_kept
from tests.kafka_operator.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_what_is_imported_applies_and_is_ready_at_once,
)
from tests.kafka_operator.test_end_to_end_kafka_4 import brokers, kafka
from tests.kafka_operator.test_end_to_end_topics import (
    test_a_topic_observes_and_then_enforces,
    test_a_topic_that_is_there_and_differs_is_adopted_by_consent,
    test_drift_that_is_mended_and_a_topic_created_anew_are_told_once,
    test_settings_left_alone_are_left_alone,
)

__all__ = [
    "brokers",
    "kafka",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_topic_observes_and_then_enforces",
    "test_a_topic_that_is_there_and_differs_is_adopted_by_consent",
    "test_drift_is_reverted_and_undeclared_settings_are_kept",
    "test_drift_that_is_mended_and_a_topic_created_anew_are_told_once",
    "test_settings_left_alone_are_left_alone",
    "test_what_is_imported_applies_and_is_ready_at_once",
]

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.kafka,
    pytest.mark.timeout(240),
    pytest.mark.soak("kafka_operator/test_end_to_end_kafka_4.py"),
]
