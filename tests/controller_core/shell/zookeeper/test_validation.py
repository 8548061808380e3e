"""What is read must keep the rules that decisions rest on: C1 to C4 for single znodes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.decisions.transition import apply
from controller_core.model.broker import Broker
from controller_core.model.changes import BrokersObserved, StatesObserved
from controller_core.model.cluster import Cluster
from controller_core.model.columns import pad
from controller_core.model.events import (
    Activated,
    AlterReassignments,
    BrokersRead,
    ControlledShutdown,
    DeleteTopics,
    Event,
    TopicRecord,
)
from controller_core.model.ids import MAX_BROKER_ID, TopicPartition
from controller_core.shell.zookeeper.validation import MAX_LEADER_EPOCH, MAX_REPLICAS, check_assignment, is_valid_state
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.observed_topics import build_topic_added
from controller_core.zookeeper_mode.propagation import apply_and_build_requests
from kafka_zookeeper.formats.documents import INT32_MAX, FormatError
from kafka_zookeeper.formats.topics import TopicAssignment
from tests.controller_core.states import column

BROKERS = tuple(Broker(broker, 100 + broker, ()) for broker in (1, 2, 3))
REPLICAS = (1, 2, 3)
IDS = (-5, -1, 0, *REPLICAS, 9, MAX_BROKER_ID + 1)
EPOCHS = (-1, 0, 4, MAX_LEADER_EPOCH, INT32_MAX)
HAPPENINGS = st.lists(
    st.sampled_from(
        [
            BrokersRead(BROKERS[1:]),
            BrokersRead(()),
            BrokersRead(BROKERS),
            ControlledShutdown(1, 101),
            ControlledShutdown(2, 102),
            AlterReassignments({TopicPartition("t", 0): (2, 3)}),
            AlterReassignments({TopicPartition("t", 0): None}),
            DeleteTopics(("t",)),
        ]
    ),
    max_size=5,
)


def sound(leader: int, leader_epoch: int, isr: list[int], replicas: tuple[int, ...] = REPLICAS) -> bool:
    """Ask for a single state."""
    (answer,) = is_valid_state(column([leader]), column([leader_epoch]), pad([isr]), pad([replicas], width=4)).tolist()
    return bool(answer)


def states_that_are_taken() -> list[tuple[int, int, list[int]]]:
    """Of all that somebody might write with few numbers, what is taken."""
    lists = [[*isr] for length in range(4) for isr in product(IDS, repeat=length)]
    return [
        (leader, epoch, isr)
        for leader, epoch in product(IDS, EPOCHS)
        for isr, taken in zip(lists, _sound_lists(leader, epoch, lists), strict=True)
        if taken
    ]


def _sound_lists(leader: int, epoch: int, lists: list[list[int]]) -> list[bool]:
    many = len(lists)
    answers: list[bool] = is_valid_state(
        column([leader] * many), column([epoch] * many), pad(lists), pad([REPLICAS] * many, width=4)
    ).tolist()
    return answers


def run(cluster: Cluster, event: Event) -> None:
    """Decide and apply as the loop does, everything being committed."""
    decision = decide(cluster, event)
    for change in decision.changes:
        apply_and_build_requests(cluster, change)
    for following in (*decision.then, *decision.later):
        run(cluster, following)


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "isr"),
    [
        (1, 0, [1]),
        (2, 5, [1, 2, 3]),
        (-1, 5, [3]),
        (1, MAX_LEADER_EPOCH, [1]),
        # An assignment that was changed by hand has left a stranger in the ISR: it goes with the next write.
        (1, 5, [9, 1]),
    ],
)
def test_a_state_of_any_controller_is_taken(leader: int, leader_epoch: int, isr: list[int]) -> None:
    """What Kafka's controllers write, at any time of a partition's life."""
    assert sound(leader, leader_epoch, isr)


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "isr"),
    [
        pytest.param(1, 5, [], id="nobody in sync"),
        pytest.param(2, 5, [1], id="C1: a leader outside the ISR"),
        pytest.param(9, 5, [9], id="C2: only strangers in sync"),
        pytest.param(1, 5, [1, 1], id="C3: a replica twice"),
        pytest.param(1, -1, [1], id="C4: an epoch below the first"),
        pytest.param(1, INT32_MAX, [1], id="C4: an epoch that cannot grow"),
        pytest.param(-2, 5, [1], id="a leader that is no broker"),
        pytest.param(1, 5, [1, -5], id="a member that is no broker"),
        pytest.param(1, 5, [1, MAX_BROKER_ID + 1], id="an id that memory is not made for"),
    ],
)
def test_a_state_that_no_controller_writes_is_not_taken(leader: int, leader_epoch: int, isr: list[int]) -> None:
    """One znode that somebody wrote by hand must not keep the controller from all the others."""
    assert not sound(leader, leader_epoch, isr)


def test_each_row_is_judged_on_its_own() -> None:
    """Columns over rows of different replicas."""
    leader, epoch = column([1, 1, 4]), column([0, 0, 0])
    isr, replicas = pad([(1, 2), (1, 1), (4,)]), pad([(1, 2), (1, 2), (4,)])

    assert is_valid_state(leader, epoch, isr, replicas).tolist() == [True, False, True]


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(states_that_are_taken()), HAPPENINGS)
def test_on_a_state_that_is_taken_every_decision_keeps_its_rules(
    state: tuple[int, int, list[int]], what_happens: list[Event]
) -> None:
    """`transition` stops the controller where C1 to C4 break: what is read must never bring it to that."""
    leader, leader_epoch, isr = state
    cluster = Cluster(1000, 7)
    apply(cluster, BrokersObserved(BROKERS))
    apply(cluster, build_topic_added(cluster, TopicRecord("t", None, {0: REPLICAS}), repaired=False))
    found = pad([isr])
    apply(
        cluster,
        StatesObserved(
            column([0]), column([leader]), column([leader_epoch]), found, column([3]), column([1]), np.array([False])
        ),
    )

    for event in (Activated(), *what_happens):
        run(cluster, event)


@pytest.mark.parametrize(
    "assignment",
    [
        pytest.param(TopicAssignment({0: (1, 1)}), id="C3: a replica twice"),
        pytest.param(TopicAssignment({0: (1, 2)}, adding={0: (2, 2)}), id="twice among the added"),
        pytest.param(TopicAssignment({0: (1, 2)}, removing={0: (1, 1)}), id="twice among the removed"),
        pytest.param(TopicAssignment({0: (1, MAX_BROKER_ID + 1)}), id="an id that memory is not made for"),
        pytest.param(TopicAssignment({0: tuple(range(MAX_REPLICAS + 1))}), id="columns would be too wide"),
    ],
)
def test_an_assignment_that_cannot_be_is_refused_in_few_words(assignment: TopicAssignment) -> None:
    """As one that cannot be read; the words go into a log."""
    with pytest.raises(FormatError, match="partition 0") as caught:
        check_assignment("t", assignment)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "assignment",
    [
        TopicAssignment({}),
        TopicAssignment({0: ()}),
        TopicAssignment({0: (1, 2, 3), 7: (2,)}, adding={0: (3,)}, removing={0: (1, 3)}),
        TopicAssignment({0: tuple(range(MAX_REPLICAS))}),
    ],
)
def test_an_unusual_assignment_is_taken(assignment: TopicAssignment) -> None:
    """No partitions, no replicas yet, a move that was cancelled, as many replicas as there are brokers."""
    check_assignment("t", assignment)


def test_no_rows_are_no_trouble() -> None:
    """An empty cluster."""
    nothing = np.zeros(0, dtype=np.int32)

    assert (
        is_valid_state(nothing, nothing, np.zeros((0, 1), dtype=np.int32), np.zeros((0, 4), dtype=np.int32)).tolist()
        == []
    )
