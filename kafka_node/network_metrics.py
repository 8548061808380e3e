"""Metrics of the listeners of a process, with Kafka's names in the form of Prometheus' exporter of JMX, read at each scrape.

Times are totals in seconds, from which a rate follows; Kafka has percentages over a minute. Source: Kafka's SocketServer, RequestChannel,
ConnectionQuotas.
"""

import time
from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kafka_wire.net.server import ConnectionQuotas, RequestChannel, Server

NETWORK = "kafka_network"
SOCKET_SERVER = "kafka_server_socket_server_metrics"

Gauges = dict[str, tuple[str, float]]


class NetworkMetrics(Collector):
    """Collector of servers by the names of their listeners. The mapping may change."""

    def __init__(self, servers: Mapping[str, Server], channel: RequestChannel, quotas: ConnectionQuotas) -> None:
        self._servers = servers
        self._channel = channel
        self._quotas = quotas

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the process, then those of each listener."""
        now_s = time.monotonic()
        for name, (text, value) in self._of_process(now_s).items():
            yield GaugeMetricFamily(name, text, value)
        expired = sum(server.expired_connections for server in self._servers.values())
        text = "Connections that were closed because they were idle."
        yield CounterMetricFamily(f"{NETWORK}_socketserver_expiredconnectionskilledcount", text, expired)
        for name, (text, values) in self._of_listeners(now_s).items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            family = kind(name, text, labels=["listener"])
            for listener, value in values.items():
                family.add_metric([listener], value)
            yield family

    def _of_process(self, now_s: float) -> Gauges:
        channel = self._channel
        gauges: Gauges = {
            f"{NETWORK}_requestchannel_requestqueuesize": (
                "Requests whose handlers have not started.",
                channel.queued_requests,
            ),
            f"{NETWORK}_socketserver_memorypoolused": ("Bytes of queued and of Produce requests.", channel.used_bytes),
            f"{SOCKET_SERVER}_broker_connection_accept_rate": (
                "Connections accepted per second.",
                self._quotas.creation_rate.rate(now_s),
            ),
        }
        if channel.available_bytes is not None:
            text = "Bytes of requests up to queued.max.request.bytes."
            gauges[f"{NETWORK}_socketserver_memorypoolavailable"] = (text, channel.available_bytes)
        return gauges

    def _of_listeners(self, now_s: float) -> dict[str, tuple[str, dict[str, float]]]:
        servers = self._servers.items()
        doors = {listener: server.admission for listener, server in servers}
        return {
            f"{SOCKET_SERVER}_connection_count": (
                "Open connections.",
                {listener: server.connection_count for listener, server in servers},
            ),
            f"{SOCKET_SERVER}_connection_accept_rate": (
                "Connections accepted per second.",
                {listener: door.creation_rate.rate(now_s) for listener, door in doors.items()},
            ),
            f"{SOCKET_SERVER}_connection_accept_throttle_time_seconds_total": (
                "Sum of the times that connections waited because of a limit of created connections.",
                {listener: door.throttled_s for listener, door in doors.items()},
            ),
            f"{SOCKET_SERVER}_connections_throttled_total": (
                "Connections that waited because of a limit of created connections.",
                {listener: door.throttled for listener, door in doors.items()},
            ),
            f"{SOCKET_SERVER}_connections_rejected_total": (
                "Connections that were closed because of a limit of connections.",
                {listener: door.rejected for listener, door in doors.items()},
            ),
            f"{NETWORK}_acceptor_acceptorblocked_seconds_total": (
                "Time in which no connection was accepted because of a limit of created connections.",
                {listener: server.blocked_s for listener, server in servers},
            ),
        }
