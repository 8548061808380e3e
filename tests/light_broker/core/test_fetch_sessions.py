"""Sessions of Fetch. Source: KIP-227, Kafka's FetchSessionTest."""

from collections.abc import Mapping

import pytest

from kafka_log.format.epochs import EpochStart
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from light_broker.core.fetch_sessions import (
    EVICTION_MS,
    FINAL_EPOCH,
    NO_SESSION,
    FetchSessions,
    OpenedFetch,
    SessionKey,
    changed_results,
)
from light_broker.core.replica_requests import FetchPartition, ReadResult

A, B, C = (SessionKey(name, 0) for name in "abc")
REQUEST = FetchPartition(NO_TOPIC_ID, 0, 1_000)
QUIET = ReadResult(high_watermark=5, log_start_offset=0)


def opened(
    sessions: FetchSessions,
    session_id: int,
    epoch: int,
    *keys: SessionKey,
    forgotten: tuple[SessionKey, ...] = (),
    now_ms: int = 0,
    uses_topic_ids: bool = False,
) -> OpenedFetch:
    """Open a request for some partitions."""
    return sessions.open(
        session_id=session_id,
        epoch=epoch,
        uses_topic_ids=uses_topic_ids,
        partitions=dict.fromkeys(keys, REQUEST),
        forgotten=forgotten,
        now_ms=now_ms,
    )


def created(
    sessions: FetchSessions, session_id: int, *keys: SessionKey, now_ms: int = 0, is_privileged: bool = False
) -> int:
    """Create a session with the response to a full request."""
    results: Mapping[SessionKey, ReadResult] = dict.fromkeys(keys, QUIET)
    return sessions.create(
        session_id,
        uses_topic_ids=False,
        is_privileged=is_privileged,
        partitions=dict.fromkeys(keys, REQUEST),
        results=results,
        now_ms=now_ms,
    )


def test_a_full_request_creates_a_session_and_incremental_ones_continue_it() -> None:
    """KIP-227."""
    sessions = FetchSessions()

    assert opened(sessions, NO_SESSION, 0, A, B).wants_session
    assert created(sessions, 7, A, B) == 7

    second = opened(sessions, 7, 1, C, forgotten=(A,))
    assert (second.error, list(second.partitions)) == (ErrorCode.NONE, [B, C])
    assert opened(sessions, 7, 2).partitions == second.partitions


def test_a_request_of_another_epoch_or_session_is_refused() -> None:
    """Source: FetchManager.newContext."""
    sessions = FetchSessions()
    created(sessions, 7, A)

    assert opened(sessions, 8, 1).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert opened(sessions, 7, 2).error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert opened(sessions, 7, 1, uses_topic_ids=True).error is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert opened(sessions, 7, 1).error is ErrorCode.NONE


@pytest.mark.parametrize("epoch", [0, FINAL_EPOCH])
def test_a_full_request_closes_the_session_that_it_names(epoch: int) -> None:
    """KIP-227."""
    sessions = FetchSessions()
    created(sessions, 7, A)
    full = opened(sessions, 7, epoch, A)

    assert (len(sessions), full.wants_session) == (0, epoch == 0)


def test_a_session_without_partitions_ends() -> None:
    """Source: FetchManager.newContext."""
    sessions = FetchSessions()
    created(sessions, 7, A)

    assert (opened(sessions, 7, 1, forgotten=(A,)).session, len(sessions)) == (None, 0)


def test_an_incremental_response_has_only_partitions_with_news() -> None:
    """Source: FetchSession.CachedPartition.maybeUpdateResponseData."""
    sessions = FetchSessions()
    created(sessions, 7, A, B, C)
    session = opened(sessions, 7, 1).session
    assert session is not None

    quiet = dict.fromkeys((A, B, C), QUIET)
    assert changed_results(session, quiet) == {}
    assert list(changed_results(session, quiet | {A: QUIET._replace(high_watermark=6)})) == [A]
    assert list(changed_results(session, quiet | {A: QUIET._replace(high_watermark=6)})) == []
    assert list(changed_results(session, quiet | {A: QUIET._replace(high_watermark=6, log_start_offset=1)})) == [A]
    assert list(changed_results(session, {B: QUIET._replace(preferred_read_replica=2)})) == [B]


@pytest.mark.parametrize(
    "news", [ReadResult(ErrorCode.NOT_LEADER_OR_FOLLOWER), QUIET._replace(diverging=EpochStart(1, 2))]
)
def test_a_partition_is_sent_again_when_its_error_is_gone(news: ReadResult) -> None:
    """Source: FetchSession.CachedPartition.maybeUpdateResponseData."""
    sessions = FetchSessions()
    created(sessions, 7, A)
    session = opened(sessions, 7, 1).session
    assert session is not None

    assert list(changed_results(session, {A: news})) == [A]
    assert list(changed_results(session, {A: QUIET})) == [A]
    assert list(changed_results(session, {A: QUIET})) == []


def test_partitions_with_records_are_read_last_in_the_next_request() -> None:
    """KIP-227: otherwise the first ones could use up max.bytes each time."""
    sessions = FetchSessions()
    created(sessions, 7, A, B, C)
    session = opened(sessions, 7, 1).session
    assert session is not None
    changed_results(session, {A: QUIET._replace(records=b"x"), B: QUIET, C: QUIET})

    assert list(opened(sessions, 7, 2).partitions) == [B, C, A]


def test_a_full_cache_takes_no_session_of_equal_worth() -> None:
    """Source: FetchSessionCacheShard.tryEvict."""
    sessions = FetchSessions(slots=1)
    created(sessions, 7, A)

    assert created(sessions, 8, B, now_ms=EVICTION_MS) == NO_SESSION
    assert opened(sessions, 7, 1).error is ErrorCode.NONE


def test_an_idle_session_gives_up_its_place() -> None:
    """Source: FetchSessionCacheShard.tryEvict."""
    sessions = FetchSessions(slots=1)
    created(sessions, 7, A, B)

    assert created(sessions, 8, C, now_ms=EVICTION_MS + 1) == 8
    assert (len(sessions), sessions.evictions) == (1, 1)


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_is_not_new() -> None:
    """Source: FetchSessionCacheShard.tryEvict."""
    sessions = FetchSessions(slots=1)
    created(sessions, 7, A)
    opened(sessions, 7, 1, now_ms=EVICTION_MS)

    assert created(sessions, 8, B, C, now_ms=EVICTION_MS) == NO_SESSION
    assert created(sessions, 8, B, C, now_ms=EVICTION_MS + 1) == 8


def test_a_followers_session_takes_the_place_of_a_consumers() -> None:
    """Source: FetchSessionCacheShard.tryEvict: privileged sessions."""
    sessions = FetchSessions(slots=1)
    created(sessions, 7, A, B)

    assert created(sessions, 8, C, is_privileged=True) == 8
    assert created(sessions, 9, A, B, C) == NO_SESSION


def test_sessions_have_a_limited_number_of_partitions() -> None:
    """A client may name any number of partitions, request by request. Its next full request is answered without a session."""
    sessions = FetchSessions(max_partitions=2)
    created(sessions, 7, A)

    assert opened(sessions, 7, 1, B).error is ErrorCode.NONE
    assert opened(sessions, 7, 2, C).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert (len(sessions), created(sessions, 8, A, B, C)) == (0, NO_SESSION)
