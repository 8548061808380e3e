"""A topic onto a set of brokers, with the fewest moves."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic
from kafka_operator.decide.plans.spread import spread

BROKERS = st.lists(st.integers(1, 12), min_size=1, max_size=8, unique=True)


@st.composite
def topics(draw: st.DrawFn) -> KafkaTopic:
    """A topic of one replication factor on some of twelve brokers."""
    factor = draw(st.integers(1, 4))
    replicas = st.permutations(range(1, 13)).map(lambda ids: tuple(ids[:factor]))
    parts = draw(st.lists(replicas, min_size=1, max_size=12))
    return KafkaTopic("t", None, tuple(KafkaPartition(index, ids[0], ids) for index, ids in enumerate(parts)))


@given(topics(), BROKERS)
def test_every_partition_keeps_its_copies_on_distinct_brokers_of_the_set(topic: KafkaTopic, brokers: list[int]) -> None:
    """Or there is no such plan at all."""
    plan = spread(topic, brokers)

    if topic.replication_factor > len(brokers):
        assert plan is None
        return
    assert plan is not None
    for item, before in zip(plan, topic.partitions, strict=True):
        assert len(before.replicas) == len(item.replicas) == len(set(item.replicas))
        assert set(item.replicas) <= set(brokers)


@given(topics(), BROKERS)
def test_what_may_stay_stays_where_it_is(topic: KafkaTopic, brokers: list[int]) -> None:
    """The fewest replicas move, and no preferred leader changes without need."""
    plan = spread(topic, brokers)

    for item, before in zip(plan or (), topic.partitions, strict=False):
        for place, broker in enumerate(before.replicas):
            assert broker not in brokers or broker == item.replicas[place]


@given(topics(), BROKERS)
def test_a_spread_topic_is_left_as_it_is(topic: KafkaTopic, brokers: list[int]) -> None:
    """O2: the second time nothing moves."""
    plan = spread(topic, brokers)

    if plan is not None:
        again = KafkaTopic("t", None, tuple(KafkaPartition(i, a.replicas[0], a.replicas) for i, a in enumerate(plan)))
        assert plan == spread(again, brokers)


def test_leaders_and_replicas_go_evenly_to_the_new_brokers() -> None:
    """Six partitions from brokers 1, 2, 3 to 2, 3, 4 and 5: the leaders of 1 become those of 4 and 5."""
    rings = [(1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)]
    topic = KafkaTopic("t", None, tuple(KafkaPartition(index, ids[0], ids) for index, ids in enumerate(rings)))

    plan = spread(topic, [2, 3, 4, 5])

    assert plan is not None
    assert Counter(item.replicas[0] for item in plan) == {2: 2, 3: 2, 4: 1, 5: 1}
    assert Counter(broker for item in plan for broker in item.replicas) == {2: 6, 3: 6, 4: 3, 5: 3}
