"""Requests to other nodes: one at a time, a timeout, a backoff (Kafka's RequestManagerTest)."""

from controller_core.quorum.connections import Connections
from controller_core.quorum.messages import FetchRequest
from controller_core.quorum.states import NEVER

IDLE = Connections({})
ASKED = IDLE.sent(2, 100, FetchRequest)


def test_a_node_is_asked_one_thing_at_a_time() -> None:
    """Others are ready."""
    assert not ASKED.is_ready(2, 99)
    assert ASKED.is_ready(3, 99)
    assert ASKED.answered(2).is_ready(2, 99)
    assert ASKED.next_answer_due(50) == 100


def test_a_request_that_is_not_answered_in_time_counts_no_longer() -> None:
    """Nor does its answer: what was fetched could be appended twice."""
    assert ASKED.is_expected(2, 1, 99)
    assert not ASKED.is_expected(2, 1, 100)
    assert ASKED.is_ready(2, 100)
    assert ASKED.has_timed_out(2, 100)
    assert ASKED.next_answer_due(100) == NEVER


def test_only_the_answer_to_the_last_request_is_expected() -> None:
    """Correlation ids are never used twice, also after a change of the state has reset the connections."""
    again = ASKED.reset().sent(2, 200, FetchRequest)

    assert not again.is_expected(2, 1, 50)
    assert again.is_expected(2, 2, 50)
    assert not again.is_expected(3, 2, 50)


def test_a_failure_is_followed_by_a_backoff() -> None:
    """Of that node only."""
    failed = ASKED.failed(2, 120)

    assert failed.is_backing_off(2, 119)
    assert not failed.is_backing_off(2, 120)
    assert failed.is_ready(2, 120)
    assert not failed.is_expected(2, 1, 50)
