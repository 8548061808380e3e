"""TLS on both sides, verified unless the caller's context disables it."""

import asyncio
import ssl

import pytest

from kafka_wire.net.client import Connection, ConnectionFailed
from kafka_wire.net.peer import Peer
from tests.kafka_wire.net.peers import request, response
from tests.waiting import until


async def test_calls_over_verified_tls(start_server, open_connection, server_tls, client_tls) -> None:
    """The same calls, encrypted."""
    connection = await open_connection((await start_server(ssl=server_tls)).port, ssl=client_tls)
    payloads = [bytes([number]) * 10_000 for number in range(20)]
    responses = await asyncio.gather(*(connection.call_raw(request(1, payload)) for payload in payloads))

    assert responses == [response(1, payload) for payload in payloads]


async def test_an_unknown_certificate_is_rejected(start_server, server_tls) -> None:
    """The default context only trusts the system's authorities."""
    server = await start_server(ssl=server_tls)
    with pytest.raises(ConnectionFailed, match="CERTIFICATE_VERIFY_FAILED"):
        await Connection.open("127.0.0.1", server.port, client_id=None, ssl=ssl.create_default_context())


async def test_a_certificate_for_another_name_is_rejected(start_server, server_tls, client_tls) -> None:
    """127.0.0.2 is also loopback, but not in the certificate."""
    server = await start_server(ssl=server_tls, host="127.0.0.2")
    with pytest.raises(ConnectionFailed, match="mismatch"):
        await Connection.open("127.0.0.2", server.port, client_id=None, ssl=client_tls)


async def test_plain_text_to_a_tls_port_and_the_reverse_fail(start_server, server_tls, client_tls) -> None:
    """This frequent configuration mistake fails with a reason, within the timeout."""
    plain, encrypted = await start_server(), await start_server(ssl=server_tls)
    with pytest.raises(ConnectionFailed):
        await Connection.open("127.0.0.1", plain.port, client_id=None, ssl=client_tls, connect_timeout_ms=2_000)
    connection = await Connection.open("127.0.0.1", encrypted.port, client_id=None)
    with pytest.raises(ConnectionFailed):
        await connection.call_raw(request(1))
    await connection.close()


@pytest.fixture
def leave_early(start_server, server_tls, client_tls):
    """A server with a connection that is to be closed after its request, and whose peer ended its stream before the response."""

    async def leave(**limits: int):
        started, gate = asyncio.Event(), asyncio.Event()

        async def wait(_peer: Peer, frame: bytes) -> bytes:
            started.set()
            await gate.wait()
            return frame[4:]

        server = await start_server(wait, ssl=server_tls, max_in_flight=1, **limits)
        _, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=client_tls)
        frame = request(1)
        writer.write(len(frame).to_bytes(4, "big") + frame)
        await started.wait()
        (connection,) = server._connections
        connection.drain()
        writer.transport.abort()
        await until(lambda: connection._transport._ssl_protocol._state.name == "FLUSHING")
        gate.set()
        await until(lambda: not connection._writer.slots)
        return server

    return leave


async def test_close_ends_although_a_peer_has_left_before_its_response(leave_early) -> None:
    """A refused login, for example, is answered late: the peer may have gone."""
    server = await leave_early()
    async with asyncio.timeout(10):
        await server.close(grace_ms=1)

    assert server.connection_count == 0


async def test_a_peer_that_has_left_before_its_response_is_forgotten(leave_early, caplog) -> None:
    """Its connection does not count until the server is closed."""
    caplog.set_level("INFO")
    server = await leave_early(frame_timeout_ms=40)
    await until(lambda: server.connection_count == 0)

    reasons = [record.reason for record in caplog.records if record.message == "Closed connection"]
    assert reasons == ["the connection was not closed by the peer within 40 ms"]
