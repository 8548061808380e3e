"""Look-ups of partitions in the cluster's state."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from controller_core.model import Cluster
from controller_core.model.cluster import NO_ROW
from controller_core.model.columns import pad

NUMBERS = st.frozensets(st.integers(0, 12))


@given(current=NUMBERS, asked=st.lists(st.integers(-2, 14)))
def test_rows_of_many_partitions_are_those_of_each(current: frozenset[int], asked: list[int]) -> None:
    """Also with gaps between the partitions, and for partitions that the topic does not have."""
    cluster = Cluster(1, 1)
    other, topic = cluster.add_topic("other", None), cluster.add_topic("topic", None)
    other.rows = cluster.columns.add(other.index, np.arange(3, dtype=np.int32), pad([(1,)] * 3))
    topic.rows = cluster.columns.add(topic.index, np.array(sorted(current), np.int32), pad([(1,)] * len(current)))

    one_by_one = [cluster.row_of("topic", partition) for partition in asked]
    found = cluster.rows_of(topic, np.array(asked, np.int32)).tolist()
    assert found == [NO_ROW if row is None else row for row in one_by_one]
