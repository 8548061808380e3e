"""Invariants of the soak test, checked on plain snapshots."""

from dataclasses import replace

from bench.soaking.invariants import Wanted, always, once_quiet
from bench.soaking.requests import cancelled_to
from bench.soaking.snapshot import Snapshot, State, Topic

OURS = 1000
TOPIC = Topic(born=5, replicas={0: (1, 2, 3)}, moving=frozenset())
STATE = State(leader=1, leader_epoch=4, isr=(1, 2, 3), version=9)
QUIET = Snapshot(OURS, 7, {"a": TOPIC}, {("a", 0): STATE})


def with_state(state: State) -> Snapshot:
    """The quiet cluster with another state of its partition."""
    return replace(QUIET, states={("a", 0): state})


def with_topic(topic: Topic) -> Snapshot:
    """The quiet cluster with another topic."""
    return replace(QUIET, topics={"a": topic})


def test_a_quiet_cluster_breaks_nothing() -> None:
    """The base of all other cases."""
    assert list(always(QUIET, QUIET, OURS)) == []
    assert list(once_quiet(QUIET, Wanted(present={"a"}), OURS)) == []


def test_an_assignment_with_the_controller_is_a_violation_at_any_time() -> None:
    """Protocol notes, Z22: no assignment ever names the controller's id."""
    assert [
        "assignment" in wrong for wrong in always(with_topic(replace(TOPIC, replicas={0: (1, OURS)})), QUIET, OURS)
    ] == [True]
    assert [
        "state" in wrong for wrong in always(with_state(replace(STATE, isr=(1, OURS), version=10)), QUIET, OURS)
    ] == [True]


def test_epochs_never_go_back() -> None:
    """C4, C5: leader epoch, partition epoch, controller epoch."""
    for back in (
        with_state(replace(STATE, leader_epoch=3, version=10)),
        with_state(replace(STATE, version=8)),
        replace(QUIET, controller_epoch=6),
    ):
        assert len(list(always(back, QUIET, OURS))) == 1


def test_a_new_leader_has_a_new_epoch() -> None:
    """C4: one leader for each leader epoch."""
    assert len(list(always(with_state(replace(STATE, leader=2, version=10)), QUIET, OURS))) == 1
    assert list(always(with_state(replace(STATE, leader=2, leader_epoch=5, version=10)), QUIET, OURS)) == []


def test_a_recreated_topic_starts_with_new_epochs() -> None:
    """Epochs of an earlier topic of the same name do not count."""
    recreated = replace(with_topic(replace(TOPIC, born=50)), states={("a", 0): State(1, 0, (1, 2, 3), 0)})

    assert list(always(recreated, QUIET, OURS)) == []


def test_unfinished_work_is_reported() -> None:
    """Each of the things that a round waits for."""
    unlike = (
        replace(QUIET, controller=2),
        replace(QUIET, deletions=frozenset({"b"})),
        with_topic(replace(TOPIC, moving=frozenset({0}))),
        with_state(replace(STATE, isr=(1, 2))),
        replace(QUIET, states={}),
    )
    for snapshot in unlike:
        assert len(list(once_quiet(snapshot, Wanted(), OURS))) == 1


def test_promises_are_kept() -> None:
    """An acknowledged creation, deletion or move; a cut-off one may end either way."""
    kept = Wanted(replicas={("a", 0): {(1, 2, 3), (4, 5, 6)}})
    broken = (Wanted(present={"b"}), Wanted(absent={"a"}), Wanted(replicas={("a", 0): {(4, 5, 6)}}))

    assert list(once_quiet(QUIET, kept, OURS)) == []
    for wanted in broken:
        assert len(list(once_quiet(QUIET, wanted, OURS))) == 1


def test_a_cancelled_move_ends_on_its_origin_in_the_order_of_the_union() -> None:
    """KafkaController, ReplicaAssignment.originReplicas: the union without the added replicas; the old order is not kept."""
    assert cancelled_to(origin=(3, 4, 2), target=(1, 3, 2)) == (3, 2, 4)
    assert cancelled_to(origin=(1, 2, 3), target=(1, 2, 3)) == (1, 2, 3)
