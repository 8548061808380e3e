"""Clusters divided among processes."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.decide.shards import MAX_SHARDS, shard_of
from reconciler.names import NamespacedName

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=20)


@pytest.mark.shows("O10")
@given(NAMES, NAMES, st.integers(1, MAX_SHARDS))
def test_every_cluster_is_served_by_exactly_one_shard(namespace: str, name: str, shards: int) -> None:
    """O10: the same in every process; so is what refers to it, wherever that is."""
    ref = NamespacedName(namespace, name)

    assert sum(shard_of(ref, shards) == shard for shard in range(shards)) == 1


def test_shards_stay_what_they_are() -> None:
    """A hash that changed with a version would have two processes serve one Cluster during an upgrade."""
    assert [shard_of(NamespacedName("shop", name), 4) for name in ("main", "a", "b", "orders")] == [0, 2, 0, 3]


def test_shards_are_about_as_large_as_each_other() -> None:
    """A thousand Clusters on four."""
    counts = Counter(shard_of(NamespacedName("shop", f"kafka-{number}"), 4) for number in range(1000))

    assert all(200 < counts[shard] < 300 for shard in range(4))
