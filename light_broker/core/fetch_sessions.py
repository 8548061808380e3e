"""Sessions of Fetch: the broker keeps the partitions of a client, so that requests and responses have only what changed (KIP-227).

    session id 0, epoch 0     full request; a session is created if the cache has room
    session id N, epoch 1 …   incremental: partitions to add, change and forget; the response has only partitions with news
    epoch -1                  full request without a session; the session N is closed

The cache is bounded. A full one gives up a session for a new one if that session is idle, or if it is worth less: a follower's session is
worth more than a consumer's, and one with more partitions more than a smaller one. Source: Kafka's FetchManager, FetchSession and
FetchSessionCacheShard.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kafka_wire import ErrorCode
from light_broker.core.replica_requests import FetchPartition, ReadResult

NO_SESSION = 0
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_EPOCH = 2**31 - 1

DEFAULT_SLOTS = 1_000
"""Sessions of a broker (max.incremental.fetch.session.cache.slots)."""
EVICTION_MS = 120_000
"""Time for which a session is safe from others, and after which an idle one may be replaced (FetchSession's minimum)."""
MAX_PARTITIONS = 200_000
"""Partitions of all sessions together, which take 100 MB; clients may name any partition. Beyond it there are full requests only."""

UNKNOWN_HIGH_WATERMARK = -1


class SessionKey(NamedTuple):
    """A partition in a session: by topic id from version 13 on, by name before."""

    topic: str | UUID
    partition: int


@dataclass(slots=True)
class SessionPartition:
    """A partition of a session: what the client asks for, and what it got last."""

    request: FetchPartition
    high_watermark: int = UNKNOWN_HIGH_WATERMARK
    log_start_offset: int = -1

    def has_news(self, result: ReadResult) -> bool:
        """Return whether the next response has the partition, and note what the client gets then.

        After an error or a diverging epoch the partition is sent again once it is served, as its high watermark counts as unknown.
        """
        news = bool(result.records) or result.preferred_read_replica >= 0
        news |= self.high_watermark != result.high_watermark or self.log_start_offset != result.log_start_offset
        self.high_watermark, self.log_start_offset = result.high_watermark, result.log_start_offset
        if result.error is not ErrorCode.NONE or result.diverging is not None:
            self.high_watermark = UNKNOWN_HIGH_WATERMARK
            return True
        return news


@dataclass(slots=True, eq=False)
class FetchSession:
    """One session."""

    id: int
    uses_topic_ids: bool
    is_privileged: bool
    """Whether it is a follower's."""
    created_ms: int
    last_used_ms: int
    partitions: dict[SessionKey, SessionPartition] = field(default_factory=dict)
    """In the order in which they are read. Partitions that had records go to the end, so that each gets its turn within max.bytes."""
    epoch: int = 1
    """Epoch of the next request."""

    @property
    def worth(self) -> tuple[bool, int, int]:
        """Return how much the session counts when another one needs its place."""
        return self.is_privileged, len(self.partitions), self.id


@dataclass(frozen=True, slots=True)
class OpenedFetch:
    """What a request reads, and how it is answered."""

    partitions: Mapping[SessionKey, FetchPartition]
    session: FetchSession | None = None
    """None: the response has every partition."""
    error: ErrorCode = ErrorCode.NONE
    wants_session: bool = False
    """Whether a session is created with the response."""


class FetchSessions:
    """The sessions of a broker."""

    def __init__(
        self, slots: int = DEFAULT_SLOTS, eviction_ms: int = EVICTION_MS, max_partitions: int = MAX_PARTITIONS
    ) -> None:
        self._slots = slots
        self._max_partitions = max_partitions
        self._eviction_ms = eviction_ms
        self._sessions: dict[int, FetchSession] = {}
        """In the order of their last use."""
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        """Partitions of all sessions."""
        return sum(len(session.partitions) for session in self._sessions.values())

    def open(
        self,
        *,
        session_id: int,
        epoch: int,
        uses_topic_ids: bool,
        partitions: Mapping[SessionKey, FetchPartition],
        forgotten: Iterable[SessionKey] = (),
        now_ms: int,
    ) -> OpenedFetch:
        """Return what a request reads."""
        if epoch in {INITIAL_EPOCH, FINAL_EPOCH}:
            self._sessions.pop(session_id, None)
            return OpenedFetch(partitions, wants_session=epoch == INITIAL_EPOCH)
        session = self._sessions.get(session_id)
        if session is None:
            return OpenedFetch({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return OpenedFetch({}, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return OpenedFetch({}, error=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        _update(session, partitions, forgotten)
        if partitions and self.partition_count > self._max_partitions:
            del self._sessions[session_id]
            return OpenedFetch({}, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if not session.partitions:
            del self._sessions[session_id]
            return OpenedFetch(partitions)
        self._sessions[session_id] = self._sessions.pop(session_id)
        session.last_used_ms = now_ms
        session.epoch = next_epoch(session.epoch)
        return OpenedFetch({key: known.request for key, known in session.partitions.items()}, session)

    def create(
        self,
        new_id: int,
        *,
        uses_topic_ids: bool,
        is_privileged: bool,
        partitions: Mapping[SessionKey, FetchPartition],
        results: Mapping[SessionKey, ReadResult],
        now_ms: int,
    ) -> int:
        """Create a session with the response to a full request; return its id, NO_SESSION if there is no place for it.

        `new_id` is a random positive number.
        """
        if not partitions or new_id in self._sessions or new_id == NO_SESSION:
            return NO_SESSION
        if self.partition_count + len(partitions) > self._max_partitions:
            return NO_SESSION
        session = FetchSession(new_id, uses_topic_ids, is_privileged, now_ms, now_ms)
        for key, request in partitions.items():
            known = session.partitions[key] = SessionPartition(request)
            if (result := results.get(key)) is not None:
                known.has_news(result)
        if len(self._sessions) >= self._slots and not self._evict_for(session, now_ms):
            return NO_SESSION
        self._sessions[new_id] = session
        return new_id

    def _evict_for(self, session: FetchSession, now_ms: int) -> bool:
        """Remove a session that is idle, or worth less than another one; return whether there was one.

        A session is safe for `eviction_ms` after its creation; a consumer's only from other consumers' sessions.
        """
        oldest = next(iter(self._sessions.values()), None)
        if oldest is not None and now_ms - oldest.last_used_ms > self._eviction_ms:
            victim: FetchSession | None = oldest
        else:
            candidates = (
                other
                for other in self._sessions.values()
                if now_ms - other.created_ms > self._eviction_ms or (session.is_privileged and not other.is_privileged)
            )
            victim = min(candidates, key=lambda candidate: candidate.worth, default=None)
            # At equal worth the current one stays.
            if victim is None or (*session.worth[:2], NO_SESSION) < victim.worth:
                return False
        assert victim is not None
        del self._sessions[victim.id]
        self.evictions += 1
        return True


def changed_results(session: FetchSession, results: Mapping[SessionKey, ReadResult]) -> dict[SessionKey, ReadResult]:
    """Return the results that the response of a session has."""
    changed = {}
    for key, result in results.items():
        known = session.partitions.get(key)
        if known is None or known.has_news(result):
            changed[key] = result
            if known is not None and result.records:
                session.partitions[key] = session.partitions.pop(key)
    return changed


def next_epoch(epoch: int) -> int:
    """Return the epoch of the next request of a session.

    >>> next_epoch(1), next_epoch(2**31 - 1)
    (2, 1)
    """
    return 1 if epoch == MAX_EPOCH else epoch + 1


def _update(
    session: FetchSession, partitions: Mapping[SessionKey, FetchPartition], forgotten: Iterable[SessionKey]
) -> None:
    for key, request in partitions.items():
        known = session.partitions.get(key)
        if known is None:
            session.partitions[key] = SessionPartition(request)
        else:
            known.request = request
    for key in forgotten:
        session.partitions.pop(key, None)
