"""Replication throttles as set by Kafka's own tool: configuration of brokers and topics, and its restoration.

    leader.replication.throttled.rate, follower.replication.throttled.rate            on each broker that sends or receives
    leader.replication.throttled.replicas, follower.replication.throttled.replicas    on each topic that moves

What may be set is recorded before it is set (`recorded`), and the record shrinks only when Kafka has been seen without it. So whoever
finds a record, after any crash, can take away exactly what is ours:

    a rate       is ours if the record has it: what was there before comes back; any other is somebody else's, and stays
    an entry     is ours if the record has it and it was not there before

Two Reassignments may throttle the same broker, and a broker has one rate. In one namespace the lower rate is in force, and what was
there before the first comes back after the last: a broker's record is taken over with what the other has noted in it. Across namespaces:

    the Cluster's own    sets its rates as if there were no others
    another namespace    leaves a broker alone that the Cluster's own namespace throttles, or that somebody throttles by hand;
                         of several such namespaces the highest rate is in force
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_operator.decide.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from kafka_operator.decide.observed import Failure
from kafka_operator.decide.places import Places
from kafka_operator.decide.reassignment_steps import AlterBroker, AlterThrottle, LookAtThrottle
from kafka_operator.decide.steps import AlterConfig
from kafka_operator.resources.reassignment import Assignment
from kafka_operator.resources.throttle import BrokerThrottle, ThrottleRecord, TopicThrottle, entries_of

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)

EVERYTHING = "*"
"""A list that throttles all replicas of a topic: somebody else's, and enough for us as well."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ThrottleSeen:
    """What is set on brokers and topics themselves, by name, as far as it was looked at; or why one did not tell."""

    brokers: Mapping[int, Values | Failure] = field(default_factory=dict)
    topics: Mapping[str, Values | Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wish:
    """Desired throttle: rate, brokers, and replicas of each topic (leaders, followers)."""

    rate: int = 0
    brokers: frozenset[int] = frozenset()
    topics: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)


NOTHING = Wish()


@dataclass(frozen=True, slots=True)
class OtherThrottles:
    """What other Reassignments of the same Kafka cluster have recorded, by what it counts for this one."""

    peers: tuple[ThrottleRecord, ...] = ()
    """Of the same namespace."""
    owners: tuple[ThrottleRecord, ...] = ()
    """Of the Cluster's own namespace, where this Reassignment is of another one."""
    tenants: tuple[tuple[ThrottleRecord, ...], ...] = ()
    """Of other namespaces that the Cluster allows, grouped by namespace."""
    without_right: tuple[ThrottleRecord, ...] = ()
    """Of namespaces that lost their right: a rate of theirs may still be set, and has no weight."""
    is_tenant: bool = False
    """Whether this Reassignment is of another namespace than its Cluster."""

    @property
    def every(self) -> tuple[ThrottleRecord, ...]:
        """Return all of them."""
        tenants = tuple(record for records in self.tenants for record in records)
        return (*self.peers, *self.owners, *tenants, *self.without_right)


ALONE = OtherThrottles()


def wish_for(items: Iterable[Assignment], places: Places, rate: int, alive: Collection[int]) -> Wish:
    """Return what these moves want: sent by any replica of before, received by any that is added; a dead broker does neither."""
    brokers: set[int] = set()
    topics: dict[str, tuple[set[str], set[str]]] = {}
    for item in items:
        known = places.present.get(item.partition)
        before = () if known is None else known.replicas
        adding = [broker for broker in item.replicas if broker not in before]
        if not adding:
            continue
        leaders, followers = topics.setdefault(item.partition.topic, (set(), set()))
        leaders.update(f"{item.partition.index}:{broker}" for broker in before)
        followers.update(f"{item.partition.index}:{broker}" for broker in adding)
        brokers.update(before, adding)
    shown = {name: (frozenset(leaders), frozenset(followers)) for name, (leaders, followers) in topics.items()}
    return Wish(rate, frozenset(brokers) & frozenset(alive), shown)


def unseen(record: ThrottleRecord | None, wish: Wish, seen: ThrottleSeen) -> LookAtThrottle | None:
    """Return what must be read before a decision; None if everything has been read."""
    brokers = {item.broker_id for item in record.brokers} if record is not None else set()
    topics = {item.topic for item in record.topics} if record is not None else set()
    missing_brokers = sorted((brokers | wish.brokers) - seen.brokers.keys())
    missing_topics = sorted((topics | wish.topics.keys()) - seen.topics.keys())
    if not missing_brokers and not missing_topics:
        return None
    return LookAtThrottle(tuple(missing_brokers), tuple(missing_topics))


