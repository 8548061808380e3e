"""The checks of a history find its violations, and none in a valid history."""

import json
from collections.abc import Sequence

import pytest

from lab.checks.controller_history import Judge
from lab.checks.zookeeper_history import Write

FIRST, SECOND, BROKER = 0xA, 0xB, 0xC
TOPIC, STATE = "/brokers/topics/t", "/brokers/topics/t/partitions/0/state"


def epoch(session: int, number: int) -> Write:
    """A controller's epoch."""
    return Write(1, session, "/controller_epoch", str(number).encode())


def topic(session: int, replicas: Sequence[int], adding: Sequence[int] = (), removing: Sequence[int] = ()) -> Write:
    """A topic's assignment of one partition."""
    moves = {
        "adding_replicas": {"0": adding} if adding else {},
        "removing_replicas": {"0": removing} if removing else {},
    }
    return Write(1, session, TOPIC, json.dumps({"partitions": {"0": replicas}, **moves}).encode())


def state(session: int, leader: int, isr: Sequence[int], leader_epoch: int = 0, controller_epoch: int = 1) -> Write:
    """A partition's state."""
    document = {"leader": leader, "isr": isr, "leader_epoch": leader_epoch, "controller_epoch": controller_epoch}
    return Write(1, session, STATE, json.dumps(document).encode())


def deletion(session: int, path: str) -> Write:
    """A deleted znode."""
    return Write(1, session, path, None)


MADE = [epoch(FIRST, 1), topic(FIRST, [1, 2, 3]), state(FIRST, 1, [1, 2, 3])]
MOVING = [*MADE, topic(FIRST, [4, 1, 2, 3], [4], [3]), state(FIRST, 1, [1, 2, 3], 1), state(FIRST, 1, [4, 1, 2, 3], 1)]


def violations(writes: Sequence[Write]) -> list[str]:
    """The violations, without their positions."""
    judge = Judge()
    judge.judge(writes)
    return [violation.split(" (zxid")[0] for violation in judge.violations]


def test_the_valid_history_of_two_controllers_has_no_violation() -> None:
    """An election, a move to its end, a leader's change of its ISR, a deletion; the second controller continues the work of the first."""
    registered = Write(1, BROKER, "/brokers/ids/1", b"{}", is_new=True)
    ended = [state(FIRST, 1, [4, 1, 2], 2), topic(FIRST, [4, 1, 2])]
    second = [epoch(SECOND, 2), state(SECOND, 4, [4, 2], 3, 2), registered, state(SECOND, 1, [1], 4, 2)]
    own = [state(BROKER, 1, [1, 2], 4, 2)]
    deleted = [deletion(SECOND, STATE), deletion(SECOND, TOPIC), deletion(SECOND, "/admin/delete_topics/t")]

    created = [topic(BROKER, [3])._replace(is_new=True)]

    assert violations([*MOVING, *ended, *second, *own, *deleted, *created]) == []
    assert violations([*MOVING, state(FIRST, 1, [1, 2, 3], 2), topic(FIRST, [1, 2, 3])]) == []


@pytest.mark.parametrize(
    ("writes", "expected"),
    [
        ([state(FIRST, 1, [2, 3], 1)], "C1: the leader 1 is not in the ISR [2, 3]"),
        ([state(FIRST, 1, [1, 5], 1)], "C2: the ISR [1, 5] is not of the assignment [1, 2, 3]"),
        ([state(FIRST, 1, [1, 2, 2], 1)], "C3: a replica is twice in the ISR [1, 2, 2]"),
        ([state(FIRST, 1, [1], 1), state(FIRST, 1, [1], 0)], "C4: the leader epoch went from 1 to 0"),
        ([state(FIRST, 2, [2])], "C4: the leader went from 1 to 2 under epoch 0"),
        ([epoch(SECOND, 1)], "C5: the controller epoch went from 1 to 1"),
        ([state(FIRST, 1, [1], 1, 0)], "C5: written under controller epoch 0, while it is 1"),
        ([epoch(SECOND, 2), deletion(FIRST, STATE)], "C6: written by session 0xa, while epoch 2 is of 0xb"),
        ([epoch(SECOND, 2), topic(FIRST, [1, 2, 3, 4])], "C6: written by session 0xa, while epoch 2 is of 0xb"),
        (
            [epoch(SECOND, 2), deletion(FIRST, TOPIC), topic(FIRST, [1, 2, 3])._replace(is_new=True)],
            "C6: written by session 0xa, while epoch 2 is of 0xb",
        ),
        ([topic(FIRST, [1, 2])], "C2: the ISR [1, 2, 3] is not of the assignment [1, 2] of partition 0"),
    ],
)
def test_each_violation_is_reported_with_its_invariant(writes: Sequence[Write], expected: str) -> None:
    """C1 to C6, each broken once."""
    assert set(violations([*MADE, *writes])) == {expected}


def test_a_move_with_another_result_is_reported() -> None:
    """C9: exactly at its target, or back."""
    (found,) = violations([*MOVING, topic(FIRST, [4, 1, 2, 3])])

    assert found.startswith("C9: the move of partition 0 ended at [4, 1, 2, 3], having been ")


def test_another_chroot_is_ignored() -> None:
    """Tests share a server."""
    judge = Judge("/here")
    judge.judge([state(FIRST, 1, [2, 3], 1)])

    assert judge.violations == []
