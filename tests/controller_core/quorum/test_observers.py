"""Many observers of a leader: they are answered together, with a pause between two times (ADR 46)."""

from controller_core.quorum.inputs import Append, Flushed, Request
from controller_core.quorum.messages import FetchResponse, ReadRange
from controller_core.quorum.node import Node
from controller_core.quorum.ready import Ready, Reply
from controller_core.quorum.rules import observer_pause_ms
from controller_core.quorum.step import step, tick
from tests.controller_core.quorum import nodes
from tests.controller_core.quorum.nodes import EPOCH, NOW_MS, OTHER, committed, fetch

MANY = range(100, 200)
FEW = range(100, 103)
PAUSE_MS = 25
"""Of a hundred observers."""


def ask(node: Node, observer: int, offset: int, now_ms: int, *, epoch: int = EPOCH) -> Ready:
    """Let an observer fetch from an offset; the request has its id."""
    body = fetch(observer, offset, epoch, high_watermark=offset)
    return step(node, Request(observer, nodes.LISTENER, body), now_ms)


def followed_by(observers: range) -> Node:
    """Return a leader at whose end, offset 4, observers wait."""
    node = committed()
    for observer in observers:
        node = ask(node, observer, 4, NOW_MS).node
    return node


def commit(node: Node, now_ms: int) -> Ready:
    """Append a record and commit it; return the step that committed it."""
    appended = step(node, Append(5, EPOCH, b"data", 1), now_ms)
    flushed = step(appended.node, Flushed(appended.flush or 0), now_ms)
    end_offset = flushed.node.log.end_offset
    return step(flushed.node, Request(6, nodes.LISTENER, fetch(OTHER, end_offset, EPOCH)), now_ms)


def answered(ready: Ready) -> list[int]:
    """Return the observers that a step has answered."""
    return [reply.request_id for reply in _observers_replies(ready)]


def _observers_replies(ready: Ready) -> list[Reply]:
    return [reply for reply in ready.replies if reply.request_id in MANY]


def test_all_observers_are_answered_at_the_first_commit_after_a_pause() -> None:
    """A commit that no other one precedes for a time reaches them without a delay."""
    ready = commit(followed_by(MANY), NOW_MS + 100)

    assert answered(ready) == list(MANY)


def test_observers_at_the_same_offset_get_one_response() -> None:
    """The shell reads and encodes it once."""
    ready = commit(followed_by(MANY), NOW_MS + 100)
    first, *others = (reply.body for reply in _observers_replies(ready))

    assert isinstance(first, FetchResponse)
    assert first.read == ReadRange(4, 5, 1024 * 1024)
    assert all(other is first for other in others)


def test_many_observers_wait_for_the_end_of_the_pause_with_the_next_commits() -> None:
    """Whether they had asked before the commit or ask after it; then they get all records since."""
    node = commit(followed_by(MANY), NOW_MS + 100).node
    early = ask(node, MANY[0], 5, NOW_MS + 101).node
    again = commit(early, NOW_MS + 102)
    late = ask(again.node, MANY[1], 5, NOW_MS + 103)
    before_end = tick(late.node, NOW_MS + 100 + PAUSE_MS - 1)
    at_end = tick(late.node, NOW_MS + 100 + PAUSE_MS)

    assert (answered(again), answered(late), answered(before_end)) == ([], [], [])
    assert late.next_tick_ms == NOW_MS + 100 + PAUSE_MS
    assert answered(at_end) == [MANY[0], MANY[1]]
    assert {reply.body.read for reply in at_end.replies if isinstance(reply.body, FetchResponse)} == {
        ReadRange(5, 6, 1024 * 1024)
    }


def test_the_first_of_many_late_observers_is_answered_at_once_and_starts_the_pause() -> None:
    """Else observers that always lag behind would never be answered together."""
    node = commit(followed_by(MANY), NOW_MS + 100).node
    first = ask(node, MANY[0], 4, NOW_MS + 200)
    second = ask(first.node, MANY[1], 4, NOW_MS + 201)

    assert (answered(first), answered(second)) == ([MANY[0]], [])
    assert answered(tick(second.node, NOW_MS + 200 + PAUSE_MS)) == [MANY[1]]


def test_an_observer_whose_log_differs_is_corrected_in_the_pause() -> None:
    """It may be a controller that is to become a voter, and has records that no other one has."""
    node = commit(followed_by(MANY), NOW_MS + 100).node
    ready = ask(node, MANY[0], 9, NOW_MS + 101, epoch=4)

    assert answered(ready) == [MANY[0]]


def test_a_voter_is_answered_in_the_pause_of_the_observers() -> None:
    """The commit waits for it."""
    node = commit(followed_by(MANY), NOW_MS + 100).node
    body = fetch(OTHER, 5, EPOCH, high_watermark=5)
    waiting = step(node, Request(7, nodes.LISTENER, body), NOW_MS + 101).node
    appended = step(waiting, Append(8, EPOCH, b"data", 1), NOW_MS + 102)

    assert 7 in [reply.request_id for reply in appended.replies]


def test_an_observer_that_has_waited_its_time_starts_no_pause() -> None:
    """Otherwise the observers of an idle leader, which wait 500 ms each, would delay the next commit."""
    node = tick(followed_by(MANY), NOW_MS + 500).node
    for observer in MANY:
        node = ask(node, observer, 4, NOW_MS + 501).node

    assert answered(commit(node, NOW_MS + 502)) == list(MANY)


def test_few_observers_are_answered_at_each_commit() -> None:
    """They take little of the leader's time."""
    node = commit(followed_by(FEW), NOW_MS + 100).node
    for observer in FEW:
        node = ask(node, observer, 5, NOW_MS + 100).node

    assert observer_pause_ms(len(FEW)) == 0
    assert answered(commit(node, NOW_MS + 100)) == list(FEW)
