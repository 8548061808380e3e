"""Generated loads for several tests, and the input of a study of one, without Spark."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from balance_analytics.study.columns import BrokerColumns, BrokerFacts, PartitionColumns, Question
from lab.generated_load import Layout, LoadSpec, lay_out
from lab.generated_load.state import hours

SMALL = LoadSpec(seed=7, partitions=120, topics=12, brokers=5, days=14, hot=4, outages=2, resets=2, deleted_topics=1)
MINUTES = LoadSpec(seed=3, partitions=24, topics=4, brokers=4, days=1, hot=1, outages=1, gaps=1, resets=1)


def seeded(seed: int, **changes: int) -> Layout:
    """Create a small load with another seed."""
    return lay_out(replace(SMALL, seed=seed, **changes))


def question(layout: Layout, capacities: dict[int, int] | None = None) -> Question:
    """Return the study's input as the pipeline would read it from its tables: partitions at the end, over all hours."""
    spec = layout.spec
    rows = np.flatnonzero(layout.there(spec.hours - 1))
    rates, led, disks, copies = [], [], [], []
    of_partition = np.zeros(len(rows))
    for hour in hours(layout):
        taken = (np.floor(hour.messages) * layout.t_record_bytes[layout.topic] / 3600)[rows]
        size = (hour.size + hour.kept)[rows]
        of_partition += taken / spec.hours
        rates.append(np.bincount(hour.leader[rows], weights=taken, minlength=spec.brokers + 1)[1:])
        led.append(np.bincount(hour.leader[rows], minlength=spec.brokers + 1)[1:])
        disks.append(sum(np.bincount(layout.replicas[rows, slot], size, spec.brokers + 1) for slot in range(3))[1:])
        copies.append(np.bincount(layout.replicas[rows].reshape(-1), minlength=spec.brokers + 1)[1:])
    topics, topic = np.unique(layout.topic[rows], return_inverse=True)
    wide = np.stack(rates, axis=1)
    return Question(
        spec.cluster_id,
        PartitionColumns(
            [layout.names[number] for number in topics],
            topic,
            layout.partition[rows],
            layout.leaders(spec.hours - 1)[rows].astype(np.int64),
            layout.replicas[rows].astype(np.int64),
            of_partition,
            of_partition,
        ),
        BrokerColumns(
            np.arange(1, spec.brokers + 1),
            spec.start_s + 3600 * np.arange(spec.hours),
            np.stack(led, axis=1),
            wide,
            wide,
            wide,
            np.stack(copies, axis=1),
            np.stack(disks, axis=1),
        ),
        BrokerFacts({}, capacities or {}),
        bytes_out_known=True,
        sketches={},
    )
