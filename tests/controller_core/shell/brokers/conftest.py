"""Fixtures of two fake brokers on real sockets, and the channels to them."""

from collections.abc import AsyncIterator

import pytest

from controller_core.shell.brokers import channel as channel_module
from kafka_wire.net.backoff import Backoff
from tests.controller_core.shell.brokers.channel_world import Start, World
from tests.controller_core.shell.brokers.fake_broker import FakeBroker
from tests.kafka_wire.net.peers import check_no_task_remains


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Start fake brokers; they are closed after the test."""
    brokers: list[FakeBroker] = []

    async def started() -> FakeBroker:
        brokers.append(await FakeBroker().start())
        return brokers[-1]

    yield started
    for broker in brokers:
        await broker.close()


@pytest.fixture
async def world(start: Start, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    """Two brokers and the channels to them; no task may be left after a test."""
    monkeypatch.setattr(channel_module, "PAUSE_S", 0.001)
    monkeypatch.setattr(channel_module, "REFUSAL_PAUSES", Backoff(initial_ms=1, cap_ms=1))
    world = World(await start(), await start())
    yield world
    await world.channels.close()
    for broker in world.brokers:
        await broker.close()
    await check_no_task_remains()
