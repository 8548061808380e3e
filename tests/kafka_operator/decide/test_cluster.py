"""Decisions on a Cluster."""

from __future__ import annotations

from dataclasses import replace

from kafka_operator.decide.clusters.cluster import (
    NAMESPACE_GRACE_S,
    POLL_INTERVAL_S,
    RELEASE_AFTER_S,
    UNAVAILABLE_RETRY_S,
    ClusterSnapshot,
    Dependents,
    decide_cluster,
    decide_cluster_deletion,
)
from kafka_operator.decide.kafka.observed import ObservedCluster, ObservedQuorum, Quorum, Unavailable
from kafka_operator.decide.steps import Claim
from kafka_operator.decide.timeouts import FAILOVER_RETRY_CAP_S, FAILOVER_TIMEOUT_S
from kafka_operator.resources.cluster import Cluster, ClusterStatus
from kafka_operator.resources.quorum import QuorumStatus
from reconciler.decide.conditions import condition_of
from reconciler.decide.steps import Done, Release, ResourceEvent, Retry, Wait, WriteStatus
from tests.kafka_operator.makers import NOW, cluster, quorum, ready

SEEN = ClusterSnapshot(ObservedCluster("abc", 2, (1, 2, 3)))
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


def shown(known: Cluster, seen: ObservedQuorum) -> tuple[Cluster, ResourceEvent | None]:
    """The Cluster after a read that found this quorum, and the event."""
    controller_id = seen.leader_id if isinstance(seen, Quorum) else -1
    step = decide_cluster(known, ClusterSnapshot(ObservedCluster("abc", controller_id, (1, 2, 3), seen)), NOW, 0.0)
    assert isinstance(step, WriteStatus)
    return replace(known, status=step.status), step.event


def quorum_in_sync(known: Cluster) -> tuple[str, str, str]:
    """Status, reason and message of condition QuorumInSync."""
    found = condition_of(known.status.conditions, "QuorumInSync")
    return ("", "", "") if found is None else (found.status, found.reason, found.message)


def test_the_quorum_and_its_condition_are_shown() -> None:
    """DescribeQuorum (KIP-595); a voter that restarts is no event, and an election keeps the last known quorum."""
    known, _ = shown(cluster(), quorum(3, 1, 2))
    assert (known.status.mode, known.status.controller_id) == ("KRaft", 3)
    assert known.status.quorum == QuorumStatus(7, (1, 2, 3))
    assert quorum_in_sync(known) == ("True", "AllInSync", "Every voter of the quorum is in sync with the leader.")

    known, event = shown(known, quorum(3, 1, 2, late=(2,)))
    assert quorum_in_sync(known) == ("False", "VotersOutOfSync", "Voters out of sync with the leader: 2.")
    assert event is None

    known, event = shown(known, Quorum(-1))
    assert quorum_in_sync(known)[:2] == ("False", "NoLeader")
    assert event is not None
    assert known.status.quorum == QuorumStatus(7, (1, 2, 3), (2,))


def test_a_quorum_that_is_not_visible_is_reported_once() -> None:
    """The cluster is Ready all the same; the message has the missing right."""
    hidden = Unavailable("QuorumNotVisible", "Kafka rejects DescribeQuorum with CLUSTER_AUTHORIZATION_FAILED.")

    known, event = shown(replace(cluster(), status=ClusterStatus(controller_id=1)), hidden)

    assert quorum_in_sync(known) == ("Unknown", hidden.reason, hidden.message)
    assert event == ResourceEvent(warning=True, reason=hidden.reason, message=hidden.message)
    assert (known.status.mode, known.status.controller_id, known.status.quorum) == ("KRaft", -1, None)
    same = decide_cluster(known, ClusterSnapshot(ObservedCluster("abc", -1, (1, 2, 3), hidden)), NOW, 0.0)
    assert same == Wait(POLL_INTERVAL_S)


def test_a_cluster_in_zookeeper_mode_has_no_quorum() -> None:
    """The condition would never become True."""
    known, _ = shown(cluster(), None)

    assert (known.status.mode, known.status.quorum, quorum_in_sync(known)[0]) == ("ZooKeeper", None, "")


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


def test_a_deleted_cluster_waits_briefly_for_topics_that_are_not_deleted() -> None:
    """They may be next in a namespace's deletion; if they are not, the Cluster goes."""
    deleted = cluster(deleted=True)

    assert isinstance(decide_cluster_deletion(deleted, Dependents(5, 0), 0), Retry)
    assert decide_cluster_deletion(deleted, Dependents(5, 0), NAMESPACE_GRACE_S) == Release()
    assert decide_cluster_deletion(cluster(deleted=True, held=False), Dependents(5, 0), 0) == Done()
