"""32 connections with 64 requests each in flight, over real sockets: brokers' AlterPartition is still answered."""

import asyncio
import struct
from collections.abc import AsyncIterator

import pytest

from controller_core.model.scope import ALL
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.front import Front, open_front
from controller_core.shell.scheduler import MAX_CLIENT_WAITING
from controller_core.zookeeper_mode.apis import SERVED
from kafka_wire import ApiKey, Body, ErrorCode, codec
from tests.controller_core.shell.terms import INTERNAL, Term

CONNECTIONS, IN_FLIGHT = 32, 64
"""Requests of one connection after which the server stops reading from it."""
ALTER_PARTITION_VERSION = 0
TIMEOUT_S = 60.0


@pytest.fixture
async def term(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Term]:
    """Three brokers and a topic."""
    term = Term(monkeypatch, 1, 2, 3)
    await term.create("orders", (1, 2, 3))
    yield term
    await term.controller.close()


@pytest.fixture
async def front(term: Term) -> AsyncIterator[Front]:
    """The listener, as the controller opens it."""
    front = await open_front(INTERNAL, "127.0.0.1", 0, handlers(lambda: term.controller), list, served=SERVED)
    yield front
    await front.close()


def framed(key: ApiKey, version: int, body: Body, correlation_id: int = 0) -> bytes:
    """Encode a request with its length."""
    frame = codec.encode_request(key, version, correlation_id, "flood", body)
    return struct.pack(">i", len(frame)) + frame


async def answered(reader: asyncio.StreamReader, key: ApiKey, version: int) -> Body:
    """Read one answer."""
    (length,) = struct.unpack(">i", await reader.readexactly(4))
    _, body = codec.decode_response(key, version, await reader.readexactly(length))
    return body


def alter_partition(term: Term, isr: list[int]) -> Body:
    """Broker 1 requests another ISR for the partition that it leads."""
    row = term.cluster.row_of("orders", 0)
    assert row is not None
    columns = term.cluster.columns
    partition = {
        "partition_index": 0,
        "leader_epoch": int(columns.leader_epoch[row]),
        "new_isr": isr,
        "partition_epoch": int(columns.partition_epoch[row]),
    }
    topics = [{"topic_name": "orders", "partitions": [partition]}]
    return {"broker_id": 1, "broker_epoch": term.cluster.brokers[1].epoch, "topics": topics}


async def flood(front: Front) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Send all requests of all connections: elections of the partition's preferred leader."""
    body = {
        "election_type": 0,
        "topic_partitions": [{"topic": "orders", "partitions": [0]}],
        "timeout_ms": int(TIMEOUT_S * 1000),
    }
    connections = [await asyncio.open_connection("127.0.0.1", front.port) for _ in range(CONNECTIONS)]
    for _, writer in connections:
        writer.write(b"".join(framed(ApiKey.ELECT_LEADERS, 1, body, number) for number in range(IN_FLIGHT)))
        await writer.drain()
    return connections


@pytest.mark.slow
async def test_no_alter_partition_is_refused_while_the_queue_of_clients_is_full(term: Term, front: Front) -> None:
    """KIP-497: a leader whose AlterPartition is refused does not advance its high watermark, and producers wait."""
    async with asyncio.timeout(TIMEOUT_S):
        async with term.controller.scheduler.run_exclusively(ALL):  # like a large write to a slow ZooKeeper
            connections = await flood(front)
            while term.controller.scheduler.waiting < min(MAX_CLIENT_WAITING, CONNECTIONS * IN_FLIGHT):  # noqa: ASYNC110 - requests that arrive over sockets set no event
                await asyncio.sleep(0.001)
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(framed(ApiKey.ALTER_PARTITION, ALTER_PARTITION_VERSION, alter_partition(term, [1, 2])))
            await writer.drain()
            while term.controller.scheduler.waiting <= MAX_CLIENT_WAITING:  # noqa: ASYNC110 - requests that arrive over sockets set no event
                await asyncio.sleep(0.001)
        answer = await answered(reader, ApiKey.ALTER_PARTITION, ALTER_PARTITION_VERSION)
        still_waiting = term.controller.scheduler.waiting
        for client, _ in connections:
            for _ in range(IN_FLIGHT):
                await answered(client, ApiKey.ELECT_LEADERS, 1)

    assert answer["error_code"] == ErrorCode.NONE
    assert answer["topics"][0]["partitions"][0]["isr"] == [1, 2]
    assert still_waiting > 0, "the broker waited for clients that came before it"
    for _, connected in [*connections, (reader, writer)]:
        connected.close()
