"""The proxy in front of a broker: everything passes unchanged; requests of controllers are recorded, and held back when required."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import Connection, ConnectionFailed
from lab.door import OUR_CLIENT_ID, Door, Seen
from lab.waiting import port_accepts
from tests.controller_core.shell.brokers.fake_broker import FakeBroker, refuse_once

METADATA = {"controller_id": 1000, "controller_epoch": 1, "broker_epoch": 7, "live_brokers": []}


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A broker that answers a controller's requests."""
    broker = await FakeBroker().start()
    yield broker
    await broker.close()


@pytest.fixture
def door(broker: FakeBroker) -> Door:
    """Its door."""
    door = Door()
    door.leads_to = broker.port
    return door


async def connect_to(door: Door, client_id: str = f"{OUR_CLIENT_ID}-1000") -> Connection:
    """Connect."""
    return await Connection.open("127.0.0.1", door.port, client_id=client_id)


async def test_requests_of_a_controller_are_recorded_with_their_answers(broker: FakeBroker, door: Door) -> None:
    """In their order; requests that all clients send are not recorded."""
    broker.react = refuse_once(ErrorCode.STALE_BROKER_EPOCH)
    connection = await connect_to(door)
    for broker_epoch in (7, 8):
        await connection.call(ApiKey.UPDATE_METADATA, {**METADATA, "broker_epoch": broker_epoch})
    await connection.close()

    stale = Seen(ApiKey.UPDATE_METADATA, 7, ErrorCode.STALE_BROKER_EPOCH)
    assert door.seen == [stale, Seen(ApiKey.UPDATE_METADATA, 8, ErrorCode.NONE)]
    assert [body["broker_epoch"] for key, body in broker.taken if key is ApiKey.UPDATE_METADATA] == [7, 8]
    door.close()


async def test_requests_of_the_controller_wait_while_the_door_is_held(broker: FakeBroker, door: Door) -> None:
    """None is lost, and requests of other clients pass."""
    door.hold()
    connection, other = await connect_to(door), await connect_to(door, "another client")
    held = asyncio.create_task(connection.call(ApiKey.UPDATE_METADATA, METADATA))
    await asyncio.to_thread(door.wait_until_held)
    await other.call(ApiKey.UPDATE_METADATA, METADATA)
    assert not held.done()

    door.open()
    await held
    for one in (connection, other):
        await one.close()
    assert broker.keys.count(ApiKey.UPDATE_METADATA) == 2
    door.close()


async def test_a_stopped_broker_is_unreachable(broker: FakeBroker, door: Door) -> None:
    """A broker that does not run cannot be reached through its door."""
    await broker.close()
    with pytest.raises(ConnectionFailed):
        await (await connect_to(door)).call(ApiKey.UPDATE_METADATA, METADATA)
    assert door.seen == []
    door.close()


async def test_a_closed_door_releases_its_port(broker: FakeBroker, door: Door) -> None:
    """No process may listen on it; a second close does nothing."""
    connection = await connect_to(door)
    await connection.call(ApiKey.UPDATE_METADATA, METADATA)
    await connection.close()
    door.close()
    door.close()

    assert not port_accepts(door.port)
    assert len(broker.taken) - broker.keys.count(ApiKey.API_VERSIONS) == 1
