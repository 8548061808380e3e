"""A sketch of keys is never wrong by more than its error bound."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from balance_analytics.study.key_skew import KeySketch, heavy_keys, partition_floor

BATCHES = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=40).map(Counter), max_size=6)


def sketch_of(batches: list[Counter[str]], counters: int) -> KeySketch:
    """Feed batches one by one."""
    sketch = KeySketch(counters)
    for batch in batches:
        sketch = sketch.adding(batch)
    return sketch


@given(BATCHES, st.integers(1, 6))
def test_counts_are_too_low_by_the_error_at_most_and_never_too_high(batches: list[Counter[str]], counters: int) -> None:
    """Misra and Gries 1982: within n / (k + 1), with k counters."""
    truth = sum(batches, Counter())

    sketch = sketch_of(batches, counters)

    assert truth.total() == sketch.messages
    assert sketch.error <= sketch.messages / (counters + 1)
    assert len(sketch.counts) <= counters
    for key, count in truth.items():
        assert count - sketch.error <= sketch.counts.get(key, 0) <= count


@given(BATCHES, BATCHES, st.integers(1, 6))
def test_sketches_merge_within_the_same_bound(
    first: list[Counter[str]], second: list[Counter[str]], counters: int
) -> None:
    """Agarwal and others 2012, mergeable summaries."""
    merged = sketch_of(first, counters).merged(sketch_of(second, counters))

    truth = sum((*first, *second), Counter())
    assert merged.error <= truth.total() / (counters + 1)
    assert all(count - merged.error <= merged.counts.get(key, 0) <= count for key, count in truth.items())


@given(BATCHES, st.integers(1, 6), st.floats(0.2, 0.9))
def test_no_heavy_key_is_missing(batches: list[Counter[str]], counters: int, part: float) -> None:
    """A key above the sketch's own uncertainty is listed, with its true part between both ends."""
    truth = sum(batches, Counter())
    sketch = sketch_of(batches, counters)

    found = {heavy.key: heavy for heavy in heavy_keys(sketch, part)}

    for key, count in truth.items():
        true_part = count / truth.total()
        if count > sketch.error and true_part >= part:
            assert found[key].at_least <= true_part <= found[key].at_most + 1e-12
    assert partition_floor(sketch) <= max(truth.values(), default=0) / max(truth.total(), 1)
