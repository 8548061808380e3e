"""Point to which a follower truncates its log, so that it continues the leader's.

Source: KIP-101, KIP-279, Kafka's AbstractFetcherThread.getOffsetTruncationState.
"""

from dataclasses import dataclass

from kafka_log.format.epochs import EpochStart, LeaderEpochs


@dataclass(frozen=True, slots=True)
class Truncation:
    """Offset from which a follower's records are removed."""

    offset: int
    is_complete: bool
    """Whether the logs agree below it. Otherwise the follower fetches again, with the epoch that it then ends in."""


def truncation_after(leader_end: EpochStart, epochs: LeaderEpochs, *, end_offset: int) -> Truncation:
    """Return how far a follower truncates after the leader returned a diverging epoch and its end.

    The epoch is the largest one that the leader has up to that of the follower's last record. If the follower lacks it, the logs may differ
    in earlier epochs too: it truncates to the end of its own largest epoch below, and asks again.
    """
    own = epochs.end_offset_for(leader_end.epoch, end_offset)
    if own is None:
        return Truncation(min(leader_end.start_offset, end_offset), is_complete=True)
    if own.epoch != leader_end.epoch:
        return Truncation(min(own.start_offset, end_offset), is_complete=False)
    return Truncation(min(own.start_offset, leader_end.start_offset, end_offset), is_complete=True)


def is_diverging(leader_end: EpochStart, *, fetch_offset: int, last_fetched_epoch: int) -> bool:
    """Return whether a follower's log differs from the leader's, whose end of the follower's last epoch is `leader_end` (KIP-595)."""
    return leader_end.epoch < last_fetched_epoch or leader_end.start_offset < fetch_offset
