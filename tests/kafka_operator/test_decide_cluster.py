"""What is decided for a Cluster."""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.cluster import (
    NAMESPACE_GRACE_S,
    POLL_INTERVAL_S,
    RELEASE_AFTER_S,
    UNAVAILABLE_RETRY_S,
    ClusterSnapshot,
    Dependents,
    decide_cluster,
    decide_cluster_deletion,
)
from kafka_operator.decide.observed import ClusterSeen, Unavailable
from kafka_operator.decide.steps import Claim
from kafka_operator.decide.topic import FAILOVER_RETRY_CAP_S, FAILOVER_TIMEOUT_S
from kafka_operator.resources.cluster import ClusterStatus
from reconciler.decide.steps import Done, Release, Retry, Wait, WriteStatus
from tests.kafka_operator.makers import NOW, cluster, ready

SEEN = ClusterSnapshot(ClusterSeen("abc", 2, (1, 2, 3)))
AWAY = Unavailable("ClusterUnreachable", "No broker answers.")
FAILING_OVER = Unavailable("ControllerUnavailable", "The cluster's controller does not respond.", definite=False)


def test_a_cluster_is_held_then_shown_then_looked_at_now_and_then() -> None:
    """Brokers, controller, id; and no write while nothing changes (O1)."""
    assert decide_cluster(cluster(held=False), SEEN, NOW, 0.0) == Claim()
    step = decide_cluster(cluster(), SEEN, NOW, 0.0)
    assert isinstance(step, WriteStatus)
    status = step.status
    assert isinstance(status, ClusterStatus)
    assert ready(status.conditions) == ("True", "Reachable")
    assert (status.cluster_id, status.controller_id, status.broker_ids) == ("abc", 2, (1, 2, 3))
    assert decide_cluster(replace(cluster(), status=status), SEEN, NOW, 0.0) == Wait(POLL_INTERVAL_S)


def test_a_cluster_that_is_away_is_unknown_and_keeps_what_was_seen() -> None:
    """Named in one event, tried again with back-off."""
    first = decide_cluster(cluster(), SEEN, NOW, 0.0)
    assert isinstance(first, WriteStatus)
    known = replace(cluster(), status=first.status)

    step = decide_cluster(known, AWAY, NOW, 0.0)

    assert isinstance(step, WriteStatus)
    assert ready(step.status.conditions) == ("Unknown", "ClusterUnreachable")
    assert step.status.broker_ids == (1, 2, 3)
    assert step.event is not None
    assert isinstance(decide_cluster(replace(known, status=step.status), AWAY, NOW, 0.0), Retry)


def test_a_failover_of_the_controller_changes_no_status_while_it_may_still_end() -> None:
    """A broker or another controller takes over within a session time-out; a poll in between is repeated soon."""
    first = decide_cluster(cluster(), SEEN, NOW, 0.0)
    assert isinstance(first, WriteStatus)
    known = replace(cluster(), status=first.status)

    during = decide_cluster(known, FAILING_OVER, NOW, FAILOVER_TIMEOUT_S - 1)
    after = decide_cluster(known, FAILING_OVER, NOW, FAILOVER_TIMEOUT_S)

    assert during == Retry(UNAVAILABLE_RETRY_S, FAILOVER_RETRY_CAP_S)
    assert isinstance(after, WriteStatus)
    assert ready(after.status.conditions) == ("Unknown", "ControllerUnavailable")


def test_a_deleted_cluster_outlives_the_topics_that_are_deleted_with_it() -> None:
    """A namespace's deletion takes the Kafka topics with it, and never wedges."""
    deleted = cluster(deleted=True)

    assert decide_cluster_deletion(deleted, Dependents(), 0) == Release()
    assert isinstance(decide_cluster_deletion(deleted, Dependents(5, 5), RELEASE_AFTER_S - 1), Retry)
    assert decide_cluster_deletion(deleted, Dependents(5, 5), RELEASE_AFTER_S) == Release()


def test_a_deleted_cluster_waits_briefly_for_topics_that_nobody_deletes() -> None:
    """They may be next in a namespace's deletion; if they are not, the Cluster goes."""
    deleted = cluster(deleted=True)

    assert isinstance(decide_cluster_deletion(deleted, Dependents(5, 0), 0), Retry)
    assert decide_cluster_deletion(deleted, Dependents(5, 0), NAMESPACE_GRACE_S) == Release()
    assert decide_cluster_deletion(cluster(deleted=True, held=False), Dependents(5, 0), 0) == Done()
