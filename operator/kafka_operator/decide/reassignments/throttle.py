"""Replication throttles as set by Kafka's own tool: configuration of brokers and topics, and its restoration.

    leader.replication.throttled.rate, follower.replication.throttled.rate            on each broker that sends or receives
    leader.replication.throttled.replicas, follower.replication.throttled.replicas    on each topic that moves
    replica.alter.log.dirs.io.max.bytes.per.second                                    on each broker that copies between its log
                                                                                      directories, instead of all of the above

A setting is recorded before it is made (`recorded`), and the record shrinks only when Kafka has been read without it. So after any crash
the operator can remove exactly its own settings:

    a rate       is the operator's if the record has it: the previous value is restored. Any other rate was set by another client, and stays
    an entry     is the operator's if the record has it and it was not there before

Two Reassignments may throttle the same broker, and a broker has one rate. Within a namespace the lower rate applies, and the value from
before the first is restored after the last: the second copies the first one's record of the broker. Across namespaces:

    the Cluster's own    sets its rates without regard to others
    another namespace    does not change a broker that the Cluster's own namespace or another client throttles;
                         of several such namespaces the highest rate applies
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafka_operator.decide.kafka.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.decide.reassignments.partition_progress import PartitionProgress
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker, AlterThrottle, ReadThrottle
from kafka_operator.decide.steps import AlterConfig
from kafka_operator.resources.reassignment import Assignment
from kafka_operator.resources.throttle import BrokerThrottle, ThrottleRecord, TopicThrottle, entries_of

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_REPLICAS, FOLLOWER_REPLICAS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_REPLICAS, FOLLOWER_REPLICAS)

EVERYTHING = "*"
"""A list that throttles all replicas of a topic: set by another client, and sufficient for the operator."""

Values = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ObservedThrottle:
    """Throttle settings of brokers and topics, by name, as far as they were read; a Failure where the read failed."""

    brokers: Mapping[int, Values | Failure] = field(default_factory=dict)
    topics: Mapping[str, Values | Failure] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DesiredThrottle:
    """Desired throttle: rate, brokers, and replicas of each topic (leaders, followers)."""

    rate: int = 0
    brokers: frozenset[int] = frozenset()
    topics: Mapping[str, tuple[frozenset[str], frozenset[str]]] = field(default_factory=dict)
    log_dirs: bool = False
    """Whether it is for moves between log directories."""


NOTHING = DesiredThrottle()


@dataclass(frozen=True, slots=True)
class OtherThrottles:
    """Throttle records of other Reassignments of the same Kafka cluster that set the same rates, by their relation to this one."""

    peers: tuple[ThrottleRecord, ...] = ()
    """Of the same namespace."""
    owners: tuple[ThrottleRecord, ...] = ()
    """Of the Cluster's own namespace, where this Reassignment is of another one."""
    tenants: tuple[tuple[ThrottleRecord, ...], ...] = ()
    """Of other namespaces that the Cluster allows, grouped by namespace."""
    without_right: tuple[ThrottleRecord, ...] = ()
    """Of namespaces that lost their right: their rates may still be set, and are ignored."""
    is_tenant: bool = False
    """Whether this Reassignment is of another namespace than its Cluster."""

    @property
    def every(self) -> tuple[ThrottleRecord, ...]:
        """Return all of them."""
        tenants = tuple(record for records in self.tenants for record in records)
        return (*self.peers, *self.owners, *tenants, *self.without_right)


NO_OTHERS = OtherThrottles()


def desired_throttle_for(
    items: Iterable[Assignment], partitions: PartitionProgress, rate: int, alive: Collection[int]
) -> DesiredThrottle:
    """Return the throttle of these moves: previous replicas send, added replicas receive; offline brokers do neither."""
    brokers: set[int] = set()
    topics: dict[str, tuple[set[str], set[str]]] = {}
    log_dirs = False
    for item in items:
        if item.log_dirs:
            brokers |= partitions.brokers_of(item)
            log_dirs = True
            continue
        known = partitions.current.get(item.partition)
        before = () if known is None else known.replicas
        adding = [broker for broker in item.replicas if broker not in before]
        if not adding:
            continue
        leaders, followers = topics.setdefault(item.partition.topic, (set(), set()))
        leaders.update(f"{item.partition.index}:{broker}" for broker in before)
        followers.update(f"{item.partition.index}:{broker}" for broker in adding)
        brokers.update(before, adding)
    shown = {name: (frozenset(leaders), frozenset(followers)) for name, (leaders, followers) in topics.items()}
    return DesiredThrottle(rate, frozenset(brokers) & frozenset(alive), shown, log_dirs)


def rates_of(log_dirs: bool) -> tuple[str, ...]:
    """Return the names of the rates on a broker of moves between log directories, or of moves between brokers."""
    return (LOG_DIRS_RATE,) if log_dirs else RATES


