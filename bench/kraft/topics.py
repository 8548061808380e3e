"""A thousand topics with ten partitions and three replicas each, created through a stock Kafka 4.3 broker (K5).

Requests of a hundred topics follow one another, since a request of 10,000 partitions does not fit into one batch of the metadata log. The
first figure ends with the last response; the second when all brokers know the last topic and its leaders; the third when the leader of each
partition serves it. Brokers apply metadata in rounds, each as long as they take to make its logs. They know a topic when its round
begins, and serve it in the course of the round, so that the second figure depends on the round that the last topic reaches.
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from bench.harness import Effort, Row, duration, promised
from bench.kraft.controllers import Kind, poll
from bench.kraft.stage import Stage, stage
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import Node

NAME = "kraft-topics"
ABOUT = "1,000 topics created through a broker, compared with Kafka 4.3's controllers (ten minutes)"

TOPICS, QUICK_TOPICS = 1_000, 20
TOPICS_OF_A_REQUEST = 100
PARTITIONS, REPLICAS = 10, 3
ROUNDS = 3
BROKER_HEAP = "512m"
"""10,000 logs on each broker."""
SETTINGS = {
    "broker.session.timeout.ms": "60000",
    "replica.lag.time.max.ms": "300000",
    "log.index.size.max.bytes": "65536",
}
"""Brokers that make logs for a minute stay in service and in the ISRs: two cores have 30,000 logs to make."""
PEER = "the same brokers under three controllers of Kafka 4.3"
TIMEOUT_MS = 120_000
RETRY_S = 0.02
SERVED_RETRY_S = 0.5
"""A request names thousands of partitions."""
LATEST, CONSUMER = -1, -1
"""Timestamp of a log's end, and the replica id of a consumer (ListOffsets)."""
FIGURES = {
    "answered": "to the last response",
    "known": "until all brokers know them",
    "served": "until the leader of each partition serves it",
}

Led = dict[str, list[int]]
"""Partitions by topic."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows after the last round."""
    topics = QUICK_TOPICS if effort.quick else TOPICS
    ours, peer = ([_created(kind, topics) for _ in range(effort.runs(ROUNDS))] for kind in (Kind.STEWARD, Kind.KAFKA))
    what = f"{topics:,} topics with {PARTITIONS} partitions, RF {REPLICAS}, in requests of {TOPICS_OF_A_REQUEST}, 3 brokers"
    for place, (name, message) in enumerate(FIGURES.items()):
        seconds = [run[place] for run in ours], [run[place] for run in peer]
        row = duration(f"{NAME}.{name}", f"{what}; {message}", PEER, seconds)
        yield row if name == "known" else promised(row, "K5", 1.0)


def _created(kind: Kind, topics: int) -> tuple[float, float, float]:
    with stage(kind, SETTINGS, BROKER_HEAP, is_small=False) as running:
        return asyncio.run(_create(running, [f"topic-{number}" for number in range(topics)]))


async def _create(running: Stage, names: Sequence[str]) -> tuple[float, float, float]:
    """Create topics in a new cluster; return the seconds to the last response, until all brokers know them, and until they serve them."""
    clients = [running.client(broker) for broker in running]
    began_s = time.perf_counter()
    for begin in range(0, len(names), TOPICS_OF_A_REQUEST):
        body = _creation(names[begin : begin + TOPICS_OF_A_REQUEST])
        answer = await clients[0].call(ApiKey.CREATE_TOPICS, body, timeout_ms=TIMEOUT_MS)
        errors = {topic["error_code"] for topic in answer["topics"]}
        assert errors == {ErrorCode.NONE}, errors
    answered_s = time.perf_counter() - began_s
    for client in clients:
        await poll(partial(_is_known, client, names[-1]), RETRY_S)
    known_s = time.perf_counter() - began_s
    led = await _led(clients[0], names)
    for broker, client in zip(running, clients, strict=True):
        await poll(partial(_is_served, client, led[broker]), SERVED_RETRY_S)
    served_s = time.perf_counter() - began_s
    for client in clients:
        await client.close()
    return answered_s, known_s, served_s


def _creation(names: Sequence[str]) -> dict[str, object]:
    topics = [
        {"name": name, "num_partitions": PARTITIONS, "replication_factor": REPLICAS, "assignments": [], "configs": []}
        for name in names
    ]
    return {"topics": topics, "timeout_ms": TIMEOUT_MS, "validate_only": False}


async def _led(client: Node, names: Sequence[str]) -> Mapping[int, Led]:
    """Return the partitions that each broker leads, by topic."""
    body = {"topics": [{"name": name} for name in names], "allow_auto_topic_creation": False}
    answer = await client.call(ApiKey.METADATA, body, timeout_ms=TIMEOUT_MS)
    led: dict[int, Led] = defaultdict(lambda: defaultdict(list))
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            led[partition["leader_id"]][topic["name"]].append(partition["partition_index"])
    assert sum(len(found) for of_broker in led.values() for found in of_broker.values()) == len(names) * PARTITIONS
    return led


async def _is_served(client: Node, led: Led) -> bool:
    """Whether a broker answers a consumer about each partition that it leads; those that it serves are removed."""
    partitions = {
        name: [{"partition_index": partition, "timestamp": LATEST} for partition in found]
        for name, found in led.items()
    }
    body = {
        "replica_id": CONSUMER,
        "topics": [{"name": name, "partitions": indexes} for name, indexes in partitions.items()],
    }
    answer = await client.call(ApiKey.LIST_OFFSETS, body, timeout_ms=TIMEOUT_MS)
    for topic in answer["topics"]:
        missing = [
            partition["partition_index"]
            for partition in topic["partitions"]
            if partition["error_code"] != ErrorCode.NONE
        ]
        led[topic["name"]] = missing
        if not missing:
            del led[topic["name"]]
    return not led


async def _is_known(client: Node, name: str) -> bool:
    """Whether a broker knows a topic, and a leader of each partition."""
    body = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
    answer = await client.call(ApiKey.METADATA, body, timeout_ms=TIMEOUT_MS)
    (topic,) = answer["topics"]
    return topic["error_code"] == ErrorCode.NONE and all(
        partition["leader_id"] >= 0 for partition in topic["partitions"]
    )
