"""Runs over a topic of samples: after whatever happened between them, facts are those of one run over the same samples as Parquet."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec
from pyspark.sql import SparkSession

from balance_analytics.jobs import facts, landing
from balance_analytics.jobs.landing import PER_MESSAGE
from balance_analytics.jobs.problems import AnalyticsError, LeftOuts
from balance_analytics.jobs.publishing import Published
from balance_analytics.jobs.samples import Samples
from balance_analytics.jobs.topic_offsets import TopicEnds, ends_of
from balance_analytics.model.column import names
from balance_analytics.model.results import LeftOut
from balance_analytics.model.sample_rows import SAMPLE_ROWS
from lab.peers.cluster import KafkaCluster
from lab.processes.waiting import wait_until
from tests.balance_analytics.jobs.test_new_days import DAY_MS, HOUR_MS, MINUTE_MS, MONDAY_MS, NIGHT, Store, minutes
from tests.balance_analytics.published import FACT_ORDER, rows

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

KAFKA_TIMEOUT_S = 60.0


class TopicStore:
    """A samples topic, and a folder with everything that was ever written to it."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str, folder: Path) -> None:
        self.spark = spark
        self.bootstrap = bootstrap
        self.topic = topic
        self.folder = folder
        self.everything = Store(spark, folder)
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        created = self.admin.create_topics([NewTopic(topic, 1, 1, config={"retention.ms": "-1"})])
        created[topic].result(KAFKA_TIMEOUT_S)

    def add(self, samples: Iterable[dict[str, Any]], *, partition: int = 0, kept: bool = True) -> None:
        """Write samples as messages; without `kept` not to the folder."""
        listed = list(samples)
        producer = Producer({"bootstrap.servers": self.bootstrap})
        # A broker may learn of a new partition after the one that has created it; a producer drops messages to an unknown one.
        wait_until(
            lambda: partition in producer.list_topics(self.topic, KAFKA_TIMEOUT_S).topics[self.topic].partitions,
            timeout_s=KAFKA_TIMEOUT_S,
            what=f"partition {partition} of {self.topic} is known",
        )
        failed = []

        def note(error: KafkaError | None, _: object) -> None:
            if error is not None:
                failed.append(error)

        for message in messages(listed):
            value, at_ms = json.dumps(message).encode(), message["sampled_at_ms"]
            key = message["topic"].encode()
            producer.produce(self.topic, value, key, timestamp=at_ms, partition=partition, on_delivery=note)
        assert (producer.flush(KAFKA_TIMEOUT_S), failed) == (0, [])
        if kept:
            self.everything.add(listed)

    def delete_records(self, before: OffsetSpec | int) -> None:
        """Delete the first messages of partition 0, as retention does."""
        offset = before
        if isinstance(before, OffsetSpec):
            asked = {TopicPartition(self.topic, 0): before}
            offset = next(iter(self.admin.list_offsets(asked).values())).result(KAFKA_TIMEOUT_S).offset
        for deleted in self.admin.delete_records([TopicPartition(self.topic, 0, offset)]).values():
            deleted.result(KAFKA_TIMEOUT_S)

    def add_partition(self) -> None:
        """Let the topic have a second partition."""
        self.admin.create_partitions([NewPartitions(self.topic, 2)])[self.topic].result(KAFKA_TIMEOUT_S)

    def run(self, day: int) -> list[LeftOut]:
        """Run the stage at 01:00 of a day; return what was left out."""
        left_out = LeftOuts()
        options = facts.FactsOptions(MONDAY_MS + day * DAY_MS + HOUR_MS, window_days=14)
        samples = Samples(self.spark, f"kafka://{self.bootstrap}/{self.topic}")
        facts.run(self.spark, samples, str(self.folder / "facts"), str(self.folder / "out"), options, left_out)
        return list(left_out.all())

    def found(self) -> list[dict[str, Any]]:
        """The facts that readers see."""
        return rows(self.folder / "facts", order=FACT_ORDER)

    def found_in_one_run(self, day: int) -> tuple[list[dict[str, Any]], list[LeftOut]]:
        """The facts of one run over everything, as Parquet, and what was left out."""
        left_out = self.everything.run(day, samples="everything")
        return self.everything.found("everything"), left_out