def unread_throttles(
    record: ThrottleRecord | None, desired: DesiredThrottle, observed: ObservedThrottle
) -> ReadThrottle | None:
    """Return what must be read before a decision; None if everything has been read."""
    brokers = {item.broker_id for item in record.brokers} if record is not None else set()
    topics = {item.topic for item in record.topics} if record is not None else set()
    missing_brokers = sorted((brokers | desired.brokers) - observed.brokers.keys())
    missing_topics = sorted((topics | desired.topics.keys()) - observed.topics.keys())
    if not missing_brokers and not missing_topics:
        return None
    return ReadThrottle(tuple(missing_brokers), tuple(missing_topics))


def recorded(
    record: ThrottleRecord | None, desired: DesiredThrottle, observed: ObservedThrottle, others: OtherThrottles
) -> ThrottleRecord:
    """Return the record to write before the throttle is set: the current record and what it lacks."""
    rates = tuple(rate for rate in (record.rates if record is not None else ()) if rate != desired.rate)
    brokers = {item.broker_id: item for item in record.brokers} if record is not None else {}
    topics = {item.topic: item for item in record.topics} if record is not None else {}
    for broker_id in sorted(desired.brokers - brokers.keys()):
        brokers[broker_id] = _broker_before(broker_id, observed, others, desired.log_dirs)
    for name, (leader, follower) in sorted(desired.topics.items()):
        known = topics.get(name) or _topic_before(name, observed, others)
        topics[name] = TopicThrottle(
            name, known.leader | leader, known.follower | follower, known.leader_before, known.follower_before
        )
    return ThrottleRecord(
        (*rates, desired.rate),
        tuple(brokers[key] for key in sorted(brokers)),
        tuple(topics[key] for key in sorted(topics)),
        desired.log_dirs,
    )


def settled(record: ThrottleRecord, desired: DesiredThrottle, left: Collection[object]) -> ThrottleRecord | None:
    """Return what remains of a record when Kafka has the desired throttle; `left` are brokers and topics that could not be changed."""
    brokers = [item for item in record.brokers if item.broker_id in desired.brokers or item.broker_id in left]
    topics = []
    for item in record.topics:
        if item.topic in left:
            topics.append(item)
        elif item.topic in desired.topics:
            leader, follower = desired.topics[item.topic]
            topics.append(TopicThrottle(item.topic, leader, follower, item.leader_before, item.follower_before))
    if not brokers and not topics:
        return None
    rates = record.rates if left else record.rates[-1:]
    return ThrottleRecord(rates, tuple(brokers), tuple(topics), record.log_dirs)


def changes(
    record: ThrottleRecord,
    desired: DesiredThrottle,
    observed: ObservedThrottle,
    others: OtherThrottles,
    refused: Collection[object] = (),
) -> tuple[AlterThrottle | None, frozenset[object]]:
    """Return the changes towards the desired throttle, None for none, and the brokers and topics that cannot be read or changed.

    `refused` are those that have just rejected a change.
    """
    brokers: list[AlterBroker] = []
    topics: list[AlterConfig] = []
    left: set[object] = set(refused)
    for item in record.brokers:
        values = observed.brokers.get(item.broker_id, {})
        if isinstance(values, Failure):
            left.add(item.broker_id)
        if item.broker_id in left or isinstance(values, Failure):
            continue
        wanted = _broker_values(item, record, desired, values, others)
        if any(values.get(name) != value for name, value in wanted.items()):
            brokers.append(AlterBroker(item.broker_id, tuple(sorted(wanted.items()))))
    for topic in record.topics:
        values = observed.topics.get(topic.topic, {})
        if isinstance(values, Failure) and values.code != UNKNOWN_TOPIC_OR_PARTITION:
            left.add(topic.topic)
        if topic.topic in left or isinstance(values, Failure):
            continue
        wanted = _topic_values(topic, desired, values, others)
        if any(values.get(name) != value for name, value in wanted.items()):
            topics.append(_altered(topic.topic, wanted))
    return (AlterThrottle(tuple(brokers), tuple(topics)) if brokers or topics else None), frozenset(left)


def _broker_before(
    broker_id: int, observed: ObservedThrottle, others: OtherThrottles, log_dirs: bool
) -> BrokerThrottle:
    """Return a broker's rates before the operator's; if another Reassignment of the namespace throttles it, the rates before that.

    Another namespace than the Cluster's never replaces a rate set by another client, so it restores nothing.
    """
    if others.is_tenant:
        return BrokerThrottle(broker_id)
    for other in others.peers:
        for item in other.brokers:
            if item.broker_id == broker_id:
                return item
    values = observed.brokers.get(broker_id, {})
    if isinstance(values, Failure):
        return BrokerThrottle(broker_id)
    set_by_others = _rates_on(broker_id, others.every)
    before = {name: value for name, value in values.items() if value not in set_by_others}
    if log_dirs:
        return BrokerThrottle(broker_id, log_dirs_before=before.get(LOG_DIRS_RATE))
    return BrokerThrottle(broker_id, before.get(LEADER_RATE), before.get(FOLLOWER_RATE))


def _covering(broker_id: int, records: Iterable[ThrottleRecord]) -> list[ThrottleRecord]:
    """Return the records that throttle a broker."""
    return [record for record in records if any(item.broker_id == broker_id for item in record.brokers)]


