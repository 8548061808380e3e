"""Kafka's error codes as reasons of the Ready condition, and which of them pass by themselves.

Codes are Kafka's own (org.apache.kafka.common.protocol.Errors). The message is always the broker's.
"""

from __future__ import annotations

from kafka_operator.decide.kafka.observed import Failure

UNKNOWN_TOPIC_OR_PARTITION = 3
NOT_CONTROLLER = 41
TOPIC_ALREADY_EXISTS = 36
INVALID_REPLICATION_FACTOR = 38
PREFERRED_LEADER_NOT_AVAILABLE = 80
ELIGIBLE_LEADERS_NOT_AVAILABLE = 83
ELECTION_NOT_NEEDED = 84
NO_REASSIGNMENT_IN_PROGRESS = 85

KAFKA_ERROR = "KafkaError"

REASONS = {
    3: "UnknownTopic",
    17: "InvalidTopic",
    29: "NotAuthorized",
    31: "NotAuthorized",
    36: "TopicExists",
    37: "InvalidPartitions",
    INVALID_REPLICATION_FACTOR: "NotEnoughBrokers",
    39: "InvalidReplicaAssignment",
    40: "InvalidConfig",
    42: "InvalidRequest",
    44: "PolicyViolation",
    60: "ReassignmentInProgress",
    73: "DeletionDisabled",
    80: "PreferredLeaderNotAvailable",
    83: "EligibleLeadersNotAvailable",
    85: "NotMoving",
}

PASSING = {
    5,  # LEADER_NOT_AVAILABLE: the topic is being created
    6,  # NOT_LEADER_OR_FOLLOWER
    7,  # REQUEST_TIMED_OUT: done or not done, the next read shows it
    8,  # BROKER_NOT_AVAILABLE
    13,  # NETWORK_EXCEPTION
    14,  # COORDINATOR_LOAD_IN_PROGRESS
    36,  # TOPIC_ALREADY_EXISTS: created by an earlier call of the operator that timed out, or not gone yet after a deletion
    NOT_CONTROLLER,
    60,  # REASSIGNMENT_IN_PROGRESS
    77,  # STALE_BROKER_EPOCH: a broker that restarts
    89,  # THROTTLING_QUOTA_EXCEEDED
}


def reason_of(failure: Failure) -> str:
    """Return the reason that the Ready condition gives for a failure."""
    return REASONS.get(failure.code, KAFKA_ERROR)


def message_of(failure: Failure) -> str:
    """Return the broker's message, or the error's name where it sent none."""
    return failure.message or failure.name


def passes_by_itself(failure: Failure) -> bool:
    """Return whether a retry is likely to succeed without intervention."""
    return failure.code in PASSING


def may_pass_for_an_election(failure: Failure) -> bool:
    """Return whether a retry may succeed: a replica that is catching up, a broker that is starting, a controller change."""
    catching_up = {PREFERRED_LEADER_NOT_AVAILABLE, ELIGIBLE_LEADERS_NOT_AVAILABLE}
    return failure.code in catching_up or passes_by_itself(failure)
