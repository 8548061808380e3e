"""Brokers that are sockets: they register, receive a controller's requests, answer without errors and record the times.

A real broker creates logs, which takes far longer than a controller's work: with these brokers, the controller is measured. They answer
both controllers at once and do nothing else with a request.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from kazoo.client import KazooClient

from bench.zookeeper_mode.leader_and_isr_frames import partitions_in, taken
from kafka_wire import ApiKey, codec
from kafka_wire.net.server import Peer, Server, serve
from kafka_zookeeper import paths
from kafka_zookeeper.formats.brokers import BrokerRegistration, Endpoint, encode_broker
from lab.peers.kafka import CLIENT, INTERNAL
from lab.processes.loop_thread import LoopThread

SETTINGS = {
    "reserved.broker.max.id": "1000",
    "num.partitions": "1",
    "default.replication.factor": "3",
    "delete.topic.enable": "true",
}
"""A request of the Steward controller to a broker (DescribeConfigs)."""
API_VERSIONS = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.LEADER_AND_ISR: (0, 7),
    ApiKey.STOP_REPLICA: (0, 4),
    ApiKey.UPDATE_METADATA: (0, 8),
    ApiKey.DESCRIBE_CONFIGS: (1, 4),
}


@dataclass
class SocketBroker:
    """One broker: the LeaderAndIsr requests that it received, with the times."""

    broker_id: int
    server: Server | None = None
    received: list[tuple[float, bytes]] = field(default_factory=list)
    _counted: list[int] = field(default_factory=list)

    async def handle(self, _: Peer, frame: bytes) -> bytes:
        """Receive a request and answer it."""
        header = codec.peek_header(frame)
        key = ApiKey(header.api_key)
        if key is ApiKey.LEADER_AND_ISR:
            self.received.append((time.time(), frame))
            return taken(frame)
        return codec.encode_response(key, header.api_version, header.correlation_id, self._answer(key))

    def _answer(self, key: ApiKey) -> codec.Body:
        if key is ApiKey.API_VERSIONS:
            served = ((key, low, high) for key, (low, high) in API_VERSIONS.items())
            return {
                "api_keys": [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in served]
            }
        if key is ApiKey.DESCRIBE_CONFIGS:
            configs = [{"name": name, "value": value} for name, value in SETTINGS.items()]
            return {"results": [{"resource_type": 4, "resource_name": str(self.broker_id), "configs": configs}]}
        return {}

    def partitions_received(self) -> int:
        """Return the number of partitions that it received since the mark; each request is read once."""
        for _, frame in self.received[len(self._counted) :]:
            self._counted.append(partitions_in(frame))
        return sum(self._counted)

    def mark(self) -> None:
        """Forget the received requests."""
        self.received.clear()
        self._counted.clear()


class SocketBrokers:
    """All brokers, in a separate thread; they are registered while the client's session lasts."""

    def __init__(self, broker_ids: Sequence[int], client: KazooClient, chroot: str) -> None:
        self.brokers = [SocketBroker(broker_id) for broker_id in broker_ids]
        self._client, self._chroot = client, chroot
        self._thread = LoopThread("socket brokers")

    def start(self) -> None:
        """Listen and register."""
        self._thread.start()
        for broker in self.brokers:
            broker.server = self._thread.wait(serve(broker.handle, "127.0.0.1", 0))
            ports = {INTERNAL: broker.server.port, CLIENT: broker.server.port}
            endpoints = tuple(Endpoint(name, "127.0.0.1", port, "PLAINTEXT") for name, port in ports.items())
            document = encode_broker(BrokerRegistration(broker.broker_id, endpoints))
            self._client.create(f"{self._chroot}{paths.broker(broker.broker_id)}", document, ephemeral=True)

    def mark(self) -> None:
        """Forget the received requests."""
        for broker in self.brokers:
            broker.mark()

    def last_request_s(self) -> float:
        """Time of the last LeaderAndIsr request to any of them; 0 without one."""
        return max((at_s for broker in self.brokers for at_s, _ in list(broker.received)), default=0.0)

    def partitions_received(self) -> int:
        """Return the number of partitions that they received since the mark."""
        return sum(broker.partitions_received() for broker in self.brokers)

    def close(self) -> None:
        """Stop listening."""
        for broker in self.brokers:
            if broker.server is not None:
                self._thread.wait(broker.server.close(grace_ms=1))
        self._thread.close()
