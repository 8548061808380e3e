"""Retries of refused LeaderAndIsr requests: their partitions and pauses.

Sources: C12 (every live broker knows the cluster's state); ReplicaManager.becomeLeaderOrFollower, whose exceptions fail the whole request.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import TopicPartition
from controller_core.model.zookeeper_events import LeaderAndIsrRejected
from controller_core.shell.brokers.answers import MAX_PAUSE_S, PACE_S, PAUSE_S, RefusedPartitions

MAX_ROUNDS = 64


def named(count: int) -> dict[TopicPartition, int]:
    """`count` partitions, each with its own leader epoch."""
    return {TopicPartition("orders", number): number for number in range(count)}


def only(number: int) -> dict[TopicPartition, int]:
    """One partition."""
    return {TopicPartition("orders", number): number}


def pause_s(refusals: RefusedPartitions, number: int) -> float:
    """Refuse a request with one partition, and return the pause."""
    (retry,) = refusals.retries(1, only(number))
    return retry.pause_s


def test_a_refused_request_is_retried_in_halves() -> None:
    """Each partition is in exactly one half, with the leader epoch of the request."""
    retries = list(RefusedPartitions().retries(1, named(5)))

    sent = list(named(5).items())
    assert [retry.event for retry in retries] == [LeaderAndIsrRejected(1, dict(half)) for half in (sent[:2], sent[2:])]
    assert [retry.pause_s for retry in retries] == [PAUSE_S, PAUSE_S]


def test_an_empty_request_is_not_retried() -> None:
    """It contained no partitions."""
    assert list(RefusedPartitions().retries(1, {})) == []


@given(count=st.integers(1, 300), bad=st.sets(st.integers(0, 299), min_size=1, max_size=5))
def test_failing_partitions_are_isolated_after_logarithmically_many_rounds(count: int, bad: set[int]) -> None:
    """All others are accepted: one partition cannot block the rest."""
    refusals, waiting, accepted = RefusedPartitions(), [named(count)], set[int]()
    failing = {number for number in bad if number < count}
    for _ in range(count.bit_length() + 1):
        refused = [sent for sent in waiting if failing.intersection(name.partition for name in sent)]
        accepted |= {name.partition for sent in waiting if sent not in refused for name in sent}
        waiting = [dict(retry.event.leader_epochs) for sent in refused for retry in refusals.retries(1, sent)]

    assert accepted == set(range(count)) - failing
    assert sorted(name.partition for sent in waiting for name in sent) == sorted(failing)
    assert all(len(sent) == 1 for sent in waiting)


def test_the_pause_doubles_up_to_a_limit() -> None:
    """Each retry raises a leader epoch and restarts the followers' fetchers."""
    refusals = RefusedPartitions()
    pauses = [pause_s(refusals, 0) - PACE_S for _ in range(MAX_ROUNDS)]

    assert [round(pause, 6) for pause in pauses[:3]] == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert all(earlier <= later for earlier, later in pairwise(pauses))
    assert round(pauses[-1], 6) == MAX_PAUSE_S


def test_retries_of_many_refused_partitions_are_spread_over_time() -> None:
    """A broker that refuses thousands of partitions must not cause most of the cluster's work."""
    refusals = RefusedPartitions()
    pauses = [pause_s(refusals, number) for number in range(1000)]

    assert [round(later - earlier, 6) for earlier, later in pairwise(pauses)] == [PACE_S] * 999


def test_an_accepted_partition_starts_again_with_the_shortest_pause() -> None:
    """A later refusal has another cause."""
    refusals = RefusedPartitions()
    first, second = pause_s(refusals, 0), pause_s(refusals, 0)
    assert refusals.has_any(1)
    refusals.accepted(1, only(0))

    assert not refusals.has_any(1)
    assert first < second
    assert first == pause_s(refusals, 0)


def test_refusals_are_counted_for_each_broker() -> None:
    """Each broker has its own disks."""
    refusals = RefusedPartitions()
    first = pause_s(refusals, 0)
    list(refusals.retries(2, only(0)))
    refusals.accepted(2, only(0))
    refusals.forget(2)

    assert first < pause_s(refusals, 0)


def test_a_new_incarnation_starts_with_the_shortest_pause() -> None:
    """The restart may have fixed the cause."""
    refusals = RefusedPartitions()
    first = pause_s(refusals, 0)
    refusals.forget(1)

    assert first == pause_s(refusals, 0)
