"""Session of a follower's fetches: after a full request the leader keeps the partitions, and both sides send only what changed (KIP-227).

    state       request                                            answered                        next state
    none        full: epoch 0, all partitions                      with a session id               session, epoch 1
                                                                   without one (no place for it)   none
    session     epoch N: partitions to add, change and forget      without an error                session, epoch N + 1
                                                                   with an error, or not at all    none

The next full request has the id of a session that was lost, so that the leader closes it. A partition that the response to a later request
leaves out has no news. The leader's side is `fetch_sessions`. Source: FetchSessionHandler of Kafka's clients, which its followers use.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from uuid import UUID

from light_broker.core.fetch_sessions import INITIAL_EPOCH, NO_SESSION, next_epoch


class FetchedName(NamedTuple):
    """A partition on the wire."""

    topic: str
    topic_id: UUID
    """NO_TOPIC_ID where the version names topics."""
    partition: int


class Wanted(NamedTuple):
    """What a follower asks for of one partition."""

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


WantedPartitions = Mapping[FetchedName, Wanted]


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Contents of one request."""

    session_id: int
    epoch: int
    uses_topic_ids: bool
    wanted: WantedPartitions
    """All partitions that the leader is to read."""
    changed: WantedPartitions
    """Those that the request names."""
    forgotten: tuple[FetchedName, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether the response has every partition."""
        return self.epoch == INITIAL_EPOCH

    def answered(self, session_id: int) -> "FollowerSession":
        """Return the session after a response without an error, which has the id of the leader's session."""
        if session_id == NO_SESSION:
            return FollowerSession()
        return FollowerSession(session_id, next_epoch(self.epoch), self.uses_topic_ids, self.wanted)


@dataclass(frozen=True, slots=True)
class FollowerSession:
    """The session with one leader, as the follower knows it."""

    id: int = NO_SESSION
    epoch: int = INITIAL_EPOCH
    """Epoch of the next request."""
    uses_topic_ids: bool = True
    known: WantedPartitions = field(default_factory=dict)
    """The partitions as the leader has them."""

    def request(self, wanted: WantedPartitions, *, uses_topic_ids: bool) -> SessionRequest:
        """Return the next request. Names and topic ids do not go together in one session."""
        if self.epoch == INITIAL_EPOCH or self.uses_topic_ids != uses_topic_ids:
            return SessionRequest(self.id, INITIAL_EPOCH, uses_topic_ids, wanted, wanted)
        changed = {name: partition for name, partition in wanted.items() if self.known.get(name) != partition}
        forgotten = tuple(name for name in self.known if name not in wanted)
        return SessionRequest(self.id, self.epoch, uses_topic_ids, wanted, changed, forgotten)

    def lost(self) -> "FollowerSession":
        """Return the session after an error, or without a response: the leader may have processed the request or not."""
        return replace(self, epoch=INITIAL_EPOCH, known={})
