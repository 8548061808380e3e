"""Samples in a real topic become the same facts as samples in Parquet: read through Spark's own connector."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts
from balance_analytics.jobs.brokers import Brokers, brokers_of
from balance_analytics.jobs.landing import FOLDER, OPEN_MS, PER_MESSAGE
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.samples import Samples
from balance_analytics.model.column import names
from balance_analytics.model.new_days import DAY_MS
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from balance_analytics.study.columns import BrokerFacts
from lab.generated_load import LoadSpec, lay_out
from lab.generated_load.minute_samples import samples, write_samples
from lab.peers.cluster import KafkaCluster
from lab.processes.waiting import wait_until
from tests.balance_analytics.published import FACT_ORDER, newest, records_read, rows
from tests.balance_analytics.shared_spark import SharedSpark

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

TOPIC = "samples-of-a-load"
LOAD = LoadSpec(seed=11, partitions=9, topics=3, brokers=3, days=1, hot=0, outages=1, gaps=1, resets=1)
NOW_MS = (LOAD.start_s + LOAD.hours * 3600) * 1000
PATIENCE_S = 60.0


@cache
def messages() -> Sequence[dict[str, Any]]:
    """The load as the sampler writes it: a message per topic and sample, with arrays that have an entry per partition."""
    return tuple(_messages())


def _messages() -> Iterator[dict[str, Any]]:
    for _, columns in samples(lay_out(LOAD)):
        partition_rows = [
            dict(zip(names(SAMPLE_ROWS), row, strict=True))
            for row in zip(*(pa.array(columns[name]).to_pylist() for name in names(SAMPLE_ROWS)), strict=True)
        ]
        of_message: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in partition_rows:
            of_message.setdefault(tuple(row[name] for name in PER_MESSAGE), []).append(row)
        for shared, partitions in of_message.items():
            arrays = {name: [row[name] for row in partitions] for name in names(SAMPLE_ROWS) if name not in PER_MESSAGE}
            yield {"schema": 1, **dict(zip(PER_MESSAGE, shared, strict=True)), **arrays}


def create(bootstrap: str) -> None:
    """Create the samples topic; the one before is deleted. A run asks any broker, so each one must know the topic."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    brokers = bootstrap.split(",")
    if TOPIC in admin.list_topics(timeout=PATIENCE_S).topics:
        admin.delete_topics([TOPIC])[TOPIC].result(PATIENCE_S)
        wait_until(lambda: not any(map(knows_topic, brokers)), timeout_s=PATIENCE_S, what="no broker has the old topic")
    wait_until(lambda: is_created(admin), timeout_s=PATIENCE_S, what="the topic is created")
    wait_until(lambda: all(map(knows_topic, brokers)), timeout_s=PATIENCE_S, what="each broker knows the topic")


def knows_topic(broker: str) -> bool:
    """Whether the broker at this address has the topic in its metadata: brokers get it from the controller one by one."""
    return TOPIC in AdminClient({"bootstrap.servers": broker}).list_topics(timeout=PATIENCE_S).topics


def is_created(admin: AdminClient) -> bool:
    """Create the topic and return True, or return False while it is still marked for deletion."""
    try:
        admin.create_topics([NewTopic(TOPIC, 2, 1, config={"retention.ms": "-1"})])[TOPIC].result(PATIENCE_S)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return False
    return True


def delete_records(bootstrap: str) -> None:
    """Delete all messages, as retention does."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    ends = {TopicPartition(TOPIC, partition): OffsetSpec.latest() for partition in (0, 1)}
    known = {
        topic_partition: found.result(PATIENCE_S).offset for topic_partition, found in admin.list_offsets(ends).items()
    }
    gone = [TopicPartition(TOPIC, topic_partition.partition, offset) for topic_partition, offset in known.items()]
    for deleted in admin.delete_records(gone).values():
        deleted.result(PATIENCE_S)


def produce(bootstrap: str, values: Iterable[dict[str, Any] | bytes]) -> None:
    """Write messages as the sampler does, or anything else as an hour's second message."""
    producer = Producer({"bootstrap.servers": bootstrap})
    header: list[tuple[str, str | bytes | None]] = [("schema", b"1")]
    for value in values:
        if isinstance(value, bytes):
            producer.produce(TOPIC, value, b"junk", timestamp=LOAD.start_s * 1000 + 60_000)
        else:
            key, sampled_at_ms = value["topic"].encode(), value["sampled_at_ms"]
            producer.produce(TOPIC, json.dumps(value).encode(), key, timestamp=sampled_at_ms, headers=header)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def run(spark: SparkSession, place: str, folder: Path, now_ms: int = NOW_MS) -> tuple[list[Any], list[tuple[str, int]]]:
    """Run the stage over samples anywhere; returns the facts and what was left out."""
    left_out = LeftOuts()
    options = facts.FactsOptions(now_ms, window_days=14)
    facts.run(spark, Samples(spark, place), str(folder / "facts"), str(folder / "out"), options, left_out)
    return rows(folder / "facts", order=FACT_ORDER), [(note.what, note.count) for note in left_out.all()]


