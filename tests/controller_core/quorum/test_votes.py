"""Votes of an election, and the waits of those that lose or succeed."""

from hypothesis import given
from hypothesis import strategies as st

from controller_core.quorum.rules import retry_backoff_ms, successor_backoff_ms
from controller_core.quorum.states import Votes
from controller_core.quorum.voters import ReplicaKey

ANSWERS = st.lists(st.tuples(st.integers(0, 6), st.booleans()), max_size=12)


@given(st.integers(1, 6), ANSWERS)
def test_an_election_is_won_by_a_majority_and_lost_without_hope_of_one(
    count: int, answers: list[tuple[int, bool]]
) -> None:
    """The first answer of each voter counts; answers of others do not."""
    votes = Votes.start([ReplicaKey(voter_id) for voter_id in range(1, count + 1)], ReplicaKey(1))
    first: dict[int, bool] = {1: True}
    for voter, granted in answers:
        votes = votes.record(voter, granted=granted)
        if voter <= count and voter:
            first.setdefault(voter, granted)

    granted_count = sum(first.values())
    open_count = count - len(first)
    assert votes.is_won == (granted_count > count / 2)
    assert votes.is_lost == (granted_count + open_count <= count / 2)
    assert not (votes.is_won and votes.is_lost)
    assert [key.id for key in votes.missing] == [voter_id for voter_id in range(1, count + 1) if voter_id not in first]


@given(st.integers(1, 8), st.integers(0, 10_000))
def test_successors_wait_longer_the_later_they_are_named(count: int, maximum_ms: int) -> None:
    """Strict exponential backoff: the first at once, none longer than the limit, one that is not named longest."""
    waits = [successor_backoff_ms(position, count, maximum_ms) for position in range(count + 1)]

    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0, maximum_ms if count else 0)


@given(st.integers(1, 40), st.integers(0, 1 << 32))
def test_the_wait_after_lost_elections_is_bounded(retries: int, draw: int) -> None:
    """Binary exponential backoff of Kafka 3: multiples of 100 ms, below 100 ms * 2^retries."""
    wait_ms = retry_backoff_ms(retries, draw, 1000)

    assert wait_ms % 100 == 0
    assert wait_ms <= min(1000, 100 * (2 << retries - 1))
