"""kill -9 of a stock Kafka 4.3 broker that leads 10,000 partitions: Steward's controllers and Kafka's (K1).

Each partition has a second replica, on one of the two other brokers. The time begins when the active controller has fenced the broker, by its
log, since the session before it is the same on both sides. It ends when the last of the other brokers, which follow the metadata log, knows another
leader of every partition. The session is short, but longer than a busy machine delays a heartbeat.

Steward's share is measured apart, in one process and with a log in memory: the decision, its records, and their effect.
"""

import asyncio
import datetime as dt
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from functools import partial

from bench.harness import Effort, Row, duration, limited, promised, side_of
from bench.kraft.controllers import Kind, poll
from bench.kraft.stage import BROKERS, Stage, stage
from bench.logs import stamps
from controller_core.model import events, quorum_events
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import Node
from tests.controller_core.shell.kraft.memory_quorum import SharedLog

NAME = "kraft-broker-failure"
ABOUT = "kill -9 of the leader of 10,000 partitions, compared with Kafka 4.3's controllers (ten minutes)"

TOPICS, QUICK_TOPICS = 100, 2
PARTITIONS = 100
ROUNDS = 3
BROKER_HEAP = "512m"
SETTINGS = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "1000",
    "log.index.size.max.bytes": "65536",
}
VICTIM, OTHERS = BROKERS[0], BROKERS[1:]
PEER = "the same brokers under three controllers of Kafka 4.3"
TIMEOUT_MS = 120_000
RETRY_S = 0.002
CONTROLLER = 101
SHARE_ROUNDS, SHARE_LIMIT_MS = 7, 20.0

JAVA_FENCED = f"Fencing broker {VICTIM} at epoch"
STEWARD_FENCED = "Broker fenced"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the row after the last round."""
    topics = QUICK_TOPICS if effort.quick else TOPICS
    ours, peer = ([_failure_s(kind, topics) for _ in range(effort.runs(ROUNDS))] for kind in (Kind.STEWARD, Kind.KAFKA))
    what = f"kill -9 of the leader of {topics * PARTITIONS:,} partitions, 3 brokers: fenced until both others know all new leaders"
    yield promised(duration(NAME, what, PEER, (ours, peer)), "K1", 1.0)
    shares_ms = [asyncio.run(_share_ms(topics)) for _ in range(effort.runs(SHARE_ROUNDS))]
    what = f"the decision that fences the leader of {topics * PARTITIONS:,} partitions, its records, and their effect on the cluster"
    yield limited(f"{NAME}.share", what, "ms", side_of(shares_ms), SHARE_LIMIT_MS, "K1")


async def _share_ms(topics: int) -> float:
    log = SharedLog()
    active = log.add(CONTROLLER)
    log.elect(CONTROLLER)
    for broker in BROKERS:
        await active.start_broker(broker)
    for number in range(topics):
        assignment = {partition: (VICTIM, OTHERS[partition % len(OTHERS)]) for partition in range(PARTITIONS)}
        new = events.NewTopic(f"topic-{number}", uuid.uuid4(), assignment=assignment)
        await active.controller.submit(events.CreateTopics((new,)))
    cluster = active.controller.cluster
    assert (cluster.columns.leader == VICTIM).sum() == topics * PARTITIONS
    began_s = time.perf_counter()
    await active.controller.attempt(quorum_events.FenceBroker(VICTIM, cluster.brokers[VICTIM].epoch))
    spent_ms = (time.perf_counter() - began_s) * 1000
    assert not (cluster.columns.leader == VICTIM).any()
    return spent_ms


def _failure_s(kind: Kind, topics: int) -> float:
    with stage(kind, SETTINGS, BROKER_HEAP, is_small=False) as running:
        names = [f"topic-{number}" for number in range(topics)]
        asyncio.run(_create(running, names))
        running[VICTIM].kill()
        known_s = asyncio.run(_until_moved(running, names))
        return known_s - _fenced_s(running)


async def _create(running: Stage, names: Sequence[str]) -> None:
    """Create the topics, one request for each, so that the victim is the preferred leader of all partitions."""
    client = running.client(OTHERS[0])
    for name in names:
        assignments = [
            {"partition_index": number, "broker_ids": [VICTIM, OTHERS[number % len(OTHERS)]]}
            for number in range(PARTITIONS)
        ]
        topic = {
            "name": name,
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": assignments,
            "configs": [{"name": "min.insync.replicas", "value": "1"}],
        }
        body = {"topics": [topic], "timeout_ms": TIMEOUT_MS, "validate_only": False}
        answer = await client.call(ApiKey.CREATE_TOPICS, body, timeout_ms=TIMEOUT_MS)
        assert answer["topics"][0]["error_code"] == ErrorCode.NONE, answer
    await client.close()
    for broker in BROKERS:
        client = running.client(broker)
        await poll(partial(_is_led_by, client, names, {VICTIM}), RETRY_S)
        await client.close()


async def _until_moved(running: Stage, names: Sequence[str]) -> float:
    """Return the time since 1970 at which the last of the other brokers knows only leaders among these."""

    async def moved(broker: int) -> float:
        client = running.client(broker)
        await poll(partial(_is_led_by, client, names, set(OTHERS)), RETRY_S)
        known_s = time.time()
        await client.close()
        return known_s

    return max(await asyncio.gather(*map(moved, OTHERS)))


async def _is_led_by(client: Node, names: Sequence[str], brokers: set[int]) -> bool:
    """Whether some of these brokers, and no others, lead the first and the last topics, which are the first and last in the log.

    A response with all partitions would take longer than the failure.
    """
    asked = sorted({names[0], names[len(names) // 2], names[-1]})
    body = {"topics": [{"name": name} for name in asked], "allow_auto_topic_creation": False}
    answer = await client.call(ApiKey.METADATA, body, timeout_ms=TIMEOUT_MS)
    if any(topic["error_code"] for topic in answer["topics"]):
        return False
    return {partition["leader_id"] for topic in answer["topics"] for partition in topic["partitions"]} <= brokers


def _fenced_s(running: Stage) -> float:
    """Return the time since 1970 at which the active controller fenced the victim, to the millisecond."""
    find = _steward_stamps if running.kind is Kind.STEWARD else partial(stamps, pattern=JAVA_FENCED)
    (fenced_s,) = (stamp for node in running.controllers.values() for stamp in find(node.process.log_text()))
    return fenced_s


def _steward_stamps(log_text: str) -> Iterator[float]:
    events = (json.loads(line) for line in log_text.splitlines() if STEWARD_FENCED in line)
    return (dt.datetime.fromisoformat(event["time"]).timestamp() for event in events if event["broker"] == VICTIM)
