"""The proxy in front of a broker forwards everything unchanged, records requests of controllers, and holds them back on request."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import Connection, ConnectionFailed
from lab.faults.broker_proxy import STEWARD_CLIENT_ID, BrokerProxy, ControllerRequest
from lab.processes.waiting import port_accepts
from tests.controller_core.shell.brokers.fake_broker import FakeBroker, refuse_once

METADATA = {"controller_id": 1000, "controller_epoch": 1, "broker_epoch": 7, "live_brokers": []}


@pytest.fixture
async def broker() -> AsyncIterator[FakeBroker]:
    """A broker that answers a controller's requests."""
    broker = await FakeBroker().start()
    yield broker
    await broker.close()


@pytest.fixture
def proxy(broker: FakeBroker) -> BrokerProxy:
    """A proxy of the broker."""
    proxy = BrokerProxy()
    proxy.target_port = broker.port
    return proxy


async def connect_to(proxy: BrokerProxy, client_id: str = f"{STEWARD_CLIENT_ID}-1000") -> Connection:
    """Open a connection through the proxy."""
    return await Connection.open("127.0.0.1", proxy.port, client_id=client_id)


async def test_requests_of_a_controller_are_recorded_with_their_answers(broker: FakeBroker, proxy: BrokerProxy) -> None:
    """In their order; requests that all clients send are not recorded."""
    broker.react = refuse_once(ErrorCode.STALE_BROKER_EPOCH)
    connection = await connect_to(proxy)
    for broker_epoch in (7, 8):
        await connection.call(ApiKey.UPDATE_METADATA, {**METADATA, "broker_epoch": broker_epoch})
    await connection.close()

    stale = ControllerRequest(ApiKey.UPDATE_METADATA, 7, ErrorCode.STALE_BROKER_EPOCH)
    assert proxy.requests == [stale, ControllerRequest(ApiKey.UPDATE_METADATA, 8, ErrorCode.NONE)]
    assert [body["broker_epoch"] for key, body in broker.taken if key is ApiKey.UPDATE_METADATA] == [7, 8]
    proxy.close()


async def test_requests_of_the_controller_wait_while_the_proxy_holds_them(
    broker: FakeBroker, proxy: BrokerProxy
) -> None:
    """None is lost, and requests of other clients are forwarded."""
    proxy.hold()
    connection, other = await connect_to(proxy), await connect_to(proxy, "another client")
    held = asyncio.create_task(connection.call(ApiKey.UPDATE_METADATA, METADATA))
    await asyncio.to_thread(proxy.wait_until_held)
    await other.call(ApiKey.UPDATE_METADATA, METADATA)
    assert not held.done()

    proxy.open()
    await held
    for client in (connection, other):
        await client.close()
    assert broker.keys.count(ApiKey.UPDATE_METADATA) == 2
    proxy.close()


async def test_a_stopped_broker_is_unreachable(broker: FakeBroker, proxy: BrokerProxy) -> None:
    """A broker that does not run cannot be reached through its proxy."""
    await broker.close()
    with pytest.raises(ConnectionFailed):
        await (await connect_to(proxy)).call(ApiKey.UPDATE_METADATA, METADATA)
    assert proxy.requests == []
    proxy.close()


async def test_a_closed_proxy_releases_its_port(broker: FakeBroker, proxy: BrokerProxy) -> None:
    """No process may listen on it; a second close does nothing."""
    connection = await connect_to(proxy)
    await connection.call(ApiKey.UPDATE_METADATA, METADATA)
    await connection.close()
    proxy.close()
    proxy.close()

    assert not port_accepts(proxy.port)
    assert len(broker.taken) - broker.keys.count(ApiKey.API_VERSIONS) == 1
