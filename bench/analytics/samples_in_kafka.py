"""Generated samples in the samples topic of a real broker, in the messages of the sampler.

The topic keeps everything: generated samples are of days long past.
"""

import contextlib
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from balance_analytics.model.sample_messages import HEADERS, encode
from balance_analytics.model.sample_rows import SAMPLES_TOPIC
from balance_analytics.model.samples import NO_BROKER, UNKNOWN, Samples
from balance_analytics.sampling.samples_topic import SamplesTopic
from lab.generated_load import Layout
from lab.generated_load.compacted_days import HOURS_BEFORE, hours_of_samples
from lab.peers.cluster import kafka_cluster

__all__ = ["HOURS_BEFORE", "TOPIC", "broker", "produce"]

TOPIC = SAMPLES_TOPIC
PATIENCE_S = 120.0
MESSAGE_BYTES = 1_048_588
"""The sampler's limit of a batch."""


@contextlib.contextmanager
def broker() -> Iterator[str]:
    """Yield the bootstrap server of one broker with an empty samples topic."""
    with kafka_cluster((1,)) as cluster:
        bootstrap = cluster.bootstrap()
        config = {"retention.ms": "-1", "max.message.bytes": str(MESSAGE_BYTES)}
        topic = NewTopic(TOPIC, SamplesTopic().partitions, 1, config=config)
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([topic])[TOPIC].result(PATIENCE_S)
        yield bootstrap


def produce(bootstrap: str, layout: Layout, first: int, end: int) -> None:
    """Write the samples of some hours of a load, the messages of each topic into one partition, gzipped."""
    settings = {
        "compression.type": "gzip",
        "linger.ms": 100,
        "message.max.bytes": MESSAGE_BYTES,
        "queue.buffering.max.kbytes": 200_000,
    }
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", **settings})
    for _, rows in hours_of_samples(layout, first, end):
        for sample in _samples(rows):
            for message in encode(sample):
                while True:
                    try:
                        producer.produce(
                            TOPIC, message.value, message.key, timestamp=sample.round_ms, headers=list(HEADERS)
                        )
                        break
                    except BufferError:
                        producer.poll(0.1)
            producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0, "all samples are written"


def _samples(rows: Any) -> Iterator[Samples]:
    """Yield the samples of a table of SAMPLE_ROWS in the order of time, topic and partition; every partition has the same number of replicas."""
    round_ms = rows["round_ms"].to_numpy()
    bounds = [0, *(np.flatnonzero(np.diff(round_ms)) + 1).tolist(), len(rows)]
    for begin, end in pairwise(bounds):
        yield _sample(rows.slice(begin, end - begin).combine_chunks(), int(round_ms[begin]))


def _sample(rows: Any, round_ms: int) -> Samples:
    topic = rows["topic"].combine_chunks().dictionary_encode()
    first_row = np.flatnonzero(np.diff(topic.indices.to_numpy(), prepend=-1))
    count = len(rows)

    def numbers(name: str) -> Any:
        return rows[name].combine_chunks().fill_null(UNKNOWN).to_numpy()

    replicas = rows["replicas"].combine_chunks().values.to_numpy().reshape(count, -1)
    in_sync = rows["isr"].combine_chunks()
    padded = np.full(replicas.shape, NO_BROKER, np.int32)
    lengths = in_sync.value_lengths().to_numpy()
    padded[np.arange(replicas.shape[1]) < lengths[:, None]] = in_sync.flatten().to_numpy()
    return Samples(
        cluster_id=rows["cluster_id"][0].as_py(),
        round_ms=round_ms,
        topics=tuple(topic.dictionary.to_pylist()),
        first_row=np.append(first_row, count).astype(np.int64),
        sampled_at_ms=rows["sampled_at_ms"].to_numpy()[first_row],
        replicas=replicas,
        isr=padded,
        size_bytes=rows["size_bytes"].combine_chunks().flatten().fill_null(UNKNOWN).to_numpy().reshape(count, -1),
        **{name: numbers(name) for name in ("partition", "leader", "leader_epoch", "committed_groups")},
        **{name: numbers(name) for name in ("start_offset", "end_offset", "committed_offset_sum")},
    )
