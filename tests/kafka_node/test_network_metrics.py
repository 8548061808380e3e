"""Metrics of listeners: Kafka's names, with the values of the servers at the time of the scrape."""

import asyncio

from prometheus_client import CollectorRegistry

from kafka_node.network_metrics import NetworkMetrics
from kafka_wire.net.server import ConnectionQuotas, Peer, RequestChannel, ServerLimits, serve
from tests.waiting import until

PROCESS = {
    "kafka_network_requestchannel_requestqueuesize",
    "kafka_network_socketserver_memorypoolused",
    "kafka_network_socketserver_memorypoolavailable",
    "kafka_network_socketserver_expiredconnectionskilledcount",
    "kafka_server_socket_server_metrics_broker_connection_accept_rate",
}
LISTENER = {
    "kafka_server_socket_server_metrics_connection_count",
    "kafka_server_socket_server_metrics_connection_accept_rate",
    "kafka_server_socket_server_metrics_connection_accept_throttle_time_seconds",
    "kafka_server_socket_server_metrics_connections_throttled",
    "kafka_server_socket_server_metrics_connections_rejected",
    "kafka_network_acceptor_acceptorblocked_seconds",
}


async def test_metrics_have_kafkas_names_and_the_current_values() -> None:
    """A connection that waits for a Produce request, and one that is rejected (SocketServer, RequestChannel, ConnectionQuotas)."""
    gate = asyncio.Event()

    async def wait(_peer: Peer, frame: bytes) -> bytes:
        await gate.wait()
        return frame[4:8]

    channel, quotas = RequestChannel(max_bytes=1_000), ConnectionQuotas(max_per_address=1)
    server = await serve(wait, "127.0.0.1", 0, limits=ServerLimits(), channel=channel, quotas=quotas)
    registry = CollectorRegistry()
    registry.register(NetworkMetrics({"INTERNAL": server}, channel, quotas))
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write((100).to_bytes(4, "big") + bytes(100))
    await until(lambda: channel.used_bytes == 104)
    rejected, closing = await asyncio.open_connection("127.0.0.1", server.port)
    assert await rejected.read() == b""

    assert {family.name for family in registry.collect()} == PROCESS | LISTENER
    listener = {"listener": "INTERNAL"}
    prefix = "kafka_server_socket_server_metrics_connection"
    assert registry.get_sample_value("kafka_network_socketserver_memorypoolused") == 104
    assert registry.get_sample_value("kafka_network_socketserver_memorypoolavailable") == 896
    assert registry.get_sample_value(f"{prefix}_count", listener) == 1
    assert registry.get_sample_value(f"{prefix}s_rejected_total", listener) == 1
    gate.set()
    writer.close()
    closing.close()
    await server.close(grace_ms=1_000)
