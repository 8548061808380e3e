"""Random metadata records, and logs of records that fit together."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import strategies as st

from kafka_metadata import records
from kafka_metadata.directory_ids import MIGRATING_DIRECTORY
from kafka_metadata.metadata_versions import (
    CONTROLLERS_SINCE,
    CORDONED_SINCE,
    DIRECTORIES_SINCE,
    ELR_SINCE,
    ELR_VERSION,
    METADATA_VERSION,
    MIGRATION_SINCE,
    SCRAM_SINCE,
    TOKENS_SINCE,
)
from kafka_metadata.records import MetadataRecord

INT16 = st.integers(0, (1 << 15) - 1)
INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
NUMBER = st.integers(0, (1 << 31) - 1)
UUIDS = st.uuids()
TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8)
IDS = st.lists(st.integers(0, 5), max_size=4, unique=True).map(tuple)
PRINCIPALS = TEXT.map(lambda name: f"User:{name}")


def tuples_of(values: st.SearchStrategy[object], most: int = 3) -> st.SearchStrategy[tuple[object, ...]]:
    """Return tuples of up to `most` different values."""
    return st.lists(values, max_size=most, unique=True).map(tuple)


END_POINTS = st.lists(
    st.builds(records.EndPoint, TEXT, TEXT, st.integers(0, 65535), st.integers(0, 3)),
    max_size=3,
    unique_by=lambda point: point.name,
).map(tuple)
FEATURES = st.lists(
    st.builds(records.SupportedFeature, TEXT, st.integers(0, 5), st.integers(5, 9)),
    max_size=3,
    unique_by=lambda feature: feature.name,
).map(tuple)
ENTITIES = st.dictionaries(st.sampled_from(["user", "client-id", "ip"]), st.none() | TEXT, min_size=1, max_size=2).map(
    lambda parts: tuple(records.QuotaEntityPart(*part) for part in parts.items())
)


def brokers(metadata_version: int, broker_id: int = 1) -> st.SearchStrategy[records.RegisterBrokerRecord]:
    """Return registrations that a metadata version has."""
    has_directories, has_cordoned = metadata_version >= DIRECTORIES_SINCE, metadata_version >= CORDONED_SINCE
    return st.builds(
        records.RegisterBrokerRecord,
        broker_id=st.just(broker_id),
        incarnation_id=UUIDS,
        broker_epoch=NUMBER,
        end_points=END_POINTS,
        features=FEATURES,
        rack=st.none() | TEXT,
        fenced=st.booleans(),
        in_controlled_shutdown=st.booleans(),
        log_dirs=tuples_of(UUIDS) if has_directories else st.just(()),
        cordoned_log_dirs=st.none() | tuples_of(UUIDS) if has_cordoned else st.none(),
        is_migrating_zk_broker=st.booleans() if metadata_version >= MIGRATION_SINCE else st.just(False),
    )


def partitions(
    metadata_version: int, topic_id: uuid.UUID, number: int = 0
) -> st.SearchStrategy[records.PartitionRecord]:
    """Return partitions that a metadata version has."""
    elr = st.none() | IDS if metadata_version >= ELR_SINCE else st.none()
    return IDS.flatmap(
        lambda replicas: st.builds(
            records.PartitionRecord,
            partition_id=st.just(number),
            topic_id=st.just(topic_id),
            replicas=st.just(replicas),
            isr=IDS,
            leader=st.integers(-1, 5),
            leader_epoch=st.integers(0, 1000),
            partition_epoch=st.integers(0, 1000),
            removing_replicas=IDS,
            adding_replicas=IDS,
            leader_recovery_state=st.integers(0, 1),
            directories=directories(metadata_version, len(replicas)),
            eligible_leader_replicas=elr,
            last_known_elr=elr,
        )
    )


def directories(metadata_version: int, count: int) -> st.SearchStrategy[tuple[uuid.UUID, ...]]:
    """Return a directory for each replica, or none."""
    if metadata_version < DIRECTORIES_SINCE:
        return st.just(())
    one = st.sampled_from([MIGRATING_DIRECTORY, uuid.UUID(int=1)]) | UUIDS
    return st.just(()) | st.lists(one, min_size=count, max_size=count).map(tuple)


@st.composite
def partition_changes(
    draw: st.DrawFn, metadata_version: int, topic_id: uuid.UUID, number: int, replicas: int
) -> records.PartitionChangeRecord:
    """Draw a change of a partition that has so many replicas."""
    changed = draw(st.none() | IDS)
    elr = st.none() | IDS if metadata_version >= ELR_SINCE else st.none()
    fits = changed is None or len(changed) == replicas
    found = draw(
        st.builds(
            records.PartitionChangeRecord,
            partition_id=st.just(number),
            topic_id=st.just(topic_id),
            isr=st.none() | IDS,
            leader=st.integers(-2, 5),
            removing_replicas=st.none() | IDS,
            adding_replicas=st.none() | IDS,
            leader_recovery_state=st.integers(-1, 1),
            eligible_leader_replicas=elr,
            last_known_elr=elr,
        )
    )
    if changed is not None:
        with_directories = draw(directories(metadata_version, len(changed)))
        found = replace(found, replicas=changed)
        if metadata_version >= DIRECTORIES_SINCE and (with_directories or not fits):
            found = replace(found, directories=with_directories)
    return found


def others(metadata_version: int) -> list[st.SearchStrategy[MetadataRecord]]:
    """Return records that need no other record, of the types that a metadata version has."""
    found: list[st.SearchStrategy[MetadataRecord]] = [
        st.builds(records.NoOpRecord),
        st.builds(
            records.FeatureLevelRecord,
            st.sampled_from(["group.version", "kraft.version", ELR_VERSION]),
            st.integers(0, 1),
        ),
        st.builds(
            records.ConfigRecord,
            st.sampled_from([2, 4, 16, 32]),
            st.sampled_from(["", "1", "topic"]),
            st.sampled_from(["retention.ms", "internal.segment.bytes", "interval.ms", "share.session.timeout.ms"])
            | TEXT,
            st.none() | TEXT,
        ),
        st.builds(records.ClientQuotaRecord, ENTITIES, st.sampled_from(["a", "b"]), st.floats(0, 1e9), st.booleans()),
        st.builds(records.ProducerIdsRecord, NUMBER, NUMBER, st.integers(-1, 1 << 40)),
        st.builds(
            records.AccessControlEntryRecord,
            UUIDS,
            st.integers(2, 7),
            TEXT,
            st.integers(3, 4),
            PRINCIPALS,
            TEXT,
            st.integers(2, 14),
            st.integers(2, 3),
        ),
    ]
    if metadata_version >= MIGRATION_SINCE:
        found.append(st.builds(records.ZkMigrationStateRecord, st.integers(0, 4)))
    if metadata_version >= SCRAM_SINCE:
        users, mechanisms = st.sampled_from(["ann", "bob"]), st.integers(1, 2)
        keys = st.binary(min_size=1, max_size=8)
        found.append(
            st.builds(records.UserScramCredentialRecord, users, mechanisms, keys, keys, keys, st.integers(4096, 16384))
        )
        found.append(st.builds(records.RemoveUserScramCredentialRecord, users, mechanisms))
    if metadata_version >= TOKENS_SINCE:
        tokens = st.sampled_from(["one", "two"])
        times = st.integers(0, 1 << 50)
        renewers = st.lists(PRINCIPALS, max_size=2).map(tuple)
        found.append(
            st.builds(records.DelegationTokenRecord, PRINCIPALS, PRINCIPALS, renewers, times, times, times, tokens)
        )
        found.append(st.builds(records.RemoveDelegationTokenRecord, tokens))
    if metadata_version >= CONTROLLERS_SINCE:
        found.append(
            st.builds(
                records.RegisterControllerRecord, st.integers(100, 102), UUIDS, st.booleans(), END_POINTS, FEATURES
            )
        )
    return found


METADATA_VERSIONS = st.integers(7, 30)


class LogMaker:
    """Draws a log: each record fits the records before it, as those of a controller do."""

    def __init__(self, draw: st.DrawFn, metadata_version: int) -> None:
        self.draw = draw
        self.metadata_version = metadata_version
        self.found: list[MetadataRecord] = [records.FeatureLevelRecord(METADATA_VERSION, metadata_version)]
        self.brokers: dict[int, int] = {}
        self.topics: dict[uuid.UUID, tuple[str, dict[int, int]]] = {}
        self.acls: list[uuid.UUID] = []

    def add(self) -> None:
        """Draw one more record."""
        step = self.draw(
            st.sampled_from([self._broker, self._topic, self._partition, self._change, self._other, self._other])
        )
        step()

    def _broker(self) -> None:
        broker_id = self.draw(st.integers(0, 3))
        if broker_id not in self.brokers or self.draw(st.integers(0, 3)) == 0:
            record = self.draw(brokers(self.metadata_version, broker_id))
            self.brokers[broker_id] = record.broker_epoch
            self.found.append(record)
            return
        epoch = self.brokers[broker_id]
        has_directories, has_cordoned = (
            self.metadata_version >= DIRECTORIES_SINCE,
            self.metadata_version >= CORDONED_SINCE,
        )
        change = st.builds(
            records.BrokerRegistrationChangeRecord,
            st.just(broker_id),
            st.just(epoch),
            st.integers(-1, 1),
            st.integers(0, 1),
            tuples_of(UUIDS) if has_directories else st.just(()),
            st.none() | tuples_of(UUIDS) if has_cordoned else st.none(),
        )
        ids = (st.just(broker_id), st.just(epoch))
        fences = [st.builds(records.FenceBrokerRecord, *ids), st.builds(records.UnfenceBrokerRecord, *ids)]
        end = st.builds(records.UnregisterBrokerRecord, *ids)
        record = self.draw(st.one_of(change, *fences, end))
        if isinstance(record, records.UnregisterBrokerRecord):
            del self.brokers[broker_id]
        self.found.append(record)

    def _topic(self) -> None:
        if self.topics and self.draw(st.integers(0, 3)) == 0:
            topic_id = self.draw(st.sampled_from(sorted(self.topics)))
            name, _ = self.topics.pop(topic_id)
            self.found.append(records.RemoveTopicRecord(topic_id))
            return
        name = self.draw(st.sampled_from(["topic", "other"]) | TEXT)
        topic_id = self.draw(UUIDS)
        if name not in {known for known, _ in self.topics.values()} and topic_id not in self.topics:
            self.topics[topic_id] = (name, {})
            self.found.append(records.TopicRecord(name, topic_id))

    def _partition(self) -> None:
        if not self.topics:
            self._topic()
            return
        topic_id = self.draw(st.sampled_from(sorted(self.topics)))
        record = self.draw(partitions(self.metadata_version, topic_id, len(self.topics[topic_id][1])))
        self.topics[topic_id][1][record.partition_id] = len(record.replicas)
        self.found.append(record)

    def _change(self) -> None:
        known = [(topic_id, number) for topic_id, (_, numbers) in self.topics.items() for number in numbers]
        if not known:
            self._partition()
            return
        if self.metadata_version >= ELR_SINCE and self.draw(st.integers(0, 4)) == 0:
            names = sorted(name for name, _ in self.topics.values())
            self.found.append(records.ClearElrRecord(self.draw(st.sampled_from(["", *names]))))
            return
        topic_id, number = self.draw(st.sampled_from(known))
        replicas = self.topics[topic_id][1][number]
        record = self.draw(partition_changes(self.metadata_version, topic_id, number, replicas))
        if record.replicas is not None:
            self.topics[topic_id][1][number] = len(record.replicas)
        self.found.append(record)

    def _other(self) -> None:
        if self.acls and self.draw(st.integers(0, 5)) == 0:
            self.found.append(records.RemoveAccessControlEntryRecord(self.acls.pop()))
            return
        record = self.draw(self.draw(st.sampled_from(others(self.metadata_version))))
        if isinstance(record, records.AccessControlEntryRecord):
            self.acls.append(record.id)
        self.found.append(record)


def metadata_version_of(log: Sequence[MetadataRecord]) -> int:
    """Return the metadata version of a log, which its first record sets."""
    first = log[0]
    assert isinstance(first, records.FeatureLevelRecord)
    return first.feature_level


@st.composite
def record_logs(draw: st.DrawFn, most: int = 40) -> list[MetadataRecord]:
    """Draw a log without transactions, of one metadata version."""
    version = draw(METADATA_VERSIONS)
    maker = LogMaker(draw, version)
    count = draw(st.integers(0, most))
    for _ in range(count):
        maker.add()
    return maker.found


ID, DIRECTORY = uuid.UUID(int=1 << 127), uuid.UUID(int=5)
EVERY_TYPE: list[MetadataRecord] = [
    records.FeatureLevelRecord(METADATA_VERSION, 30),
    records.FeatureLevelRecord(ELR_VERSION, 1),
    records.RegisterControllerRecord(100, ID, True, (records.EndPoint("CONTROLLER", "host", 9093, 1),), ()),
    records.RegisterBrokerRecord(
        1, ID, 7, (records.EndPoint("A", "a", 1, 0), records.EndPoint("B", "b", 2, 3)), log_dirs=(DIRECTORY, ID)
    ),
    records.RegisterBrokerRecord(2, ID, 8, ()),
    records.FenceBrokerRecord(1, 7),
    records.UnfenceBrokerRecord(1, 7),
    records.BrokerRegistrationChangeRecord(1, 7, in_controlled_shutdown=1, cordoned_log_dirs=(ID,)),
    records.UnregisterBrokerRecord(2, 8),
    records.TopicRecord("topic", ID),
    records.PartitionRecord(0, ID, (1, 2), (1,), 1, 3, 4, (2,), (3,), 1, (ID, DIRECTORY), (2,), (3,)),
    records.PartitionRecord(1, ID, (1,), (1,), 1, directories=(DIRECTORY,)),
    records.PartitionChangeRecord(1, ID, (), -1, eligible_leader_replicas=(1,), last_known_elr=()),
    records.TopicRecord("other", DIRECTORY),
    records.PartitionRecord(0, DIRECTORY, (1,), (1,), 1, eligible_leader_replicas=(2,)),
    records.ClearElrRecord("other"),
    records.ConfigRecord(2, "other", "retention.ms", "1"),
    records.RemoveTopicRecord(DIRECTORY),
    records.ConfigRecord(32, "group", "name", "value"),
    records.ClientQuotaRecord((records.QuotaEntityPart("user", None),), "consumer_byte_rate", 1.5),
    records.ProducerIdsRecord(1, 7, 5000),
    records.AccessControlEntryRecord(ID, 2, "topic", 3, "User:ann", "*", 3, 3),
    records.AccessControlEntryRecord(DIRECTORY, 4, "kafka-cluster", 3, "User:ann", "*", 8, 3),
    records.RemoveAccessControlEntryRecord(DIRECTORY),
    records.UserScramCredentialRecord("ann", 1, b"salt", b"stored", b"server", 4096),
    records.UserScramCredentialRecord("bob", 2, b"salt", b"stored", b"server", 8192),
    records.RemoveUserScramCredentialRecord("bob", 2),
    records.DelegationTokenRecord("User:ann", "User:bob", ("User:c",), 1, 3, 2, "one"),
    records.DelegationTokenRecord("User:ann", "User:ann", (), 1, 3, 2, "two"),
    records.RemoveDelegationTokenRecord("two"),
    records.ZkMigrationStateRecord(0),
    records.NoOpRecord(),
    records.BeginTransactionRecord("one"),
    records.ConfigRecord(4, "1", "name", "in"),
    records.EndTransactionRecord(),
    records.BeginTransactionRecord("two"),
    records.ConfigRecord(4, "1", "name", "out"),
    records.AbortTransactionRecord("no"),
]
"""A log with each of the 26 types."""
