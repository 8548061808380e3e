"""What a broker refused is told again: in which company, and after which pause.

Sources: C12 (every live broker knows the cluster's state); ReplicaManager.becomeLeaderOrFollower, which throws for all.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller_core.model.events import LeaderAndIsrRejected
from controller_core.model.ids import TopicPartition
from controller_core.shell.brokers.answers import MAX_PAUSE_S, PACE_S, PAUSE_S, RefusedPartitions

MAX_ROUNDS = 64


def named(count: int) -> dict[TopicPartition, int]:
    """So many partitions, each under a leader epoch of its own."""
    return {TopicPartition("orders", number): number for number in range(count)}


def alone(number: int) -> dict[TopicPartition, int]:
    """One partition."""
    return {TopicPartition("orders", number): number}


def pause_s(refusals: RefusedPartitions, number: int) -> float:
    """Refuse one partition alone, and tell the pause."""
    (retry,) = refusals.retries(1, alone(number))
    return retry.pause_s


def test_a_request_comes_back_as_its_halves() -> None:
    """Nothing is left out, nothing is told twice, and the epochs are those that were told."""
    retries = list(RefusedPartitions().retries(1, named(5)))

    told = named(5)
    halves = [dict(list(told.items())[:2]), dict(list(told.items())[2:])]
    assert [LeaderAndIsrRejected(1, half) for half in halves] == [retry.event for retry in retries]
    assert [retry.pause_s for retry in retries] == [PAUSE_S, PAUSE_S]


def test_an_empty_request_needs_no_telling() -> None:
    """There is nobody who did not hear."""
    assert list(RefusedPartitions().retries(1, {})) == []


@given(count=st.integers(1, 300), bad=st.sets(st.integers(0, 299), min_size=1, max_size=5))
def test_those_at_fault_are_alone_after_as_many_rounds_as_the_logarithm(count: int, bad: set[int]) -> None:
    """And all the others were taken: one partition cannot hold back the rest."""
    refusals, waiting, taken = RefusedPartitions(), [named(count)], set[int]()
    at_fault = {number for number in bad if number < count}
    for _ in range(count.bit_length() + 1):
        refused = [told for told in waiting if at_fault.intersection(name.partition for name in told)]
        taken |= {name.partition for told in waiting if told not in refused for name in told}
        waiting = [dict(retry.event.leader_epochs) for told in refused for retry in refusals.retries(1, told)]

    assert set(range(count)) - at_fault == taken
    assert sorted(at_fault) == sorted(name.partition for told in waiting for name in told)
    assert all(len(told) == 1 for told in waiting)


def test_the_pause_doubles_up_to_a_limit() -> None:
    """Each telling raises a leader epoch, and has the followers begin anew."""
    refusals = RefusedPartitions()
    pauses = [pause_s(refusals, 0) - PACE_S for _ in range(MAX_ROUNDS)]

    assert [round(pause, 6) for pause in pauses[:3]] == [PAUSE_S, 2 * PAUSE_S, 4 * PAUSE_S]
    assert all(earlier <= later for earlier, later in pairwise(pauses))
    assert round(pauses[-1], 6) == MAX_PAUSE_S


def test_many_that_are_refused_alone_are_told_again_one_after_another() -> None:
    """A broker that refuses thousands must not be what the cluster is busy with."""
    refusals = RefusedPartitions()
    pauses = [pause_s(refusals, number) for number in range(1000)]

    assert [round(later - earlier, 6) for earlier, later in pairwise(pauses)] == [PACE_S] * 999


def test_a_partition_that_was_taken_begins_again_with_the_shortest_pause() -> None:
    """Another refusal is another matter."""
    refusals = RefusedPartitions()
    first, second = pause_s(refusals, 0), pause_s(refusals, 0)
    assert refusals.has_any(1)
    refusals.accepted(1, alone(0))

    assert not refusals.has_any(1)
    assert first < second
    assert first == pause_s(refusals, 0)


def test_what_others_refused_or_took_changes_nothing() -> None:
    """Each broker has its own disks."""
    refusals = RefusedPartitions()
    first = pause_s(refusals, 0)
    list(refusals.retries(2, alone(0)))
    refusals.accepted(2, alone(0))
    refusals.forget(2)

    assert first < pause_s(refusals, 0)


def test_another_life_of_a_broker_begins_with_the_shortest_pause() -> None:
    """Whatever was wrong may be gone."""
    refusals = RefusedPartitions()
    first = pause_s(refusals, 0)
    refusals.forget(1)

    assert first == pause_s(refusals, 0)
