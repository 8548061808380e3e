"""AlterPartition of a broker while clients fill the controller's event queue: the answered part, and the slowest answer.

A real ZooKeeper, ten brokers that are sockets, and the controller as a separate process. 32 connections keep 64 ElectLeaders requests
each in flight for the whole measurement, for all partitions, so that one event runs at a time. In the meantime a broker sends
AlterPartition for partitions that it leads, one after the other as a broker does.
"""

import asyncio
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import Self

from bench.harness import Better, Effort, Row, Side, limited, promised, side_of
from bench.zookeeper_mode.large_layout import (
    BROKERS,
    CHROOT,
    PARTITIONS_OF_TOPIC,
    LargeLayout,
    large_layout,
    leaders_on_all_brokers,
    topic_name,
    topics_of,
)
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_zookeeper import paths
from kafka_zookeeper.formats.partition_states import decode_partition_state
from lab.peers.kafka import INTERNAL

NAME = "alter-partition-flood"
ABOUT = "AlterPartition of a broker while 32 connections keep 64 requests each in flight"

PARTITIONS = 1_000
CONNECTIONS, IN_FLIGHT = 32, 64
REQUESTS, QUICK_REQUESTS = 500, 50
PROMISE = "P14"
ANSWER_LIMIT_MS = 1_000.0
"""Two orders of magnitude below the time after which a leader's pending ISR change delays producers with acks=all (request.timeout.ms, 30 s)."""
ALTER_VERSION, ELECT_VERSION = 0, 1
TIMEOUT_S = 60.0


class Flood:
    """Clients in a separate thread and event loop."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._ends = threading.Event()
        self.under_way = threading.Event()
        """Set with the first answer, when all requests of all connections have been sent."""
        self.answers: Counter[int] = Counter()
        """Answers to clients by error code."""
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join(TIMEOUT_S)

    async def _run(self) -> None:
        await asyncio.gather(*(self._client() for _ in range(CONNECTIONS)))

    async def _client(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        body = {"election_type": 0, "topic_partitions": None, "timeout_ms": int(TIMEOUT_S * 1000)}
        frame = framed(ApiKey.ELECT_LEADERS, ELECT_VERSION, body)
        writer.write(frame * IN_FLIGHT)
        while not self._ends.is_set():
            answer = await answered(reader, ApiKey.ELECT_LEADERS, ELECT_VERSION)
            self.answers[answer["error_code"]] += 1
            self.under_way.set()
            writer.write(frame)
        writer.close()


def framed(key: ApiKey, version: int, body: Body) -> bytes:
    """Encode a request with its length."""
    frame = codec.encode_request(key, version, 1, "bench", body)
    return struct.pack(">i", len(frame)) + frame


async def answered(reader: asyncio.StreamReader, key: ApiKey, version: int) -> Body:
    """Read one answer."""
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    return codec.decode_response(key, version, await reader.readexactly(length))[1]


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of the benchmark."""
    requests = QUICK_REQUESTS if effort.quick else REQUESTS
    with large_layout(PARTITIONS) as stage, stage.ours() as controller:
        port = controller.ports[INTERNAL]
        with Flood(port) as flood:
            if not flood.under_way.wait(TIMEOUT_S):
                raise AssertionError("no client got an answer")
            taken_ms, codes = asyncio.run(ask(stage, port, requests))
            clients = sum(flood.answers.values())
    about = f"{requests} AlterPartition of a broker alongside {CONNECTIONS} x {IN_FLIGHT} ElectLeaders in flight"
    message = f"{about}, of which {clients:,} were answered; part that is answered without an error"
    part = codes[ErrorCode.NONE] / requests
    answered_part = Row(
        "stall.alter_partition_answered",
        message,
        "all",
        "x",
        Better.HIGHER,
        side_of([part]),
        Side(1.0, 1.0, 1.0),
        requests,
    )
    yield promised(answered_part, PROMISE, 1.0)
    yield limited(
        "stall.alter_partition_ms",
        f"{about}; the slowest answer",
        "ms",
        side_of([max(taken_ms)]),
        ANSWER_LIMIT_MS,
        PROMISE,
    )


async def ask(stage: LargeLayout, port: int, requests: int) -> tuple[list[float], Counter[int]]:
    """Shrink and grow the ISR of partitions that broker 1 leads; milliseconds of each answer, and answers by error code."""
    broker = BROKERS[0]
    registration = stage.client.exists(f"{CHROOT}{paths.broker(broker)}")
    assert registration is not None, f"broker {broker} is not registered"
    led = [
        (topic_name(number), partition)
        for number in topics_of(PARTITIONS)
        for partition in range(PARTITIONS_OF_TOPIC)
        if BROKERS[leaders_on_all_brokers(number, partition)] == broker
    ]
    full: dict[tuple[str, int], list[int]] = {}
    taken_ms: list[float] = []
    codes: Counter[int] = Counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for place in range(requests):
        topic, partition = name = led[place % len(led)]
        path = f"{CHROOT}{paths.partition_state(topic, partition)}"
        document, stat = stage.client.get(path)
        state = decode_partition_state(path, document)
        whole = full.setdefault(name, list(state.isr))
        change = {
            "partition_index": partition,
            "leader_epoch": state.leader_epoch,
            "new_isr": [broker] if len(state.isr) == len(whole) else whole,
            "partition_epoch": stat.version,
        }
        topics = [{"topic_name": topic, "partitions": [change]}]
        body = {"broker_id": broker, "broker_epoch": registration.czxid, "topics": topics}
        begun_s = time.perf_counter()
        writer.write(framed(ApiKey.ALTER_PARTITION, ALTER_VERSION, body))
        answer = await answered(reader, ApiKey.ALTER_PARTITION, ALTER_VERSION)
        taken_ms.append((time.perf_counter() - begun_s) * 1000)
        code = answer["error_code"] or answer["topics"][0]["partitions"][0]["error_code"]
        codes[ErrorCode(code)] += 1
    writer.close()
    return taken_ms, codes
