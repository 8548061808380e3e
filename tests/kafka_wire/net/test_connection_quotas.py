"""Limits of connections: of one address, in all, and how many are created a second."""

import asyncio

import pytest

from kafka_wire.net.connection_quotas import ConnectionQuotas, CreationRate
from tests.kafka_wire.net.peers import request, response
from tests.waiting import until


async def is_served(peer) -> bool:
    """Return whether a request on the connection is answered."""
    await peer.send_frame(request(9))
    return await peer.read_frame() == response(9)


async def test_connections_of_an_address_are_limited_over_all_listeners(start_server, connect, caplog) -> None:
    """Kafka's max.connections.per.ip; a closed connection makes room."""
    quotas = ConnectionQuotas(max_per_address=2)
    servers = [await start_server(quotas=quotas) for _ in range(2)]
    kept = [await connect(server) for server in servers]
    assert [await is_served(peer) for peer in kept] == [True, True]
    for server in servers:
        assert await (await connect(server)).is_closed_by_server()
    assert quotas.count("127.0.0.1") == 2

    await kept[0].close()
    await until(lambda: quotas.connection_count == 1)
    assert await is_served(await connect(servers[1]))
    reasons = [record.reason for record in caplog.records if hasattr(record, "reason")]
    assert (
        reasons == ["the address has 2 connections, the limit is 2"] * 2
    )  # one warning for each listener and interval


async def test_an_override_replaces_the_limit_of_its_address(start_server, connect) -> None:
    """Kafka's max.connections.per.ip.overrides: with a limit of 0 only addresses with an override connect."""
    quotas = ConnectionQuotas(max_per_address=0, overrides={"127.0.0.1": 1})
    server = await start_server(quotas=quotas)

    assert await is_served(await connect(server))
    assert await (await connect(server)).is_closed_by_server()


def test_an_address_without_an_override_has_the_default() -> None:
    """An IPv4 address in IPv6 form is the same address."""
    quotas = ConnectionQuotas(max_per_address=0, overrides={"::ffff:10.0.0.1": 2})

    assert [quotas.admit("10.0.0.1"), quotas.admit("::ffff:10.0.0.1")] == [None, None]
    assert quotas.admit("10.0.0.1") == "the address has 2 connections, the limit is 2"
    assert quotas.admit("10.0.0.2") == "the address has 0 connections, the limit is 0"


def test_names_of_hosts_are_rejected() -> None:
    """They are not resolved, unlike in Kafka."""
    with pytest.raises(ValueError, match=r"'broker\.example' does not appear to be an IPv4 or IPv6 address"):
        ConnectionQuotas(overrides={"broker.example": 5})


async def test_the_protected_listener_is_served_above_the_limit_in_all(start_server, connect, caplog) -> None:
    """Clients cannot keep brokers out: the client that was inactive longest is closed (Kafka's closeExcessConnections)."""
    caplog.set_level("INFO")
    quotas = ConnectionQuotas(max_connections=2)
    clients, brokers = await start_server(quotas=quotas), await start_server(quotas=quotas, is_protected=True)
    first, second = await connect(clients), await connect(clients)
    assert [await is_served(first), await is_served(second), await is_served(first)] == [True, True, True]
    assert await (await connect(clients)).is_closed_by_server()

    assert await is_served(await connect(brokers))
    assert await second.is_closed_by_server()
    assert await is_served(first)
    await until(lambda: quotas.connection_count == 2)


def test_the_rate_of_created_connections_is_that_of_kafka() -> None:
    """Eleven windows of a second; at least ten count, so that a first burst of ten times the limit is allowed (Rate, QuotaUtils)."""
    rate = CreationRate(limit=2)
    assert [rate.record(0.0) for _ in range(20)] == [0.0] * 20

    assert rate.record(0.0) == pytest.approx(0.5)  # (2.1 - 2) / 2 * 10 s
    assert rate.record(0.0) == pytest.approx(1.0)  # limited to a window
    assert rate.rate(11.0) == 0.0
    assert rate.record(11.0) == 0.0


@pytest.mark.slow
async def test_above_the_rate_connections_wait_to_be_accepted(start_server, connect) -> None:
    """They are delayed by at most a window, not rejected; other connections are served in the meantime.

    The limit is so low that a pause of the machine of up to 8 s between the two connections changes nothing.
    """
    server = await start_server(max_connection_creation_rate=0.1)
    began_s = asyncio.get_running_loop().time()
    first, second = await connect(server), await connect(server)
    await until(lambda: server.admission.throttled == 1)
    assert server.admission.throttled_s == 1.0
    assert await is_served(first)

    assert await is_served(second)
    assert asyncio.get_running_loop().time() - began_s >= 1.0
    assert server.admission.rejected == 0


async def test_connections_that_wait_to_be_accepted_are_closed_with_the_server(start_server, connect) -> None:
    """Neither the delayed socket nor those in the kernel's queue stay open."""
    server = await start_server(max_connection_creation_rate=0.1)
    peers = [await connect(server) for _ in range(3)]
    await until(lambda: server.admission.throttled >= 1)

    await server.close(grace_ms=1)
    for peer in peers[1:]:
        assert await peer.is_closed_by_server()


async def test_the_rate_of_the_process_applies_to_all_listeners_but_the_protected_one(start_server, connect) -> None:
    """The broker's own max.connection.creation.rate; a protected listener has only its own."""
    quotas = ConnectionQuotas(max_creation_rate=0.1)
    clients, brokers = await start_server(quotas=quotas), await start_server(quotas=quotas, is_protected=True)
    await connect(clients)
    await connect(clients)
    await until(lambda: clients.admission.throttled == 1)

    assert await is_served(await connect(brokers))
    assert brokers.admission.throttled == 0


async def test_a_peer_that_never_ends_its_handshake_counts(start_server, connect, server_tls) -> None:
    """Its place is free again after the timeout of the handshake."""
    quotas = ConnectionQuotas(max_per_address=1)
    server = await start_server(ssl=server_tls, quotas=quotas, tls_handshake_timeout_ms=50)
    silent = await connect(server)
    await until(lambda: quotas.connection_count == 1)
    assert await (await connect(server)).is_closed_by_server()

    assert await silent.is_closed_by_server()
    await until(lambda: quotas.connection_count == 0)


async def test_many_connections_at_once_are_all_counted_and_released(start_server, connect) -> None:
    """A client that connects again and again leaves nothing behind."""
    quotas = ConnectionQuotas(max_per_address=5)
    server = await start_server(quotas=quotas)
    for _ in range(4):
        peers = await asyncio.gather(*(connect(server) for _ in range(30)))
        await until(lambda: quotas.connection_count == 5)
        for peer in peers:
            await peer.reset()
        await until(lambda: quotas.connection_count == 0)

    assert server.connection_count == 0
    assert server.admission.rejected == 4 * 25
