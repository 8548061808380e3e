"""Truncation of followers. Source: KIP-101, KIP-279, AbstractFetcherThread.getOffsetTruncationState."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.epochs import EpochStart, LeaderEpochs
from light_broker.core.truncation import Truncation, is_diverging, truncation_after

EPOCHS = LeaderEpochs([EpochStart(1, 0), EpochStart(3, 10), EpochStart(5, 20)])


@pytest.mark.parametrize(
    ("leader_end", "expected"),
    [
        pytest.param(EpochStart(3, 15), Truncation(15, is_complete=True), id="the leader has less of the epoch"),
        pytest.param(EpochStart(3, 30), Truncation(20, is_complete=True), id="the leader has more of the epoch"),
        pytest.param(EpochStart(4, 25), Truncation(20, is_complete=False), id="the follower lacks the leader's epoch"),
        pytest.param(EpochStart(0, 4), Truncation(0, is_complete=True), id="below all epochs of the follower"),
        pytest.param(EpochStart(9, 12), Truncation(12, is_complete=True), id="above all epochs of the follower"),
        pytest.param(EpochStart(9, 99), Truncation(25, is_complete=True), id="never above the follower's end"),
    ],
)
def test_a_follower_truncates_to_the_end_of_the_last_common_epoch(leader_end: EpochStart, expected: Truncation) -> None:
    """KIP-279."""
    assert truncation_after(leader_end, EPOCHS, end_offset=25) == expected


def log_of(changes: list[int]) -> list[int]:
    """Return the epoch of each record of a log whose epoch rises by each change."""
    epochs, epoch = [], 0
    for change in changes:
        epoch += change
        epochs.append(epoch)
    return epochs


def epochs_of(log: list[int]) -> LeaderEpochs:
    """Return the epochs of a log."""
    epochs = LeaderEpochs()
    for offset, epoch in enumerate(log):
        epochs = epochs.assign(epoch, offset)
    return epochs


@pytest.mark.shows("B1", "B2")
@given(
    common=st.lists(st.integers(0, 2), max_size=6),
    leader_tail=st.lists(st.integers(0, 2), max_size=6),
    follower_tail=st.lists(st.integers(0, 2), max_size=6),
)
def test_truncation_ends_at_the_divergence_and_keeps_what_is_common(
    common: list[int], leader_tail: list[int], follower_tail: list[int]
) -> None:
    """B1, B2: the follower ends with a prefix of the leader's log, and loses no record that both had.

    Epochs of leaders are unique, so the logs share no epoch that begins behind the common part.
    """
    base = log_of(common)
    last = base[-1] if base else 0
    leader = base + [last + 1 + 2 * epoch for epoch in log_of(leader_tail)]
    follower = base + [last + 2 + 2 * epoch for epoch in log_of(follower_tail)]
    for _ in range(len(follower) + 1):
        if not follower:
            break
        end = epochs_of(leader).end_offset_for(follower[-1], len(leader))
        if end is None:
            # A leader's epoch is above all of its followers'.
            leader = [*leader, follower[-1] + 1]
            continue
        if not is_diverging(end, fetch_offset=len(follower), last_fetched_epoch=follower[-1]):
            break
        truncation = truncation_after(end, epochs_of(follower), end_offset=len(follower))
        follower = follower[: truncation.offset]

    assert follower == leader[: len(follower)]
    assert len(follower) >= len(base)
