"""Sessions of brokers: times are arguments. Source: BrokerHeartbeatTracker of Kafka 4.3; ADR 57 for ended connections."""

import pytest

from controller_core.model import Broker
from controller_core.quorum_mode.sessions import Sessions


def test_a_session_is_valid_until_its_time_out_has_passed() -> None:
    """As in Kafka, the time-out itself is still valid."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=1_000)

    assert [sessions.is_valid(1, 7, now_ms) for now_ms in (1_000, 1_100, 1_101)] == [True, True, False]


def test_a_heartbeat_of_an_earlier_incarnation_keeps_nothing_alive() -> None:
    """Sessions are per id and epoch."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 8, now_ms=0)
    sessions.hear(1, 7, now_ms=90)

    assert not sessions.is_valid(1, 8, now_ms=150)


def test_expired_sessions_are_returned_once_the_longest_silent_first() -> None:
    """Each is fenced by an event of its own, so that the effect of one is visible to the next."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=50)
    sessions.hear(2, 8, now_ms=0)
    sessions.hear(3, 9, now_ms=200)

    assert (sessions.expired(now_ms=201), sessions.expired(now_ms=201)) == ([(2, 8), (1, 7)], [])


def test_a_new_active_controller_gives_unfenced_brokers_a_whole_session() -> None:
    """ClusterControlManager.activate: it does not know when they were last heard."""
    sessions = Sessions(100, 30)
    sessions.hear(9, 1, now_ms=0)

    sessions.begin([Broker(1, 7, ()), Broker(2, 8, (), fenced=True)], now_ms=500)

    valid = [sessions.is_valid(*session, now_ms=600) for session in ((1, 7), (2, 8), (9, 1))]
    assert valid == [True, False, False]


def test_an_ended_session_is_not_valid() -> None:
    """The broker was fenced or registered again."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=0)

    sessions.end(1, 7)

    assert not sessions.is_valid(1, 7, now_ms=0)


def test_a_session_whose_connection_ended_is_over_when_no_heartbeat_follows_in_time() -> None:
    """ADR 57: the process has probably ended."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=0)
    sessions.disconnect(1, 7, now_ms=10)

    assert [sessions.is_valid(1, 7, now_ms) for now_ms in (40, 41)] == [True, False]
    assert (sessions.expired(now_ms=40), sessions.expired(now_ms=41)) == ([], [(1, 7)])


def test_a_heartbeat_on_another_connection_makes_the_session_a_whole_one_again() -> None:
    """ADR 57: one reset of a connection fences no broker."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=0)
    sessions.disconnect(1, 7, now_ms=10)
    sessions.hear(1, 7, now_ms=40)

    assert [sessions.is_valid(1, 7, now_ms) for now_ms in (140, 141)] == [True, False]


def test_a_broker_with_rare_heartbeats_has_time_for_the_next_one_after_its_connection_ended() -> None:
    """ADR 57: its `broker.heartbeat.interval.ms` may be longer than the time for disconnected brokers."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=0)
    sessions.hear(1, 7, now_ms=40)
    sessions.disconnect(1, 7, now_ms=41)

    assert [sessions.is_valid(1, 7, now_ms) for now_ms in (100, 101)] == [True, False]


def test_the_end_of_a_connection_makes_no_session_longer() -> None:
    """`broker.session.timeout.ms` counts from the last heartbeat; a setting that is as long turns the rule off."""
    sessions = Sessions(100, 100)
    sessions.hear(1, 7, now_ms=0)
    sessions.disconnect(1, 7, now_ms=90)

    assert [sessions.is_valid(1, 7, now_ms) for now_ms in (100, 101)] == [True, False]


@pytest.mark.parametrize("epoch", [6, 8], ids=["earlier incarnation", "broker without a session"])
def test_the_end_of_another_incarnations_connection_changes_no_session(epoch: int) -> None:
    """A broker that was restarted has a connection of its own."""
    sessions = Sessions(100, 30)
    sessions.hear(1, 7, now_ms=0)
    sessions.disconnect(1, epoch, now_ms=10)

    assert (sessions.is_valid(1, 7, now_ms=100), sessions.is_valid(1, epoch, now_ms=11)) == (True, False)


def test_a_session_that_begins_again_has_no_ended_connection() -> None:
    """The session of the incarnation ended, or another term of this controller began."""
    sessions = Sessions(100, 30)
    for begin in (lambda: sessions.end(1, 7), lambda: sessions.begin([Broker(1, 7, ())], now_ms=10)):
        sessions.hear(1, 7, now_ms=0)
        sessions.disconnect(1, 7, now_ms=0)
        begin()
        sessions.hear(1, 7, now_ms=10)

        assert sessions.is_valid(1, 7, now_ms=110)
