"""Calls use the highest common version, and request the peer's versions once per connection (KIP-35, KIP-511)."""

import asyncio

import pytest

from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.failures import CodecError
from kafka_wire.net import negotiation
from kafka_wire.net.client import ConnectionFailed, UnsupportedVersion
from kafka_wire.net.server import Peer
from tests.kafka_wire.net.fake_broker import FakeBroker, broker_with

HIGHEST = negotiation.highest_api_versions()


async def test_versions_are_requested_once_and_first(start_server, open_connection) -> None:
    """Also if many calls start at the same moment."""
    broker = broker_with(api_versions=(0, HIGHEST), describe_cluster=(0, 1))
    connection = await open_connection((await start_server(broker)).port)
    responses = await asyncio.gather(*(connection.call(ApiKey.DESCRIBE_CLUSTER, {}) for _ in range(3)))

    assert [response["cluster_id"] for response in responses] == ["version 1"] * 3
    assert broker.seen == [(ApiKey.API_VERSIONS, HIGHEST), *[(ApiKey.DESCRIBE_CLUSTER, 1)] * 3]


async def test_a_given_version_is_not_negotiated(start_server, open_connection) -> None:
    """The controller knows its versions from inter.broker.protocol.version."""
    broker = broker_with()
    connection = await open_connection((await start_server(broker)).port)
    await connection.call(ApiKey.DESCRIBE_CLUSTER, {}, version=0)

    assert broker.seen == [(ApiKey.DESCRIBE_CLUSTER, 0)]


@pytest.mark.parametrize("highest", range(HIGHEST))
async def test_negotiation_with_an_older_peer_continues_in_its_highest_version(
    highest, start_server, open_connection
) -> None:
    """KIP-511: the UNSUPPORTED_VERSION response has the format of version 0 and contains the versions of ApiVersions."""
    broker = broker_with(api_versions=(0, highest))
    connection = await open_connection((await start_server(broker)).port)
    await connection.call(ApiKey.DESCRIBE_CLUSTER, {})

    assert [version for key, version in broker.seen if key is ApiKey.API_VERSIONS] == [HIGHEST, highest]


async def test_negotiation_with_a_peer_before_kip_511_continues_in_version_0(start_server, open_connection) -> None:
    """Its UNSUPPORTED_VERSION response contains no versions."""
    broker = broker_with(api_versions=(0, 0))

    async def answer_without_apis(peer: Peer, frame: bytes) -> bytes:
        header = codec.peek_header(frame)
        if header.api_key == ApiKey.API_VERSIONS and header.api_version > 0:
            body = {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": []}
            return codec.encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, body)
        return await broker(peer, frame)

    connection = await open_connection((await start_server(answer_without_apis)).port)

    assert await connection.api_versions() == {ApiKey.API_VERSIONS: (0, 0), ApiKey.DESCRIBE_CLUSTER: (0, 1)}


async def test_no_common_version_fails_only_the_call(start_server, open_connection) -> None:
    """The request was not sent; the connection stays usable."""
    broker = broker_with(describe_cluster=(50, 60))
    connection = await open_connection((await start_server(broker)).port)
    with pytest.raises(UnsupportedVersion, match="supports DESCRIBE_CLUSTER 50 to 60"):
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {})
    with pytest.raises(UnsupportedVersion, match="does not support CREATE_TOPICS"):
        await connection.call(ApiKey.CREATE_TOPICS, {})

    assert not connection.closed


async def test_an_invalid_body_fails_only_the_call(start_server, open_connection) -> None:
    """Nothing was sent; the connection stays usable."""
    connection = await open_connection((await start_server(broker_with())).port)
    with pytest.raises(CodecError):
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {"no_such_field": 1}, version=0)

    assert not connection.closed


async def test_a_malformed_response_ends_the_connection(start_server, open_connection) -> None:
    """The next response of a peer that encodes wrongly cannot be trusted."""

    async def answer_malformed(_peer: Peer, frame: bytes) -> bytes:
        return frame[4:8] + b"\xff" * 9

    connection = await open_connection((await start_server(answer_malformed)).port)
    with pytest.raises(ConnectionFailed, match="malformed response to DESCRIBE_CLUSTER"):
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {}, version=0)

    assert connection.closed


async def test_after_rejected_negotiation_the_request_is_not_sent(start_server, open_connection) -> None:
    """For example with CLUSTER_AUTHORIZATION_FAILED."""
    broker = FakeBroker({ApiKey.API_VERSIONS: (0, HIGHEST)}, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    connection = await open_connection((await start_server(broker)).port)
    with pytest.raises(ConnectionFailed, match="rejected ApiVersions") as refused:
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {})

    assert not refused.value.sent


async def test_after_a_connection_loss_during_negotiation_the_request_is_not_sent(
    start_script, open_connection
) -> None:
    """Only ApiVersions was sent, which changes nothing."""

    async def leave(peer) -> None:
        await peer.read_frame()
        await peer.close()

    connection = await open_connection(await start_script(leave))
    with pytest.raises(ConnectionFailed) as failure:
        await connection.call(ApiKey.DESCRIBE_CLUSTER, {})

    assert not failure.value.sent


async def test_after_a_cancelled_negotiation_the_next_call_negotiates(start_server, open_connection) -> None:
    """The second call requests the versions."""
    broker, gate, arrived = broker_with(api_versions=(0, HIGHEST)), asyncio.Event(), asyncio.Event()

    async def hold(peer: Peer, frame: bytes) -> bytes:
        arrived.set()
        await gate.wait()
        return await broker(peer, frame)

    connection = await open_connection((await start_server(hold)).port)
    first = asyncio.ensure_future(connection.call(ApiKey.DESCRIBE_CLUSTER, {}))
    await arrived.wait()
    first.cancel()
    second = asyncio.ensure_future(connection.call(ApiKey.DESCRIBE_CLUSTER, {}))
    gate.set()

    assert (await second)["cluster_id"] == "version 1"
