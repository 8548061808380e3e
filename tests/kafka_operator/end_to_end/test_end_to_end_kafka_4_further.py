"""Further tests of version 3.9 on a stock Kafka 4.x cluster: what they ask of the brokers is the same in both versions."""

from __future__ import annotations

import pytest

from tests.kafka_operator.end_to_end.test_end_to_end import (
    test_a_reassignment_moves_partitions_and_shows_its_progress,
    test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled,
    test_drift_is_reverted_and_undeclared_settings_are_kept,
    test_the_oldest_topic_wins_and_the_next_takes_over,
)
from tests.kafka_operator.end_to_end.test_end_to_end_elections import (
    test_a_partition_without_a_leader_gets_one_where_loss_is_accepted,
    test_imported_topics_are_accepted_and_ready_at_once,
    test_leaders_return_to_a_broker_that_is_back,
    test_resources_restored_without_status_are_not_run_again,
)
from tests.kafka_operator.end_to_end.test_end_to_end_kafka_4 import brokers, kafka
from tests.kafka_operator.end_to_end.test_end_to_end_moves import (
    prometheus,
    test_a_canary_moves_and_the_others_wait_for_the_approval_of_the_same_plan,
    test_a_goal_is_proposed_approved_and_reached,
    test_a_plan_in_config_maps_is_carried_out_if_its_digest_is_right,
    test_a_plan_outside_its_windows_waits_and_moves_once_one_is_open,
    test_a_query_over_its_threshold_takes_a_running_move_back,
    test_a_throttle_below_the_traffic_is_reported_before_any_move,
    test_a_throttled_move_that_is_killed_and_deleted_leaves_no_throttle,
    writer,
)
from tests.kafka_operator.end_to_end.test_end_to_end_topics import (
    team,
    test_a_foreign_finalizer_holds_the_kafka_topic_too,
    test_a_paused_topic_keeps_ready_and_goes_on_later,
    test_a_protected_topic_that_is_deleted_anyway_is_kept_in_kafka,
    test_a_topic_observes_and_then_enforces,
    test_an_existing_topic_that_differs_is_adopted_by_consent,
    test_corrected_drift_and_a_recreated_topic_are_reported_once,
    test_topics_of_another_namespace_are_bound_by_the_clusters_rules,
    test_unmanaged_settings_are_not_changed,
)

__all__ = [
    "brokers",
    "kafka",
    "prometheus",
    "team",
    "test_a_canary_moves_and_the_others_wait_for_the_approval_of_the_same_plan",
    "test_a_foreign_finalizer_holds_the_kafka_topic_too",
    "test_a_goal_is_proposed_approved_and_reached",
    "test_a_partition_without_a_leader_gets_one_where_loss_is_accepted",
    "test_a_paused_topic_keeps_ready_and_goes_on_later",
    "test_a_plan_in_config_maps_is_carried_out_if_its_digest_is_right",
    "test_a_plan_outside_its_windows_waits_and_moves_once_one_is_open",
    "test_a_protected_topic_that_is_deleted_anyway_is_kept_in_kafka",
    "test_a_query_over_its_threshold_takes_a_running_move_back",
    "test_a_reassignment_moves_partitions_and_shows_its_progress",
    "test_a_running_reassignment_survives_a_kill_refuses_an_overlap_and_is_cancelled",
    "test_a_throttle_below_the_traffic_is_reported_before_any_move",
    "test_a_throttled_move_that_is_killed_and_deleted_leaves_no_throttle",
    "test_a_topic_observes_and_then_enforces",
    "test_an_existing_topic_that_differs_is_adopted_by_consent",
    "test_corrected_drift_and_a_recreated_topic_are_reported_once",
    "test_drift_is_reverted_and_undeclared_settings_are_kept",
    "test_imported_topics_are_accepted_and_ready_at_once",
    "test_leaders_return_to_a_broker_that_is_back",
    "test_resources_restored_without_status_are_not_run_again",
    "test_the_oldest_topic_wins_and_the_next_takes_over",
    "test_topics_of_another_namespace_are_bound_by_the_clusters_rules",
    "test_unmanaged_settings_are_not_changed",
    "writer",
]

pytestmark = [
    pytest.mark.kubernetes,
    pytest.mark.kafka,
    pytest.mark.soak("kafka_operator/end_to_end/test_end_to_end_kafka_4.py"),
]
