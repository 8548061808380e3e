"""Progress of a follower, from its fetches. Source: Kafka's Replica and ReplicaState."""

from typing import NamedTuple

UNKNOWN_OFFSET = -1
ANY_BROKER_EPOCH = -1
"""Sent by followers of Kafka before 3.5, whose fetches do not have their broker epoch."""


class FollowerProgress(NamedTuple):
    """Progress of one follower, by its fetches."""

    end_offset: int = UNKNOWN_OFFSET
    """End of its log; unknown until it has fetched from this leader."""
    start_offset: int = UNKNOWN_OFFSET
    last_caught_up_ms: int = 0
    """Last time at which it had everything that the leader had; 0 if it never had."""
    last_fetch_ms: int = 0
    leader_end_offset: int = UNKNOWN_OFFSET
    """End of the leader's log at its last fetch."""
    broker_epoch: int | None = None
    """Broker epoch in its last fetch, None before the first one."""

    def after_fetch(
        self, *, fetch_offset: int, start_offset: int, leader_end_offset: int, broker_epoch: int, now_ms: int
    ) -> "FollowerProgress":
        """Return the progress after a fetch from `fetch_offset`, which is the end of the follower's log.

        A fetch that reaches the leader's current end is caught up now; one that reaches the leader's end at the previous fetch was caught up at
        that time.
        """
        caught_up_ms = self.last_caught_up_ms
        if fetch_offset >= leader_end_offset:
            caught_up_ms = max(caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_offset:
            caught_up_ms = max(caught_up_ms, self.last_fetch_ms)
        return FollowerProgress(fetch_offset, start_offset, caught_up_ms, now_ms, leader_end_offset, broker_epoch)

    def at_new_epoch(
        self, *, is_in_isr: bool, is_new_leader: bool, leader_end_offset: int, now_ms: int
    ) -> "FollowerProgress":
        """Return the progress at the start of a leader epoch: a member of the ISR has until the maximal lag to fetch."""
        caught_up_ms = now_ms if is_in_isr else 0
        if is_new_leader:
            return FollowerProgress(last_caught_up_ms=caught_up_ms)
        return self._replace(
            last_caught_up_ms=caught_up_ms, last_fetch_ms=caught_up_ms, leader_end_offset=leader_end_offset
        )

    def is_caught_up(self, *, leader_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        """Return whether it has everything, or had everything `max_lag_ms` ago (replica.lag.time.max.ms)."""
        return self.end_offset == leader_end_offset or now_ms - self.last_caught_up_ms <= max_lag_ms
