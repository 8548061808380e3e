"""The sampler on real clusters, Kafka 3.9 with ZooKeeper and 4.x with KRaft: samples match the cluster.

Sources: docs/analytics.md (sampling over Kafka's protocol only, on any cluster).
"""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from balance_analytics.jobs.inputs import sketches_of
from balance_analytics.jobs.options import parser
from balance_analytics.model.sample_messages import decode
from balance_analytics.model.samples import Samples
from balance_analytics.sampling.key_counts import key_name
from balance_analytics.study.key_skew import COUNTERS, heavy_keys
from lab.peers.cluster import KafkaCluster
from lab.peers.kraft import KraftCluster
from lab.peers.steward import ROOT
from lab.processes.waiting import wait_until

pytestmark = pytest.mark.kafka

TIMEOUT_S = 60.0
TOPIC, SAMPLES, GROUP = "sampled", "__samples_of_a_test", "sampled-readers"
KEYED = "sampled-by-key"
MESSAGES = {0: 30, 1: 7, 2: 0}
"""By partition."""


@dataclass
class Sampled:
    """A cluster with one topic of known contents."""

    bootstrap: str
    admin: AdminClient

    def sampler(self, *arguments: str) -> str:
        """Run `steward sampler --once` and return its log."""
        command = [sys.executable, "-m", "steward", "sampler", f"--bootstrap-server={self.bootstrap}", "--once"]
        path = f"{ROOT}:{ROOT / 'operator'}"
        done = subprocess.run(
            [*command, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env={"PYTHONPATH": path, "PATH": ""},
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def consumer(self, group: str) -> Consumer:
        """A consumer that starts at the beginning and commits only on request."""
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        return Consumer({"bootstrap.servers": self.bootstrap, **settings})


PREPARING = {
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.NOT_COORDINATOR,
}
"""Errors of a group's coordinator until the broker leads its partition and has loaded it."""


def committed(consumer: Consumer) -> bool:
    """Commit offsets; return False while the coordinator, which the first commit creates, is not ready."""
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 20), TopicPartition(TOPIC, 1, 7)], asynchronous=False)
    except KafkaException as error:
        if not error.args[0].retriable() and error.args[0].code() not in PREPARING:
            raise
        return False
    return True


