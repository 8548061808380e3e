"""Decisions on a topic with another replication factor than its Topic declares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.decide.timeouts import TRANSIENT_ERROR_TIMEOUT_S
from kafka_operator.decide.topics.topic import decide_topic
from kafka_operator.decide.topics.topic_replication import POLL_INTERVAL_S
from kafka_operator.resources.reassignment import Reassignment, ReassignmentStatus, State
from kafka_operator.resources.reassignment_records import Progress
from kafka_operator.resources.reassignment_terms import Action
from kafka_operator.resources.topic import ReplicationChange, TopicStatus
from reconciler.decide.conditions import with_ready
from reconciler.decide.steps import Done, Retry, Wait, WriteStatus
from reconciler.names import Key
from tests.kafka_operator.makers import NOW, kafka_topic, ready, reassignment, topic, topic_view, with_replicas

ORDERS = Key(kinds.TOPIC, "shop", "orders")
FIRST = "orders-rf2-1"


def child(
    name: str, state: State | None, *, owner: Key | None = ORDERS, done: int = 0, message: str = ""
) -> Reassignment:
    """A Reassignment in that state, by default the Topic's own."""
    made: Reassignment = reassignment(plan=[])
    conditions = with_ready((), status="False", reason="Any", message=message, generation=1, now=NOW)
    return replace(
        made,
        metadata=replace(made.metadata, key=Key(kinds.REASSIGNMENT, "shop", name), owner=owner),
        status=ReassignmentStatus(state=state, progress=Progress(done, 100), conditions=conditions),
    )


def found(*items: Reassignment) -> dict[str, Reassignment]:
    """Reassignments by name."""
    return {item.key.name: item for item in items}


def status_of(step: object) -> TopicStatus:
    """The status that a step writes."""
    assert isinstance(step, WriteStatus), step
    assert isinstance(step.status, TopicStatus)
    return step.status


def test_an_edited_replication_factor_becomes_one_reassignment() -> None:
    """Features 5, (e) 5: named after the Topic and its generation, throttled as the Topic declares."""
    throttle = {"bytesPerSecond": 1_000_000}

    step = decide_topic(topic(replicationFactor=2, throttle=throttle), topic_view(kafka_topic()))

    spec: dict[str, Any] = {
        "clusterRef": {"name": "main"},
        "goal": {"replicationFactor": 2, "topics": ["orders"]},
        "approval": "Automatic",
        "throttle": throttle,
    }
    assert step == CreateReassignment(FIRST, spec)


def test_a_cluster_of_another_namespace_is_named_with_it() -> None:
    """The Reassignment is in the Topic's namespace, as its owner must be."""
    declared = topic(replicationFactor=2, clusterRef={"name": "main", "namespace": "kafka"})

    step = decide_topic(declared, topic_view(kafka_topic()))

    assert isinstance(step, CreateReassignment)
    assert step.spec["clusterRef"] == {"name": "main", "namespace": "kafka"}


def test_one_partition_with_another_number_of_replicas_is_enough() -> None:
    """The least is not all that counts."""
    seen = with_replicas(kafka_topic(), 3, (1, 2, 3, 4))

    assert isinstance(decide_topic(topic(), topic_view(seen)), CreateReassignment)


@pytest.mark.shows("E5")
def test_a_change_is_mirrored_in_steps_while_it_runs() -> None:
    """With progress; and few writes, however long it takes (O7). It is no problem, so there is no warning."""
    declared = topic(replicationFactor=2)
    running = child(FIRST, State.RUNNING, done=43, message="43 of 100 partitions have completed.")

    step = decide_topic(declared, topic_view(kafka_topic(), reassignments=found(running)))

    status = status_of(step)
    assert ready(status.conditions) == ("False", "ReplicationChanging")
    assert status.replication_change == ReplicationChange(2, "Running", "It is in progress.", 40, FIRST)
    assert isinstance(step, WriteStatus)
    assert step.event is not None
    assert not step.event.warning
    mirrored = replace(declared, status=status)
    later = found(child(FIRST, State.RUNNING, done=44, message="44 of 100 partitions have completed."))
    assert decide_topic(mirrored, topic_view(kafka_topic(), reassignments=later)) == Wait(POLL_INTERVAL_S)


