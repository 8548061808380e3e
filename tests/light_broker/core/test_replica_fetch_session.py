"""Session of a follower's fetches. Source: KIP-227, FetchSessionHandler."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_wire import ErrorCode
from light_broker.core.fetch_sessions import INITIAL_EPOCH, MAX_EPOCH, FetchSessions, OpenedFetch, SessionKey
from light_broker.core.replica_fetch_session import FetchedName, FollowerSession, SessionRequest, Wanted
from light_broker.core.replica_requests import FetchPartition

ORDERS_0, ORDERS_1 = (FetchedName("orders", UUID(int=7), partition) for partition in (0, 1))
AT_5, AT_6 = (Wanted(1, offset, 1, 0, 100) for offset in (5, 6))


def requested(partitions: Mapping[FetchedName, Wanted]) -> dict[SessionKey, FetchPartition]:
    """Return partitions as a leader reads them."""
    return {
        SessionKey(name.topic_id, name.partition): FetchPartition(
            name.topic_id,
            partition.fetch_offset,
            partition.max_bytes,
            partition.log_start_offset,
            partition.leader_epoch,
            partition.last_fetched_epoch,
        )
        for name, partition in partitions.items()
    }


def opened(leader: FetchSessions, request: SessionRequest) -> OpenedFetch:
    """Let a leader read a request."""
    return leader.open(
        session_id=request.session_id,
        epoch=request.epoch,
        uses_topic_ids=True,
        partitions=requested(request.changed),
        forgotten=[SessionKey(name.topic_id, name.partition) for name in request.forgotten],
        now_ms=0,
    )


def answered(leader: FetchSessions, request: SessionRequest, found: OpenedFetch, new_id: int) -> FollowerSession:
    """Return the follower's session after the leader's answer."""
    if found.error is not ErrorCode.NONE:
        return FollowerSession(request.session_id).lost()
    session_id = request.session_id
    if found.wants_session:
        session_id = leader.create(
            new_id, uses_topic_ids=True, is_privileged=True, partitions=found.partitions, results={}, now_ms=0
        )
    elif found.session is None:
        session_id = 0
    return request.answered(session_id)


def test_the_first_request_has_all_partitions_and_asks_for_a_session() -> None:
    """Epoch 0 without an id."""
    request = FollowerSession().request({ORDERS_0: AT_5}, uses_topic_ids=True)

    assert (request.session_id, request.epoch, request.is_full) == (0, INITIAL_EPOCH, True)
    assert (request.changed, request.forgotten) == ({ORDERS_0: AT_5}, ())


def test_a_later_request_has_only_what_changed() -> None:
    """A partition whose request is the same is left out."""
    session = FollowerSession().request({ORDERS_0: AT_5, ORDERS_1: AT_5}, uses_topic_ids=True).answered(9)
    same = session.request({ORDERS_0: AT_5, ORDERS_1: AT_5}, uses_topic_ids=True)
    other = same.answered(9).request({ORDERS_0: AT_6}, uses_topic_ids=True)

    assert (same.session_id, same.epoch, same.changed, same.forgotten) == (9, 1, {}, ())
    assert (other.epoch, other.changed, other.forgotten) == (2, {ORDERS_0: AT_6}, (ORDERS_1,))


@pytest.mark.parametrize("cause", ["no place", "closed", "lost", "names"])
def test_a_full_request_follows_when_there_is_no_session(cause: str) -> None:
    """The leader had no place for one, closed it, may have lost it, or topics have no ids any more."""
    first = FollowerSession().request({ORDERS_0: AT_5}, uses_topic_ids=True)
    session = first.answered(0 if cause == "no place" else 9)
    if cause == "closed":
        session = session.request({ORDERS_0: AT_5}, uses_topic_ids=True).answered(0)
    if cause == "lost":
        session = session.lost()
    request = session.request({ORDERS_0: AT_5}, uses_topic_ids=cause != "names")

    # The leader closes the session that the request names.
    assert request.session_id == (9 if cause in {"lost", "names"} else 0)
    assert (request.epoch, request.changed, request.is_full) == (INITIAL_EPOCH, {ORDERS_0: AT_5}, True)


def test_epochs_begin_at_one_again_after_the_last() -> None:
    """FetchMetadata.nextEpoch: 0 would ask for another session."""
    session = FollowerSession(9, MAX_EPOCH, known={ORDERS_0: AT_5})

    assert session.request({ORDERS_0: AT_5}, uses_topic_ids=True).answered(9).epoch == 1


names = st.builds(FetchedName, st.just("orders"), st.sampled_from([UUID(int=7), UUID(int=8)]), st.integers(0, 2))
wanted = st.dictionaries(
    names, st.builds(Wanted, st.integers(1, 2), st.integers(0, 2), st.just(1), st.just(0), st.just(9))
)
faults = st.sampled_from(["none", "none", "request lost", "response lost", "leader restarted"])


@given(st.lists(st.tuples(wanted, faults), max_size=12))
def test_a_leader_reads_what_the_follower_wants_whatever_is_lost(
    steps: list[tuple[dict[FetchedName, Wanted], str]],
) -> None:
    """Law: each request that a leader accepts makes it read exactly what the follower wants."""
    leader, session = FetchSessions(), FollowerSession()
    for number, (partitions, fault) in enumerate(steps, 1):
        if fault == "leader restarted":
            leader = FetchSessions()
        request = session.request(partitions, uses_topic_ids=True)
        session = session.lost()
        if fault == "request lost":
            continue
        found = opened(leader, request)
        if found.error is ErrorCode.NONE:
            assert found.partitions == requested(partitions)
        else:
            assert fault == "leader restarted", found.error
        if fault != "response lost":
            session = answered(leader, request, found, number)
