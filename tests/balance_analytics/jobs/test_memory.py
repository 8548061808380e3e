"""A driver with too little memory is refused before it is killed, with a message that names the value to set.

Source: docs/analytics.md.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from balance_analytics.jobs import memory
from balance_analytics.jobs.memory import MIB, require_memory, shortage
from balance_analytics.jobs.problems import AnalyticsError
from balance_analytics.moves.partition_loads import MAX_PARTITIONS

PARTITIONS = st.integers(0, MAX_PARTITIONS)
SIZES = st.integers(64, 2**16).map(lambda mebibytes: mebibytes * MIB)


@pytest.mark.parametrize("partitions", [1, 10_000, 100_000, 1_000_000, 2_000_000])
def test_the_charts_defaults_suffice_for_their_partitions(partitions: int) -> None:
    """As tests/charts/test_schedule.py has them."""
    heap = (768 + partitions // 4_000) * MIB
    overhead = (512 + partitions * 6 // 10_000) * MIB

    assert shortage(partitions, heap + overhead, heap) is None


def test_a_heap_that_is_too_small_is_named() -> None:
    """The heap first: a larger one changes what is left for Python."""
    found = shortage(1_000_000, 512 * MIB, 300 * MIB)

    assert found is not None
    assert found.refused
    assert "need a heap of 447 MiB on the driver, and it has 300 MiB" in found.message
    assert "analytics.schedule.partitions of the chart to 1000000, or memory of the driver to 447m" in found.message


def test_a_run_that_is_near_its_limit_is_warned_and_not_refused() -> None:
    """A heap is seldom full."""
    found = shortage(200_000, 1_434 * MIB, 1_024 * MIB)

    assert found is not None
    assert not found.refused


@given(PARTITIONS, SIZES, SIZES, SIZES)
def test_what_is_advised_suffices(partitions: int, limit: int, heap: int, overhead: int) -> None:
    """With the heap or the overhead that the message names, and the default overhead or more, nothing is short any more."""
    found = shortage(partitions, limit, heap)
    for _ in range(2):
        if found is None:
            break
        advised = int(found.message.rpartition(" ")[2].removesuffix("m")) * MIB
        if "need a heap" in found.message:
            heap, limit = advised, advised + overhead
        else:
            limit = heap + advised
        found = shortage(partitions, limit, heap)

    assert found is None


@given(PARTITIONS, st.none() | SIZES, SIZES)
def test_more_partitions_never_need_less(partitions: int, limit: int | None, heap: int) -> None:
    """Once short, short for every larger cluster."""
    if shortage(partitions, limit, heap) is not None:
        assert shortage(partitions + 1_000, limit, heap) is not None


@pytest.mark.java
@pytest.mark.timeout(600)
def test_the_driver_is_compared_with_its_own_heap_and_limit(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The session of the tests has a heap of 768 MiB."""
    monkeypatch.setattr(memory, "memory_limit_bytes", lambda: None)
    require_memory(spark, 1_000_000)
    assert capsys.readouterr().err == ""

    monkeypatch.setattr(memory, "memory_limit_bytes", lambda: 1_300 * MIB)
    require_memory(spark, 10_000)
    with pytest.raises(AnalyticsError, match="too little memory: 2000000 partitions need"):
        require_memory(spark, 2_000_000)
    require_memory(spark, 500_000)
    assert "has little memory: 500000 partitions need" in capsys.readouterr().err
