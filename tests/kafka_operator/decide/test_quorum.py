"""Voters that can be stopped, by what DescribeQuorum reports (KIP-595, KIP-836)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import Quorum, QuorumNode
from kafka_operator.decide.kafka.quorum import CAUGHT_UP_WITHIN_MS, is_in_sync, quorum_status, voters_missed_without
from kafka_operator.resources.quorum import QuorumStatus
from tests.kafka_operator.makers import quorum

NOW_MS = 1_000_000


@pytest.mark.parametrize(
    ("voters", "late", "stopped", "missed"),
    [
        ((1,), (), 1, ()),
        ((1, 2), (), 1, ()),
        ((1, 2), (2,), 1, (2,)),
        ((1, 2, 3), (), 2, ()),
        ((1, 2, 3), (3,), 2, (3,)),
        ((1, 2, 3), (3,), 3, ()),
        ((1, 2, 3, 4, 5), (5,), 2, ()),
        ((1, 2, 3, 4, 5), (4, 5), 2, (4, 5)),
        ((1, 2, 3), (3,), 7, ()),
    ],
)
def test_a_voter_is_stopped_only_while_a_majority_stays_in_sync(
    voters: tuple[int, ...], late: tuple[int, ...], stopped: int, missed: tuple[int, ...]
) -> None:
    """Of one or two voters no majority can stay; a voter that is itself behind takes nothing away; 7 is no voter."""
    assert voters_missed_without(quorum(*voters, late=late), stopped) == missed


@given(st.integers(3, 7), st.data())
def test_a_stopped_voter_never_leaves_less_than_a_majority_in_sync(size: int, data: st.DataObject) -> None:
    """The majority of KIP-595 is one of all voters, whichever of them are in sync."""
    ids = list(range(1, size + 1))
    late = data.draw(st.sets(st.sampled_from(ids[1:])))
    stopped = data.draw(st.sampled_from(ids))
    described = quorum(*ids, late=tuple(late))

    if voters_missed_without(described, stopped) == ():
        in_sync = {voter.node_id for voter in described.voters if is_in_sync(described, voter)}
        assert len(in_sync - {stopped}) * 2 > size


def test_the_time_since_a_voter_caught_up_is_that_of_the_leader() -> None:
    """LeaderState.describeReplicaStates: the leader's own timestamp is the present."""
    voters = (QuorumNode(1, 90, NOW_MS), QuorumNode(2, 80, NOW_MS - CAUGHT_UP_WITHIN_MS), QuorumNode(3, 80, -1))
    described = Quorum(1, 7, 90, voters)

    assert [is_in_sync(described, voter) for voter in voters] == [True, True, False]


def test_without_timestamps_the_high_watermark_decides() -> None:
    """Version 0 of DescribeQuorum, before Kafka 3.3."""
    voters = (QuorumNode(1, 95), QuorumNode(2, 90), QuorumNode(3, 89))
    described = Quorum(1, 7, 90, voters)

    assert [is_in_sync(described, voter) for voter in voters] == [True, True, False]


def test_the_status_lists_nodes_and_no_offsets() -> None:
    """A status that changed with each read would be written with each read."""
    assert quorum_status(quorum(3, 1, 2, late=(2,), observers=(5, 4), late_observers=(4,))) == QuorumStatus(
        7, (1, 2, 3), (2,), (4,)
    )
    assert quorum_status(Quorum(-1)) is None
    assert quorum_status(None) is None
