"""A what-if of 200,000 partitions: from the read answers of a cluster to the printed document.

The answers are those of the Admin port, as Python values: 2,000 topics on 100 brokers in three racks, with the sizes of 600,000 logs.
Included are the columns, the elections, the plan of the copies and the JSON. Not included: the requests to Kafka. There is no peer: Cruise
Control and Kafka's tools simulate no failures. Each round is the loss of a rack, of a broker, and the removal of two brokers; each has
a row.
"""

import asyncio
import functools
import json
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bench.harness import Effort, Row, limited, side_of, timed
from controller_core.rules.placement import place_replicas
from controller_core.views.what_if import Scenario, Snapshot, lose_brokers, lose_rack, remove_brokers, what_if
from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Disks, Layout
from kafka_operator.decide.kafka.observed import Failure, KafkaPartition, KafkaTopic, Moves
from kafka_operator.resources.reassignment import Partition
from kafka_operator.what_if.reading import read_cluster

NAME = "what-if"
ABOUT = "a what-if of 200,000 partitions: loss of a rack, loss of a broker, removal of brokers, with a limit"

BROKERS, TOPICS, PARTITIONS_OF_TOPIC = 100, 2_000, 100
QUICK_TOPICS = 100
REPLICATION_FACTOR = 3
LIMIT_S = 5.0
PROMISE = "P15"
TERABYTE = 10**12


class Answers:
    """The read answers of a cluster, behind the calls of `kafka_operator.admin.port.AdminReads`."""

    def __init__(self, topics: int) -> None:
        racks = {broker: f"rack-{broker % 3}" for broker in range(BROKERS)}
        sizes = np.random.default_rng(15).lognormal(20, 1, topics * PARTITIONS_OF_TOPIC).astype(np.int64).tolist()
        held: dict[str, KafkaTopic] = {}
        self.sizes: dict[int, dict[Partition, int]] = {broker: {} for broker in racks}
        for number in range(topics):
            name = f"topic-{number:04}"
            placed = place_replicas(racks, PARTITIONS_OF_TOPIC, REPLICATION_FACTOR, number % BROKERS, number % BROKERS)
            partitions = []
            for index, row in enumerate(placed.tolist()):
                partitions.append(KafkaPartition(index, row[0], tuple(row), tuple(row)))
                for broker in row:
                    self.sizes[broker][Partition(name, index)] = sizes[number * PARTITIONS_OF_TOPIC + index]
            held[name] = KafkaTopic(name, None, tuple(partitions))
        self.layout = Layout(held, racks)

    async def describe_layout(self, _: Sequence[str] | None) -> Layout:
        """Return all topics."""
        return self.layout

    async def list_reassignments(self) -> Moves:
        """Return no moves."""
        return {}

    async def describe_min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        """Return 2 for each topic."""
        return dict.fromkeys(topics, 2)

    async def describe_log_dirs(self, _: Collection[int], __: Collection[Partition] | None) -> BrokerSizes:
        """Return all sizes."""
        return self.sizes

    async def describe_disks(self, broker_ids: Collection[int]) -> BrokerDisks:
        """Return disks with little free space."""
        return {broker: Disks(10 * TERABYTE, TERABYTE) for broker in broker_ids}

    async def describe_broker_configs(
        self, broker_ids: Collection[int], _: Sequence[str]
    ) -> Mapping[int, Mapping[str, str] | Failure]:
        """Return no throttles."""
        return {broker: {} for broker in broker_ids}


def question(answers: Answers, action: str) -> str:
    """Return the document of one scenario as JSON."""
    read = asyncio.run(read_cluster(answers))
    return json.dumps(what_if(read.snapshot, scenario(read.snapshot, action), read.rate(None), read.notes))


def scenario(snapshot: Snapshot, action: str) -> Scenario:
    """Return one of the scenarios."""
    if action == "lose_rack":
        return lose_rack(snapshot, "rack-1")
    return lose_brokers(snapshot, [3]) if action == "lose_broker" else remove_brokers(snapshot, [3, 4])


WORDS = {
    "lose_rack": "loss of a rack of 33 brokers",
    "lose_broker": "loss of a broker",
    "remove": "removal of two brokers",
}


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row for each scenario."""
    topics = QUICK_TOPICS if effort.quick else TOPICS
    answers = Answers(topics)
    for action, message in WORDS.items():
        run = timed(functools.partial(question, answers, action))
        began_s = time.process_time()
        seconds = [run() for _ in range(effort.runs())]
        also = {"processor time, s": (time.process_time() - began_s) / len(seconds)}
        what = f"what-if, {message}: {BROKERS} brokers, {topics * PARTITIONS_OF_TOPIC:,} partitions RF {REPLICATION_FACTOR}"
        yield replace(limited(f"{NAME}.{action}", what, "s", side_of(seconds), LIMIT_S, PROMISE), also=also)