def recorded(record: ThrottleRecord | None, wish: Wish, seen: ThrottleSeen, others: OtherThrottles) -> ThrottleRecord:
    """Return the record that has to be written before the wish is granted: the present one, and what it lacks."""
    rates = tuple(rate for rate in (record.rates if record is not None else ()) if rate != wish.rate)
    brokers = {item.broker_id: item for item in record.brokers} if record is not None else {}
    topics = {item.topic: item for item in record.topics} if record is not None else {}
    for broker_id in sorted(wish.brokers - brokers.keys()):
        brokers[broker_id] = _broker_before(broker_id, seen, others)
    for name, (leader, follower) in sorted(wish.topics.items()):
        known = topics.get(name) or _topic_before(name, seen, others)
        topics[name] = TopicThrottle(
            name, known.leader | leader, known.follower | follower, known.leader_before, known.follower_before
        )
    return ThrottleRecord(
        (*rates, wish.rate),
        tuple(brokers[key] for key in sorted(brokers)),
        tuple(topics[key] for key in sorted(topics)),
    )


def settled(record: ThrottleRecord, wish: Wish, left: Collection[object]) -> ThrottleRecord | None:
    """Return what is left of a record when Kafka was seen as wished; `left` are brokers and topics that could not be changed."""
    brokers = [item for item in record.brokers if item.broker_id in wish.brokers or item.broker_id in left]
    topics = []
    for item in record.topics:
        if item.topic in left:
            topics.append(item)
        elif item.topic in wish.topics:
            leader, follower = wish.topics[item.topic]
            topics.append(TopicThrottle(item.topic, leader, follower, item.leader_before, item.follower_before))
    if not brokers and not topics:
        return None
    rates = record.rates if left else record.rates[-1:]
    return ThrottleRecord(rates, tuple(brokers), tuple(topics))


def changes(
    record: ThrottleRecord,
    wish: Wish,
    seen: ThrottleSeen,
    others: OtherThrottles,
    refused: Collection[object] = (),
) -> tuple[AlterThrottle | None, frozenset[object]]:
    """Return the changes that make Kafka as wished, None for none, and the brokers and topics that cannot be seen or changed.

    `refused` are those that have just refused a change.
    """
    brokers: list[AlterBroker] = []
    topics: list[AlterConfig] = []
    left: set[object] = set(refused)
    for item in record.brokers:
        values = seen.brokers.get(item.broker_id, {})
        if isinstance(values, Failure):
            left.add(item.broker_id)
        if item.broker_id in left or isinstance(values, Failure):
            continue
        wanted = _broker_values(item, record, wish, values, others)
        if any(values.get(name) != value for name, value in wanted.items()):
            brokers.append(AlterBroker(item.broker_id, tuple(sorted(wanted.items()))))
    for topic in record.topics:
        values = seen.topics.get(topic.topic, {})
        if isinstance(values, Failure) and values.code != UNKNOWN_TOPIC_OR_PARTITION:
            left.add(topic.topic)
        if topic.topic in left or isinstance(values, Failure):
            continue
        wanted = _topic_values(topic, wish, values, others)
        if any(values.get(name) != value for name, value in wanted.items()):
            topics.append(_altered(topic.topic, wanted))
    return (AlterThrottle(tuple(brokers), tuple(topics)) if brokers or topics else None), frozenset(left)


def _broker_before(broker_id: int, seen: ThrottleSeen, others: OtherThrottles) -> BrokerThrottle:
    """Return what was set on a broker before ours; if another Reassignment of the namespace throttles it, what was before that.

    Another namespace than the Cluster's never replaces a rate that was set by hand, so it has nothing to put back.
    """
    if others.is_tenant:
        return BrokerThrottle(broker_id)
    for other in others.peers:
        for item in other.brokers:
            if item.broker_id == broker_id:
                return item
    values = seen.brokers.get(broker_id, {})
    if isinstance(values, Failure):
        return BrokerThrottle(broker_id)
    set_by_others = _rates_on(broker_id, others.every)
    leader, follower = (None if values.get(name) in set_by_others else values.get(name) for name in RATES)
    return BrokerThrottle(broker_id, leader, follower)


def _covering(broker_id: int, records: Iterable[ThrottleRecord]) -> list[ThrottleRecord]:
    """Return the records that throttle a broker."""
    return [record for record in records if any(item.broker_id == broker_id for item in record.brokers)]


def _rates_on(broker_id: int, records: Iterable[ThrottleRecord]) -> frozenset[str]:
    """Return every rate that these records may have set on a broker."""
    return frozenset(str(rate) for record in _covering(broker_id, records) for rate in record.rates)