def test_a_change_whose_moves_have_all_begun_is_not_over() -> None:
    """What moves is shown with the replicas that it will have."""
    arriving = kafka_topic(replicas=(1, 2))
    running = found(child(FIRST, State.RUNNING))

    step = decide_topic(topic(replicationFactor=2), topic_view(arriving, reassignments=running))

    assert ready(status_of(step).conditions) == ("False", "ReplicationChanging")


def test_a_change_that_is_edited_again_is_cancelled() -> None:
    """Its replicas are no longer wanted; when it has ended, the factor is compared again."""
    aims = reassignment(goal={"replicationFactor": 4, "topics": ["orders"]})
    running = child("orders-rf4-1", State.RUNNING)
    unwanted = replace(running, goal=aims.goal)

    step = decide_topic(topic(generation=2), topic_view(kafka_topic(), reassignments=found(unwanted)))

    assert step == CancelReassignment("orders-rf4-1", unwanted.metadata.resource_version)
    leaving = replace(unwanted, action=Action.CANCEL)
    step = decide_topic(topic(generation=2), topic_view(kafka_topic(), reassignments=found(leaving)))
    change = status_of(step).replication_change
    assert change is not None
    assert change.target_replication_factor == 4
    over = replace(leaving, status=replace(leaving.status, state=State.CANCELLED))
    step = decide_topic(topic(generation=2), topic_view(kafka_topic(), reassignments=found(over)))
    assert ready(status_of(step).conditions) == ("True", "AsDeclared")


def test_a_change_that_is_over_leaves_nothing_behind_in_the_status() -> None:
    """As declared, without a change to report."""
    declared = topic(replicationFactor=2)
    running = topic_view(kafka_topic(), reassignments=found(child(FIRST, State.RUNNING)))
    changing = replace(declared, status=status_of(decide_topic(declared, running)))
    over = topic_view(kafka_topic(replicas=(1, 2)), reassignments=found(child(FIRST, State.COMPLETED)))

    status = status_of(decide_topic(changing, over))

    assert ready(status.conditions) == ("True", "AsDeclared")
    assert status.replication_change is None


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED])
def test_a_failed_change_is_reported_and_not_retried_automatically(state: State) -> None:
    """A user has to delete it, or edit the Topic."""
    declared = topic(replicationFactor=2)
    failed = found(child(FIRST, state, message="No broker 9."))

    status = status_of(decide_topic(declared, topic_view(kafka_topic(), reassignments=failed)))

    assert ready(status.conditions) == ("False", "ReplicationChangeFailed")
    assert "No broker 9. Delete it, or edit this Topic" in status.conditions[0].message
    edited = topic(replicationFactor=2, generation=2)
    step = decide_topic(edited, topic_view(kafka_topic(), reassignments=failed))
    assert isinstance(step, CreateReassignment)
    assert step.name == "orders-rf2-2"


def test_a_factor_that_was_changed_again_outside_is_changed_back_after_a_time() -> None:
    """Drift of the same generation; metadata may lag behind a change that has just completed."""
    declared = topic(replicationFactor=2)
    over = found(child(FIRST, State.COMPLETED))

    assert isinstance(decide_topic(declared, topic_view(kafka_topic(), reassignments=over)), Retry)
    step = decide_topic(declared, topic_view(kafka_topic(), reassignments=over, waited_s=TRANSIENT_ERROR_TIMEOUT_S))
    assert isinstance(step, CreateReassignment)
    assert step.name == f"{FIRST}-1"