def messages(samples: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The samples as the sampler writes them: a message for a topic and round, arrays with an entry for each partition."""
    grouped: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in samples:
        grouped[tuple(row[name] for name in PER_MESSAGE)].append(row)
    for once, some in grouped.items():
        arrays = {name: [row[name] for row in some] for name in names(SAMPLE_ROWS) if name not in PER_MESSAGE}
        yield {"schema": 1, **dict(zip(PER_MESSAGE, once, strict=True)), **arrays}


@pytest.fixture
def store(
    spark: SparkSession, kafka_cluster: KafkaCluster, tmp_path: Path, request: pytest.FixtureRequest
) -> TopicStore:
    """A topic without samples."""
    return TopicStore(spark, kafka_cluster.bootstrap(), f"days-{abs(hash(request.node.name)):x}", tmp_path)


def test_whatever_happens_between_runs_over_a_topic_the_facts_are_those_of_one_run(store: TopicStore) -> None:
    """Late samples (1, 25 and 49 hours), doubled ones, two samplers, a clock set back, a missing day, retention, topics and partitions."""
    store.add(minutes(0, 600, 620, 1000) + minutes(0, *NIGHT, 5000) + minutes(0, 600, 605, 70, topic="deleted"))
    store.run(1)

    # Over midnight; the leader moves; a topic is created again; a partition is added; messages come twice; a second sampler.
    store.add(minutes(1, 0, 30, 5600, leader=2) + minutes(1, 600, 610, 3, topic="deleted"))
    added = minutes(1, 300, 310, 0, partition=1)
    store.add(added)
    store.add(added)
    store.add(
        {**message, "sampled_at_ms": message["sampled_at_ms"] + 7_000, "end_offset": message["end_offset"] + 1}
        for message in added
    )
    store.add(minutes(1, *NIGHT, 9000))
    store.run(2)

    # Retention takes all that was read, and the samples topic gets a partition. Day 2 is missing. Samples of day 1 come 25 hours late, of
    # day 0 49 hours; one sampler's clock is 20 minutes behind.
    store.delete_records(OffsetSpec.latest())
    store.add_partition()
    store.add(minutes(1, 1300, 1310, 7000) + minutes(0, 700, 720, 2000), partition=1)
    behind = minutes(3, 10, 12, 1)
    store.add([{**message, "sampled_at_ms": message["sampled_at_ms"] - 20 * MINUTE_MS} for message in behind])
    store.add(minutes(3, 0, 20, 9900))
    left_out = store.run(4)
    store.add(minutes(3, 1380, 1385, 9950), partition=1)
    store.run(4)

    expected, of_one_run = store.found_in_one_run(4)
    assert store.found() == expected
    assert left_out == of_one_run
    assert [(note.what, note.count) for note in left_out] == [("samples whose clocks disagree", 3)]


def test_landed_samples_of_a_cut_manifest_are_named_and_read_from_the_topic_again(store: TopicStore) -> None:
    """The manifest before it contains the offset."""
    store.add(minutes(1, 600, 620, 1000))
    store.run(2)
    store.add(minutes(2, 600, 620, 3000))
    store.run(3)
    cut = max((store.folder / "facts" / "_samples" / "_manifests").glob("0*.json"))
    cut.write_text(cut.read_text()[:-20])
    store.add(minutes(2, 700, 710, 9000))

    of_cut = store.run(3)

    assert [cut.name in note.what for note in of_cut] == [True]
    assert store.found() == store.found_in_one_run(3)[0]


@pytest.mark.soak(
    "balance_analytics/jobs/test_publishing.py::test_a_missing_published_file_is_reported_and_written_again"
)
def test_a_lost_file_of_landed_samples_is_named_and_read_from_the_topic_again(store: TopicStore) -> None:
    """A file of a run that was killed before it had computed facts."""
    store.add(minutes(2, 600, 620, 3000))
    store.run(3)
    publish = Published.publish

    class KilledError(BaseException):
        """Ends the run as SIGKILL would."""

    def killed(table: Published, *arguments: Any, **options: Any) -> Any:
        if table.what == "facts":
            raise KilledError
        return publish(table, *arguments, **options)

    store.add(minutes(3, 600, 620, 12000))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Published, "publish", killed)
        with pytest.raises(KilledError):
            store.run(4)
    min(store.folder.glob("facts/_samples/v=*/date=2026-01-08/*.parquet")).unlink()

    of_lost = store.run(4)

    assert [note.what.partition(": ")[2] for note in of_lost] == [
        "a published file of the samples that were read from the topic is missing or truncated"
    ]
    assert store.found() == store.found_in_one_run(4)[0]


@pytest.mark.soak(
    "balance_analytics/jobs/test_publishing.py::test_the_second_of_two_concurrent_runs_is_rejected_when_it_publishes"
)
def test_of_two_runs_at_once_over_a_topic_the_second_is_refused_and_the_next_has_everything(
    store: TopicStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both read the same messages; they count once."""
    store.add(minutes(0, 600, 620, 1000))
    publish = Published.publish

    def publish_late(*arguments: Any, **options: Any) -> None:
        monkeypatch.undo()
        store.run(1)
        publish(*arguments, **options)

    monkeypatch.setattr(Published, "publish", publish_late)
    with pytest.raises(AnalyticsError, match=r"another run has published samples that were read from the topic at .*"):
        store.run(1)
    store.add(minutes(0, 630, 640, 2000))

    store.run(1)

    assert store.found() == store.found_in_one_run(1)[0]


def test_messages_that_retention_takes_while_a_run_reads_are_a_gap(
    store: TopicStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An offset that is out of range when it is read: the run reads again what is left, and the next run begins behind it."""
    store.add(minutes(0, 600, 609, 1000), kept=False)
    store.add(minutes(0, 610, 620, 1100))

    earliest = []

    def deleting(samples: Samples, since_ms: int) -> TopicEnds:
        found = ends_of(samples, since_ms)
        earliest.append(found.earliest)
        store.delete_records(10)
        return found

    monkeypatch.setattr(landing, "ends_of", deleting)
    store.run(1)
    monkeypatch.undo()
    store.add(minutes(0, 621, 630, 1210))
    store.run(1)

    assert earliest == [{0: 0}, {0: 10}]
    assert store.found() == store.found_in_one_run(1)[0]
