"""Fake brokers, fronts and clients; no test may leave a task running."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from controller_core.shell.front.front import Front, open_front
from controller_core.zookeeper_mode.apis import NOT_ADVERTISED, SERVED
from kafka_wire import ApiKey
from tests.controller_core.shell.front.fakes import BROKER_RANGES, Client, FakeBroker
from tests.kafka_wire.net.peers import check_no_task_remains


@pytest.fixture(autouse=True)
async def no_remaining_tasks() -> AsyncIterator[None]:
    """Fail a test that leaves a task running; set up before and torn down after every other fixture."""
    yield
    await check_no_task_remains()


@pytest.fixture
async def start_brokers() -> AsyncIterator[Callable[..., Awaitable[list[FakeBroker]]]]:
    """Start fake brokers with these ids."""
    brokers: list[FakeBroker] = []

    async def start(*broker_ids: int, ranges: dict[ApiKey, tuple[int, int]] = BROKER_RANGES) -> list[FakeBroker]:
        started = [await FakeBroker(broker_id, ranges).start() for broker_id in broker_ids]
        brokers.extend(started)
        return started

    yield start
    for broker in brokers:
        await broker.close()


@pytest.fixture
async def start_front() -> AsyncIterator[Callable[..., Awaitable[Front]]]:
    """Start fronts with lists of brokers; a broker that is removed from its list is no longer live."""
    fronts: list[Front] = []

    async def start(brokers: list[FakeBroker], handlers: dict[ApiKey, Any] | None = None, **options: Any) -> Front:
        def live() -> list[Any]:
            return [broker.endpoint for broker in brokers]

        front = await open_front(
            "CLIENT",
            "127.0.0.1",
            0,
            handlers or {},
            live,
            **{"served": SERVED, "not_advertised": NOT_ADVERTISED, **options},
        )
        fronts.append(front)
        return front

    yield start
    for front in fronts:
        await front.close(grace_ms=1)


@pytest.fixture
async def connect() -> AsyncIterator[Callable[..., Awaitable[Client]]]:
    """Connect clients to a front; closed after the test."""
    clients: list[Client] = []

    async def open_client(front: Front) -> Client:
        client = Client(*await asyncio.open_connection("127.0.0.1", front.port))
        clients.append(client)
        return client

    yield open_client
    for client in clients:
        client.writer.transport.abort()
    await asyncio.sleep(0)
