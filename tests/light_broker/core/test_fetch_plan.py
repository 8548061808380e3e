"""Bytes and offsets of a Fetch request. Source: Kafka's ReplicaManager.readFromLog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_log.format.epochs import EpochStart
from kafka_wire import ErrorCode
from light_broker.core.fetch_plan import Budget, answers_at_once, limit_offset
from light_broker.core.replica_requests import FetchParams, ReadLimit, ReadResult


@pytest.mark.shows("B3")
@given(end=st.integers(0, 9), hw=st.integers(0, 9), stable=st.integers(0, 9))
def test_consumers_read_below_the_high_watermark_and_only_followers_to_the_end(end: int, hw: int, stable: int) -> None:
    """B3."""
    limits = [limit_offset(limit, end_offset=end, high_watermark=hw, stable_offset=stable) for limit in ReadLimit]

    assert limits == [end, hw, stable]


def taken(sizes: list[int], *, max_bytes: int, partition_max_bytes: int = 100) -> list[bool]:
    """Return which partitions give records whose first batch has these sizes."""
    budget = Budget(max_bytes)
    return [budget.takes(size, budget.limit(partition_max_bytes)) for size in sizes]


def test_the_first_partition_with_records_gives_a_whole_batch_however_large() -> None:
    """KIP-74: a consumer gets on with a batch that exceeds its limits."""
    assert taken([0, 500, 10], max_bytes=50) == [False, True, False]


def test_a_later_partition_gives_nothing_if_its_batch_exceeds_what_is_left() -> None:
    """KIP-74."""
    assert taken([30, 30, 20], max_bytes=50) == [True, False, True]


def test_the_limit_of_a_partition_holds_once_another_has_given_records() -> None:
    """Source: ReplicaManager.readFromLog."""
    assert taken([10, 101], max_bytes=500) == [True, False]


@given(sizes=st.lists(st.integers(0, 40), max_size=8), max_bytes=st.integers(0, 100))
def test_a_response_exceeds_its_limit_by_its_first_batch_only(sizes: list[int], max_bytes: int) -> None:
    """KIP-74."""
    given_sizes = [size for size, is_taken in zip(sizes, taken(sizes, max_bytes=max_bytes), strict=True) if is_taken]

    assert sum(given_sizes) <= max(max_bytes, given_sizes[0] if given_sizes else 0)
    assert bool(given_sizes) == any(sizes)


@pytest.mark.parametrize(
    ("result", "at_once"),
    [
        (ReadResult(), False),
        (ReadResult(ErrorCode.NOT_LEADER_OR_FOLLOWER), True),
        (ReadResult(diverging=EpochStart(1, 2)), True),
        (ReadResult(preferred_read_replica=3), True),
    ],
)
def test_a_fetch_without_enough_records_waits_unless_there_is_other_news(result: ReadResult, *, at_once: bool) -> None:
    """Source: ReplicaManager.fetchMessages."""
    assert answers_at_once(FetchParams(max_wait_ms=500, min_bytes=10), [result], 9) is at_once


def test_a_fetch_without_a_wait_is_answered_at_once() -> None:
    """Source: ReplicaManager.fetchMessages."""
    assert answers_at_once(FetchParams(max_wait_ms=0), [ReadResult()], 0)
    assert answers_at_once(FetchParams(max_wait_ms=500), [], 0)
    assert answers_at_once(FetchParams(max_wait_ms=500, min_bytes=10), [ReadResult()], 10)