def _rates_on(broker_id: int, records: Iterable[ThrottleRecord]) -> frozenset[str]:
    """Return every rate that these records may have set on a broker."""
    return frozenset(str(rate) for record in _covering(broker_id, records) for rate in record.rates)


def _topic_before(name: str, observed: ObservedThrottle, others: OtherThrottles) -> TopicThrottle:
    """Return the previous lists, without the entries of other Reassignments, which remove their own."""
    values = observed.topics.get(name, {})
    if isinstance(values, Failure):
        return TopicThrottle(name)
    theirs = [item for other in others.every for item in other.topics if item.topic == name]
    lists = []
    for key, attribute in ((LEADER_REPLICAS, "leader"), (FOLLOWER_REPLICAS, "follower")):
        foreign = frozenset().union(*(getattr(item, attribute) for item in theirs)) if theirs else frozenset()
        current = values.get(key)
        kept = [entry for entry in entries_of(current) if entry not in foreign]
        lists.append(None if current is None or (foreign and not kept) else ",".join(kept) if foreign else current)
    return TopicThrottle(name, leader_before=lists[0], follower_before=lists[1])


def _broker_values(
    item: BrokerThrottle, record: ThrottleRecord, desired: DesiredThrottle, values: Values, others: OtherThrottles
) -> dict[str, str | None]:
    """Return the desired values of the rates of a broker; None for not set."""
    names = rates_of(record.log_dirs)
    current = {name: values.get(name) for name in names}
    throttled = item.broker_id in desired.brokers
    rate = _agreed_rate(item.broker_id, desired.rate if throttled else None, others)
    if throttled and not others.is_tenant:
        return dict.fromkeys(names, rate)
    replaceable = {str(rate) for rate in record.rates}
    if throttled and not _covering(item.broker_id, others.owners):
        replaceable |= _rates_on(item.broker_id, others.every)
        return {name: rate if value is None or value in replaceable else value for name, value in current.items()}
    before: dict[str, str | None] = dict.fromkeys(names)
    if not others.is_tenant:  # previous values in a status of another namespace are not trusted
        before = {
            LEADER_RATE: item.leader_before,
            FOLLOWER_RATE: item.follower_before,
            LOG_DIRS_RATE: item.log_dirs_before,
        }
    return {name: (rate or before[name]) if value in replaceable else value for name, value in current.items()}


def _agreed_rate(broker_id: int, desired_rate: int | None, others: OtherThrottles) -> str | None:
    """Return the rate that applies to a broker, from all Reassignments that throttle it.

    The Cluster's own namespace decides; otherwise the lowest rate within a namespace, and the highest among several.
    """
    owners = [other.bytes_per_second for other in _covering(broker_id, others.owners)]
    if owners:
        return str(min(owners))
    own = [other.bytes_per_second for other in _covering(broker_id, others.peers)]
    if desired_rate is not None:
        own.append(desired_rate)
    groups = [own]
    if others.is_tenant:
        groups += [[record.bytes_per_second for record in _covering(broker_id, records)] for records in others.tenants]
    rates = [min(group) for group in groups if group]
    return str(max(rates)) if rates else None


def _topic_values(
    item: TopicThrottle, desired: DesiredThrottle, values: Values, others: OtherThrottles
) -> dict[str, str | None]:
    """Return the desired values of both lists of a topic; None for not set."""
    leader, follower = desired.topics.get(item.topic, (frozenset(), frozenset()))
    theirs = [other for record in others.every for other in record.topics if other.topic == item.topic]
    leaders: frozenset[str] = frozenset().union(*(other.leader for other in theirs))
    followers: frozenset[str] = frozenset().union(*(other.follower for other in theirs))
    return {
        LEADER_REPLICAS: _list(values.get(LEADER_REPLICAS), item.leader - leaders, leader, item.leader_before),
        FOLLOWER_REPLICAS: _list(
            values.get(FOLLOWER_REPLICAS), item.follower - followers, follower, item.follower_before
        ),
    }


def _list(current: str | None, own: frozenset[str], wanted: frozenset[str], before: str | None) -> str | None:
    """Return a list with the desired entries and those of other clients, without outdated entries of this Reassignment."""
    entries = entries_of(current)
    if EVERYTHING in entries:
        return current
    theirs = frozenset(entries_of(before))
    kept = [entry for entry in entries if entry in theirs or entry not in own or entry in wanted]
    added = sorted(wanted - set(kept), key=lambda entry: [int(part) for part in entry.split(":")])
    result = [*kept, *added]
    if not added and len(kept) == len(entries):
        return current
    if result == list(entries_of(before)):
        return before
    return ",".join(result) or None


def _altered(name: str, wanted: Mapping[str, str | None]) -> AlterConfig:
    return AlterConfig(
        name,
        tuple((key, value) for key, value in sorted(wanted.items()) if value is not None),
        tuple(key for key, value in sorted(wanted.items()) if value is None),
    )
