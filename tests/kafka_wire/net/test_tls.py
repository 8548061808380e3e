"""TLS on both sides, verified unless the caller's context disables it."""

import asyncio
import ssl

import pytest

from kafka_wire.net.client import Connection, ConnectionFailed
from tests.kafka_wire.net.peers import request, response


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
