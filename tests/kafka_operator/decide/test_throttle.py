"""Settings of a throttle that are set and removed, where the laws do not reach: other Reassignments, deleted topics, missing brokers."""

from __future__ import annotations

import pytest

from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker, ReadThrottle
from kafka_operator.decide.reassignments.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    NO_OTHERS,
    NOTHING,
    DesiredThrottle,
    ObservedThrottle,
    OtherThrottles,
    changes,
    recorded,
    settled,
    unread_throttles,
)
from kafka_operator.decide.steps import AlterConfig
from kafka_operator.resources.throttle import (
    BrokerThrottle,
    ThrottleRecord,
    TopicThrottle,
    read_throttle_record,
)

WISH = DesiredThrottle(500, frozenset({1, 2}), {"t": (frozenset({"0:1"}), frozenset({"0:2"}))})
EMPTY = ObservedThrottle({1: {}, 2: {}}, {"t": {}})
GONE = Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "gone")
AWAY = Failure(8, "BROKER_NOT_AVAILABLE", "away")


def test_nothing_is_recorded_before_it_was_looked_at() -> None:
    """What was there before must be known."""
    assert unread_throttles(None, WISH, ObservedThrottle()) == ReadThrottle((1, 2), ("t",))
    assert unread_throttles(None, WISH, EMPTY) is None


@pytest.mark.shows("E4")
def test_a_record_grows_before_it_is_set_and_shrinks_after_it_was_seen() -> None:
    """Between the two, both the old and the new may be in Kafka."""
    first = recorded(None, WISH, EMPTY, NO_OTHERS)
    next_wish = DesiredThrottle(900, frozenset({1}), {"t": (frozenset({"1:1"}), frozenset({"1:2"}))})

    second = recorded(first, next_wish, EMPTY, NO_OTHERS)

    assert second.rates == (500, 900)
    assert second.topics[0].leader == frozenset({"0:1", "1:1"})
    left = settled(second, next_wish, ())
    assert left is not None
    assert (
        left.rates,
        left.topics[0].leader,
        tuple(item.broker_id for item in left.brokers),
    ) == ((900,), frozenset({"1:1"}), (1,))
    assert settled(second, NOTHING, ()) is None


def test_a_record_reads_back_as_it_was_written() -> None:
    """Otherwise every poll would find a difference and write again (O7)."""
    record = ThrottleRecord(
        (5, 7),
        (BrokerThrottle(1, "3", None), BrokerThrottle(2)),
        (TopicThrottle("t", frozenset({"10:1", "9:1"}), frozenset(), None, "*"),),
    )

    assert record == read_throttle_record(record.to_json())
    assert record.to_json()["topics"][0]["leader"] == "9:1,10:1"


def test_a_rate_that_was_set_outside_in_the_meantime_stays() -> None:
    """The operator did not set it, so it does not remove it."""
    record = recorded(None, WISH, EMPTY, NO_OTHERS)
    seen = ObservedThrottle({1: {LEADER_RATE: "77", FOLLOWER_RATE: "500"}, 2: {}}, {"t": {LEADER_REPLICAS: "0:1,8:8"}})

    change, left = changes(record, NOTHING, seen, NO_OTHERS)

    assert left == frozenset()
    assert change is not None
    assert change.brokers == (AlterBroker(1, ((FOLLOWER_RATE, None), (LEADER_RATE, "77"))),)
    assert change.topics == (AlterConfig("t", ((LEADER_REPLICAS, "8:8"),), (FOLLOWER_REPLICAS,)),)


def test_the_lower_of_two_rates_is_in_force_and_the_last_one_puts_back_what_was_there() -> None:
    """Neither takes the other's for what was there before, nor away while the other needs it."""
    before = ObservedThrottle({1: {LEADER_RATE: "9", FOLLOWER_RATE: "9"}, 2: {}}, {"t": {LEADER_REPLICAS: "5:5"}})
    first = recorded(None, WISH, before, NO_OTHERS)
    set_by_first = ObservedThrottle(
        {1: {LEADER_RATE: "500", FOLLOWER_RATE: "500"}, 2: {LEADER_RATE: "500", FOLLOWER_RATE: "500"}},
        {"t": {LEADER_REPLICAS: "5:5,0:1", FOLLOWER_REPLICAS: "0:2"}},
    )
    other = DesiredThrottle(300, frozenset({1}), {"t": (frozenset({"1:1"}), frozenset({"1:2"}))})

    second = recorded(None, other, set_by_first, OtherThrottles((first,)))

    assert second.brokers[0] == BrokerThrottle(1, "9", "9")
    assert (second.topics[0].leader_before, second.topics[0].follower_before) == ("5:5", None)
    change, _ = changes(first, WISH, set_by_first, OtherThrottles((second,)))
    assert change is not None
    assert change.brokers == (AlterBroker(1, ((FOLLOWER_RATE, "300"), (LEADER_RATE, "300"))),)
    handed_over, _ = changes(first, NOTHING, set_by_first, OtherThrottles((second,)))
    assert handed_over is not None
    rates = {item.broker_id: dict(item.changes)[LEADER_RATE] for item in handed_over.brokers}
    assert rates == {1: "300", 2: None}
    last, _ = changes(
        second, NOTHING, ObservedThrottle({1: dict.fromkeys((LEADER_RATE, FOLLOWER_RATE), "300")}, {"t": {}}), NO_OTHERS
    )
    assert last is not None
    assert last.brokers == (AlterBroker(1, ((FOLLOWER_RATE, "9"), (LEADER_RATE, "9"))),)


def test_a_topic_that_is_gone_took_its_throttle_along_and_a_broker_that_is_away_keeps_it() -> None:
    """The first is done with, the second stays recorded."""
    record = recorded(None, WISH, EMPTY, NO_OTHERS)

    change, left = changes(record, NOTHING, ObservedThrottle({1: AWAY, 2: {}}, {"t": GONE}), NO_OTHERS)

    assert (change, left) == (None, frozenset({1}))
    kept = settled(record, NOTHING, left)
    assert kept is not None
    assert ([item.broker_id for item in kept.brokers], kept.topics) == ([1], ())