@pytest.fixture(params=["kafka_cluster", "kraft_cluster"], scope="module")
def sampled(request: pytest.FixtureRequest) -> Iterator[Sampled]:
    """A cluster with a topic, its messages, and a group that has committed offsets."""
    cluster: KafkaCluster | KraftCluster = request.getfixturevalue(request.param)
    one = Sampled(cluster.bootstrap(), AdminClient({"bootstrap.servers": cluster.bootstrap()}))
    one.admin.create_topics([NewTopic(TOPIC, len(MESSAGES), 2)])[TOPIC].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": one.bootstrap, "acks": "all"})
    for partition, count in MESSAGES.items():
        for _ in range(count):
            producer.produce(TOPIC, b"x" * 100, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = one.consumer(GROUP)
    wait_until(lambda: committed(consumer), timeout_s=TIMEOUT_S, what=f"offsets of {GROUP} committed")
    consumer.close()
    yield one
    one.admin.delete_topics([TOPIC, SAMPLES])


def stored(one: Sampled) -> dict[str, Samples]:
    """The newest message of each topic in the samples topic."""
    consumer = one.consumer("readers-of-samples")
    partitions = consumer.list_topics(SAMPLES, timeout=TIMEOUT_S).topics[SAMPLES].partitions
    ends = {at: consumer.get_watermark_offsets(TopicPartition(SAMPLES, at), timeout=TIMEOUT_S)[1] for at in partitions}
    consumer.assign([TopicPartition(SAMPLES, at, 0) for at in partitions])
    found: dict[str, Samples] = {}
    for _ in range(sum(ends.values())):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        assert message.error() is None, message.error()
        assert message.headers() == [("schema", b"1")]
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        assert value is not None
        found[key.decode()] = decode(key, value)
    consumer.close()
    return found


@pytest.mark.shows("F23")
def test_a_sample_matches_the_cluster(sampled: Sampled) -> None:
    """Leaders and replicas as in the Admin client, end offsets as produced, committed offsets as committed."""
    log = sampled.sampler(f"--topic={SAMPLES}", "--topic-partitions=2", "--topic-retention-hours=48")
    sample = stored(sampled)[TOPIC]
    metadata = sampled.admin.list_topics(TOPIC, timeout=TIMEOUT_S)
    partitions = metadata.topics[TOPIC].partitions

    assert '"message": "Sample stored"' in log
    assert sample.partition.tolist() == [0, 1, 2]
    assert sample.leader.tolist() == [partitions[at].leader for at in range(3)]
    assert sample.replicas.tolist() == [partitions[at].replicas for at in range(3)]
    assert [sorted(row) for row in sample.isr.tolist()] == [sorted(partitions[at].isrs) for at in range(3)]
    assert sample.end_offset.tolist() == list(MESSAGES.values())
    assert sample.start_offset.tolist() == [0, 0, 0]
    assert sample.committed_offset_sum.tolist() == [20, 7, 0]
    assert sample.committed_groups.tolist() == [1, 1, 0]
    sizes = sample.size_bytes.tolist()
    assert all(30 * 100 < size < 30 * 300 for size in sizes[0])
    assert sizes[2] == [0, 0]


def test_the_samples_topic_is_created_with_the_settings_of_the_options(sampled: Sampled) -> None:
    """Partitions, replicas, retention, never compacted. A second sample is added to it."""
    for _ in range(2):
        sampled.sampler(f"--topic={SAMPLES}", "--topic-partitions=2", "--topic-retention-hours=48")
    partitions = sampled.admin.list_topics(SAMPLES, timeout=TIMEOUT_S).topics[SAMPLES].partitions
    resource = ConfigResource(ResourceType.TOPIC, SAMPLES)
    configs = sampled.admin.describe_configs([resource])[resource].result(TIMEOUT_S)

    assert [len(partition.replicas) for partition in partitions.values()] == [3, 3]
    assert configs["retention.ms"].value == "172800000"
    assert configs["cleanup.policy"].value == "delete"
    assert SAMPLES in stored(sampled)


def test_a_parquet_file_matches_the_cluster(sampled: Sampled, tmp_path: Path) -> None:
    """With --no-committed committed offsets are null."""
    import pyarrow.parquet as pq

    sampled.sampler(f"--parquet={tmp_path}", "--no-committed")
    (path,) = tmp_path.rglob("*.parquet")
    rows = [row for row in pq.read_table(path, partitioning=None).to_pylist() if row["topic"] == TOPIC]

    assert [(row["partition"], row["end_offset"]) for row in rows] == list(MESSAGES.items())
    assert [row["committed_offset_sum"] for row in rows] == [None] * 3


@pytest.mark.shows("F24")
def test_hot_keys_are_found(sampled: Sampled, tmp_path: Path) -> None:
    """Half of the messages have one key, a tenth another. The study reads the written file."""
    planted = {b"whale": 600, b"shark": 120, **{f"fish-{at}".encode(): 1 for at in range(480)}}
    sampled.admin.create_topics([NewTopic(KEYED, 3, 1)])[KEYED].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": sampled.bootstrap, "acks": "all", "compression.type": "gzip"})
    without_key: tuple[None, int] = (None, 50)
    for key, count in (*planted.items(), without_key):
        for _ in range(count):
            producer.produce(KEYED, b"value", key)
    assert producer.flush(TIMEOUT_S) == 0

    file = tmp_path / "keys.json"
    log = sampled.sampler(
        f"--parquet={tmp_path}",
        "--no-committed",
        f"--key-topic={KEYED}",
        "--key-messages=5000",
        f"--key-sketches={file}",
    )
    sampled.admin.delete_topics([KEYED])[KEYED].result(TIMEOUT_S)

    assert "not counted" not in log
    options = parser().parse_args(["--facts=f", "--out=o", f"--key-sketches={file}"])
    sketch = sketches_of(options.key_sketches)[KEYED]
    heavy = heavy_keys(sketch, 0.05)
    assert sketch.messages == 1200
    assert [heavy_key.key for heavy_key in heavy] == [key_name(b"whale"), key_name(b"shark")]
    for heavy_key, part in zip(heavy, (0.5, 0.1), strict=True):
        assert heavy_key.at_least <= part <= heavy_key.at_most
        assert heavy_key.at_most - heavy_key.at_least <= 1 / COUNTERS