@pytest.fixture(scope="module")
def from_parquet(shared_spark: SharedSpark, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """The facts of the same load as Parquet."""
    spark = shared_spark.get()
    folder = tmp_path_factory.mktemp("parquet")
    write_samples(lay_out(LOAD), folder / "samples")
    found, nothing = run(spark, str(folder / "samples"), folder)
    assert nothing == []
    return found


@pytest.mark.shows("F23")
def test_a_topic_of_samples_makes_the_facts_that_parquet_makes(
    spark: SparkSession, kafka_cluster: KafkaCluster, tmp_path: Path, from_parquet: list[Any]
) -> None:
    """And what is no sample is left out by name, however it got there."""
    bootstrap = kafka_cluster.bootstrap()
    create(bootstrap)
    produce(bootstrap, messages())
    produce(bootstrap, [b"no sample", b'{"schema": 2}'])

    from_kafka, left_out = run(spark, f"kafka://{bootstrap}/{TOPIC}", tmp_path / "kafka")

    assert LOAD.hours - 2 <= len(from_parquet) // LOAD.partitions
    assert from_parquet == from_kafka
    assert left_out == [("messages that are not samples of this version", 2)]


def test_messages_are_read_once(
    spark: SparkSession, kafka_cluster: KafkaCluster, tmp_path: Path, from_parquet: list[Any]
) -> None:
    """A run begins where the last one ended: after retention, in a topic created again, and after days without samples."""
    bootstrap = kafka_cluster.bootstrap()
    place = f"kafka://{bootstrap}/{TOPIC}"
    sent = messages()
    third = len(sent) // 3
    create(bootstrap)
    produce(bootstrap, sent[:third])
    run(spark, place, tmp_path / "kafka")
    delete_records(bootstrap)
    produce(bootstrap, sent[third : 2 * third])
    found = run(spark, place, tmp_path / "kafka")

    before = records_read(spark)
    assert run(spark, place, tmp_path / "kafka") == found
    assert records_read(spark) == before

    create(bootstrap)
    produce(bootstrap, sent[2 * third :])
    assert run(spark, place, tmp_path / "kafka") == (from_parquet, [])

    later_ms = NOW_MS + OPEN_MS + 2 * DAY_MS
    run(spark, place, tmp_path / "kafka", later_ms)
    assert newest(tmp_path / "kafka" / "facts" / FOLDER).days() == []
    assert run(spark, place, tmp_path / "kafka", later_ms) == (from_parquet, [])


def test_a_missing_topic_is_reported_with_what_to_start(
    spark: SparkSession, kafka_cluster: KafkaCluster, tmp_path: Path
) -> None:
    """The first run may be before the first sample."""
    with pytest.raises(AnalyticsError, match=r"no samples yet at kafka://.*: start `steward sampler`"):
        run(spark, f"kafka://{kafka_cluster.bootstrap()}/not-there", tmp_path)


def test_racks_and_disk_sizes_are_read_from_brokers(spark: SparkSession, kafka_cluster: KafkaCluster) -> None:
    """Samples do not contain them; values given by the user take precedence."""
    left_out = LeftOuts()
    given = BrokerFacts({1: "by-hand"}, {1: 7})
    found = brokers_of(spark, Samples(spark, f"kafka://{kafka_cluster.bootstrap()}"), given, left_out)

    alive = frozenset(
        int(node) for node in AdminClient({"bootstrap.servers": kafka_cluster.bootstrap()}).list_topics().brokers
    )
    assert left_out.all() == ()
    assert alive == found.alive
    assert (found.facts.racks[1], found.facts.capacities[1]) == ("by-hand", 7)
    assert alive == found.facts.capacities.keys()
    assert all(size > 2**20 for broker, size in found.facts.capacities.items() if broker != 1)


def test_unreachable_brokers_are_named(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the address and what to do."""
    monkeypatch.setattr("balance_analytics.jobs.java_admin.TIMEOUT_S", 1)

    with pytest.raises(
        AnalyticsError, match=r"the brokers at kafka://127\.0\.0\.1:9/x do not respond: check the address"
    ):
        brokers_of(spark, Samples(spark, "kafka://127.0.0.1:9/x"), BrokerFacts(), LeftOuts())


def test_with_parquet_only_given_broker_facts_are_used(spark: SparkSession) -> None:
    """Samples in Parquet have no address of brokers."""
    given = BrokerFacts({1: "a"}, {})

    assert brokers_of(spark, Samples(spark, "/samples"), given, LeftOuts()) == Brokers(given, None)