def test_a_factor_that_another_client_raised_is_reported_and_no_replica_removed() -> None:
    """A user's own Reassignment takes precedence over an earlier declaration; otherwise the operator would remove replicas.

    This holds until the Topic is edited: a new declaration is carried out.
    """
    declared = topic(replicationFactor=2)
    settled = replace(declared, status=status_of(decide_topic(declared, topic_view(kafka_topic(replicas=(1, 2))))))
    raised = topic_view(kafka_topic(replicas=(1, 2, 3)), waited_s=TRANSIENT_ERROR_TIMEOUT_S)

    failed = replace(settled, status=status_of(decide_topic(settled, replace(raised, failure=Failure(37, "", "")))))

    reported = status_of(decide_topic(failed, raised))

    assert ready(reported.conditions) == ("False", "ReplicationFactorRaised")
    assert [item.field for item in reported.drift] == ["replicationFactor"]
    assert decide_topic(replace(settled, status=reported), raised) == Wait(POLL_INTERVAL_S)
    edited = replace(topic(replicationFactor=2, generation=2), status=reported)
    assert isinstance(decide_topic(edited, raised), CreateReassignment)


def test_a_raised_factor_is_reported_when_it_is_seen_twice() -> None:
    """A move may have ended while a broker's metadata still has its previous replicas."""
    declared = topic(replicationFactor=2)
    settled = replace(declared, status=status_of(decide_topic(declared, topic_view(kafka_topic(replicas=(1, 2))))))
    raised = topic_view(kafka_topic(replicas=(1, 2, 3)))

    assert isinstance(decide_topic(settled, raised), Retry)
    assert ready(status_of(decide_topic(settled, replace(raised, waited_s=1.0))).conditions) == (
        "False",
        "ReplicationFactorRaised",
    )


def test_a_factor_that_another_client_lowered_is_raised_again() -> None:
    """More replicas do no harm."""
    declared = topic(replicationFactor=3)
    settled = replace(declared, status=status_of(decide_topic(declared, topic_view(kafka_topic()))))
    lowered = topic_view(kafka_topic(replicas=(1, 2)), waited_s=TRANSIENT_ERROR_TIMEOUT_S)

    assert isinstance(decide_topic(settled, lowered), CreateReassignment)


def test_a_name_that_another_owner_has_is_skipped() -> None:
    """It is another Reassignment, and has no influence on the Topic's own."""
    taken = found(child(FIRST, State.FAILED, owner=None))

    step = decide_topic(
        topic(replicationFactor=2), topic_view(kafka_topic(), reassignments=taken, waited_s=TRANSIENT_ERROR_TIMEOUT_S)
    )

    assert isinstance(step, CreateReassignment)
    assert step.name == f"{FIRST}-1"


def test_other_moves_of_the_topic_are_waited_for() -> None:
    """A user's Reassignment: a second plan for a partition would conflict with it."""
    seen = replace(kafka_topic(), moving=(2,))

    step = decide_topic(topic(replicationFactor=2), topic_view(seen))

    assert ready(status_of(step).conditions) == ("False", "ReassignmentInProgress")
    waiting = replace(topic(replicationFactor=2), status=status_of(step))
    assert decide_topic(waiting, topic_view(seen)) == Wait(POLL_INTERVAL_S)


def test_settings_and_partitions_come_before_the_replication_factor() -> None:
    """They take no time, and new partitions are created with the factor of the topic."""
    step = decide_topic(topic(replicationFactor=2, partitions=8), topic_view(kafka_topic()))

    assert not isinstance(step, CreateReassignment | WriteStatus | Done)


def test_a_long_name_leaves_room_and_stays_its_own() -> None:
    """An object's name has 253 characters at most."""
    steps = [decide_topic(topic("o" * 250 + end, replicationFactor=2), topic_view(kafka_topic())) for end in "ab"]

    names = {step.name for step in steps if isinstance(step, CreateReassignment)}
    assert len(names) == 2
    assert all(len(name) <= 253 for name in names)
