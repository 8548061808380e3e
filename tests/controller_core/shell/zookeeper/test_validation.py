"""Validation of decoded znodes against the rules that decisions rely on: C1 to C4 for single znodes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller_core.model import Broker, Cluster, TopicPartition
from controller_core.model.columns import pad
from controller_core.model.events import AlterReassignments, DeleteTopics, Event
from controller_core.model.ids import MAX_BROKER_ID
from controller_core.model.zookeeper_changes import BrokersObserved, StatesObserved
from controller_core.model.zookeeper_events import Activated, BrokersRead, ControlledShutdown, StoredTopic
from controller_core.shell.zookeeper.validation import MAX_LEADER_EPOCH, MAX_REPLICAS, check_assignment, is_valid_state
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.observed_topics import build_topic_added
from controller_core.zookeeper_mode.propagation import apply_and_build_requests
from controller_core.zookeeper_mode.transitions import apply
from kafka_zookeeper.formats.documents import INT32_MAX, FormatError
from kafka_zookeeper.formats.topics import TopicAssignment
from tests.controller_core.states import column

BROKERS = tuple(Broker(broker, 100 + broker, ()) for broker in (1, 2, 3))
REPLICAS = (1, 2, 3)
IDS = (-5, -1, 0, *REPLICAS, 9, MAX_BROKER_ID + 1)
EPOCHS = (-1, 0, 4, MAX_LEADER_EPOCH, INT32_MAX)
EVENTS = st.lists(
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


def is_valid(leader: int, leader_epoch: int, isr: list[int], replicas: tuple[int, ...] = REPLICAS) -> bool:
    """Validate a single state."""
    (valid,) = is_valid_state(column([leader]), column([leader_epoch]), pad([isr]), pad([replicas], width=4)).tolist()
    return bool(valid)


def valid_states() -> list[tuple[int, int, list[int]]]:
    """All valid states among those that can be written with a few numbers."""
    lists = [[*isr] for length in range(4) for isr in product(IDS, repeat=length)]
    return [
        (leader, epoch, isr)
        for leader, epoch in product(IDS, EPOCHS)
        for isr, valid in zip(lists, _valid_lists(leader, epoch, lists), strict=True)
        if valid
    ]


def _valid_lists(leader: int, epoch: int, lists: list[list[int]]) -> list[bool]:
    many = len(lists)
    valid: list[bool] = is_valid_state(
        column([leader] * many), column([epoch] * many), pad(lists), pad([REPLICAS] * many, width=4)
    ).tolist()
    return valid


def run(cluster: Cluster, event: Event) -> None:
    """Decide and apply as the loop does, with every change committed."""
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
        # An edited assignment has left a broker in the ISR that is no replica: the next write removes it.
        (1, 5, [9, 1]),
    ],
)
def test_a_state_written_by_a_controller_is_valid(leader: int, leader_epoch: int, isr: list[int]) -> None:
    """States that Kafka's controllers write."""
    assert is_valid(leader, leader_epoch, isr)


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "isr"),
    [
        pytest.param(1, 5, [], id="an empty ISR"),
        pytest.param(2, 5, [1], id="C1: a leader outside the ISR"),
        pytest.param(9, 5, [9], id="C2: no replica in the ISR"),
        pytest.param(1, 5, [1, 1], id="C3: a replica twice"),
        pytest.param(1, -1, [1], id="C4: an epoch below the first"),
        pytest.param(1, INT32_MAX, [1], id="C4: an epoch that cannot be raised"),
        pytest.param(-2, 5, [1], id="a leader that is no broker"),
        pytest.param(1, 5, [1, -5], id="a member that is no broker"),
        pytest.param(1, 5, [1, MAX_BROKER_ID + 1], id="an id above the maximum"),
    ],
)
def test_a_state_that_no_controller_writes_is_invalid(leader: int, leader_epoch: int, isr: list[int]) -> None:
    """One edited znode must not stop the controller for all others."""
    assert not is_valid(leader, leader_epoch, isr)


def test_each_row_is_validated_separately() -> None:
    """Columns over rows of different replicas."""
    leader, epoch = column([1, 1, 4]), column([0, 0, 0])
    isr, replicas = pad([(1, 2), (1, 1), (4,)]), pad([(1, 2), (1, 2), (4,)])

    assert is_valid_state(leader, epoch, isr, replicas).tolist() == [True, False, True]


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(valid_states()), EVENTS)
def test_decisions_on_a_valid_state_keep_the_rules(state: tuple[int, int, list[int]], events: list[Event]) -> None:
    """`transition` fails where C1 to C4 are violated: no state that was read may lead to that."""
    leader, leader_epoch, isr = state
    cluster = Cluster(1000, 7)
    apply(cluster, BrokersObserved(BROKERS))
    apply(cluster, build_topic_added(cluster, StoredTopic("t", None, {0: REPLICAS}), repaired=False))
    found = pad([isr])
    apply(
        cluster,
        StatesObserved(
            column([0]), column([leader]), column([leader_epoch]), found, column([3]), column([1]), np.array([False])
        ),
    )

    for event in (Activated(), *events):
        run(cluster, event)


@pytest.mark.parametrize(
    "assignment",
    [
        pytest.param(TopicAssignment({0: (1, 1)}), id="C3: a replica twice"),
        pytest.param(TopicAssignment({0: (1, 2)}, adding={0: (2, 2)}), id="twice in the added replicas"),
        pytest.param(TopicAssignment({0: (1, 2)}, removing={0: (1, 1)}), id="twice in the removed replicas"),
        pytest.param(TopicAssignment({0: (1, MAX_BROKER_ID + 1)}), id="an id above the maximum"),
        pytest.param(TopicAssignment({0: tuple(range(MAX_REPLICAS + 1))}), id="columns would be too wide"),
    ],
)
def test_an_invalid_assignment_is_refused_with_a_short_message(assignment: TopicAssignment) -> None:
    """With the error of one that cannot be decoded; the message is logged."""
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
def test_an_unusual_assignment_is_accepted(assignment: TopicAssignment) -> None:
    """No partitions, no replicas yet, a move that was cancelled, as many replicas as there are brokers."""
    check_assignment("t", assignment)


def test_an_empty_cluster_is_valid() -> None:
    """There are no rows."""
    nothing = np.zeros(0, dtype=np.int32)

    assert (
        is_valid_state(nothing, nothing, np.zeros((0, 1), dtype=np.int32), np.zeros((0, 4), dtype=np.int32)).tolist()
        == []
    )