def _topic_before(name: str, seen: ThrottleSeen, others: OtherThrottles) -> TopicThrottle:
    """Return the lists of before, without the entries of other Reassignments: those see to them."""
    values = seen.topics.get(name, {})
    if isinstance(values, Failure):
        return TopicThrottle(name)
    theirs = [item for other in others.every for item in other.topics if item.topic == name]
    lists = []
    for key, ours in ((LEADER_REPLICAS, "leader"), (FOLLOWER_REPLICAS, "follower")):
        foreign = frozenset().union(*(getattr(item, ours) for item in theirs)) if theirs else frozenset()
        present = values.get(key)
        kept = [entry for entry in entries_of(present) if entry not in foreign]
        lists.append(None if present is None or (foreign and not kept) else ",".join(kept) if foreign else present)
    return TopicThrottle(name, leader_before=lists[0], follower_before=lists[1])


def _broker_values(
    item: BrokerThrottle, record: ThrottleRecord, wish: Wish, values: Values, others: OtherThrottles
) -> dict[str, str | None]:
    """Return the desired values of both rates of a broker; None for not set."""
    present = {name: values.get(name) for name in RATES}
    wished = item.broker_id in wish.brokers
    rate = _agreed_rate(item.broker_id, wish.rate if wished else None, others)
    if wished and not others.is_tenant:
        return dict.fromkeys(RATES, rate)
    replaceable = {str(rate) for rate in record.rates}
    if wished and not _covering(item.broker_id, others.owners):
        replaceable |= _rates_on(item.broker_id, others.every)
        return {name: rate if value is None or value in replaceable else value for name, value in present.items()}
    before: dict[str, str | None] = dict.fromkeys(RATES)
    if not others.is_tenant:  # what a status of another namespace notes as set before is not believed
        before = {LEADER_RATE: item.leader_before, FOLLOWER_RATE: item.follower_before}
    return {name: (rate or before[name]) if value in replaceable else value for name, value in present.items()}


def _agreed_rate(broker_id: int, wished: int | None, others: OtherThrottles) -> str | None:
    """Return the rate of all that throttle a broker.

    The Cluster's own namespace decides; else the lowest rate within a namespace, and the highest among several.
    """
    owners = [other.bytes_per_second for other in _covering(broker_id, others.owners)]
    if owners:
        return str(min(owners))
    own = [other.bytes_per_second for other in _covering(broker_id, others.peers)]
    if wished is not None:
        own.append(wished)
    groups = [own]
    if others.is_tenant:
        groups += [[record.bytes_per_second for record in _covering(broker_id, records)] for records in others.tenants]
    rates = [min(group) for group in groups if group]
    return str(max(rates)) if rates else None


def _topic_values(item: TopicThrottle, wish: Wish, values: Values, others: OtherThrottles) -> dict[str, str | None]:
    """Return the desired values of both lists of a topic; None for not set."""
    leader, follower = wish.topics.get(item.topic, (frozenset(), frozenset()))
    theirs = [other for record in others.every for other in record.topics if other.topic == item.topic]
    leaders: frozenset[str] = frozenset().union(*(other.leader for other in theirs))
    followers: frozenset[str] = frozenset().union(*(other.follower for other in theirs))
    return {
        LEADER_REPLICAS: _list(values.get(LEADER_REPLICAS), item.leader - leaders, leader, item.leader_before),
        FOLLOWER_REPLICAS: _list(
            values.get(FOLLOWER_REPLICAS), item.follower - followers, follower, item.follower_before
        ),
    }


def _list(present: str | None, ours: frozenset[str], wanted: frozenset[str], before: str | None) -> str | None:
    """Return a list with the desired entries and those of other clients, without outdated entries of this Reassignment."""
    entries = entries_of(present)
    if EVERYTHING in entries:
        return present
    theirs = frozenset(entries_of(before))
    kept = [entry for entry in entries if entry in theirs or entry not in ours or entry in wanted]
    added = sorted(wanted - set(kept), key=lambda entry: [int(part) for part in entry.split(":")])
    result = [*kept, *added]
    if not added and len(kept) == len(entries):
        return present
    if result == list(entries_of(before)):
        return before
    return ",".join(result) or None


def _altered(name: str, wanted: Mapping[str, str | None]) -> AlterConfig:
    return AlterConfig(
        name,
        tuple((key, value) for key, value in sorted(wanted.items()) if value is not None),
        tuple(key for key, value in sorted(wanted.items()) if value is None),
    )
