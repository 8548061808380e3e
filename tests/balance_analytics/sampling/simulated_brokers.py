"""Simulated brokers for tests of the sampler: sockets that answer from one description of a cluster, and can be stopped, silent or wrong.

They support the request versions of Kafka 3.9, and only requests of the sampler.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.cluster import Address
from kafka_wire.net.server import Peer, Server, serve

SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 12),
    ApiKey.LIST_OFFSETS: (0, 9),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.OFFSET_FETCH: (0, 9),
    ApiKey.CREATE_TOPICS: (0, 7),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.PRODUCE: (0, 11),
    ApiKey.FETCH: (0, 16),
}


@dataclass
class PartitionState:
    """State of one partition."""

    leader: int
    replicas: list[int]
    start: int = 0
    end: int = 0
    size: int = 0
    leader_epoch: int = 3


Answer = Callable[[ApiKey, int, Body], Body | bytes | None]
"""Takes key, version and body of a request; returns the response's body, bytes of a whole frame, or None for the usual response."""


@dataclass
class SimulatedCluster:
    """State of a cluster, and its brokers by id."""

    topics: dict[str, list[PartitionState]]
    cluster_id: str = "simulated"
    groups: dict[str, dict[tuple[str, int], int]] = field(default_factory=dict)
    """Committed offsets of each group; the lowest broker coordinates all."""
    configs: dict[str, dict[str, str]] = field(default_factory=dict)
    servers: dict[int, Server] = field(default_factory=dict)
    ports: dict[int, int] = field(default_factory=dict)
    requests: list[tuple[int, ApiKey, Body]] = field(default_factory=list)
    produced: list[tuple[str, int, bytes]] = field(default_factory=list)
    instead: dict[int, Answer] = field(default_factory=dict)
    """By broker, a function that replaces responses."""
    silent: set[int] = field(default_factory=set)
    """Brokers that accept requests and never respond."""
    released: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first request."""

    def bootstrap(self) -> list[Address]:
        """The first broker's address."""
        return [Address("127.0.0.1", self.ports[min(self.ports)])]

    async def stop(self, broker_id: int) -> None:
        """Stop a broker; it remains in the metadata."""
        await self.servers.pop(broker_id).close(grace_ms=1)

    async def handle(self, broker_id: int, frame: bytes) -> bytes | None:
        """Respond to one request to a broker."""
        header, body = codec.decode_request(frame)
        key = ApiKey(header.api_key)
        self.requests.append((broker_id, key, body))
        self.reached.set()
        if broker_id in self.silent:
            await self.released.wait()
        answer: Body | bytes | None = None
        if broker_id in self.instead:
            answer = self.instead[broker_id](key, header.api_version, body)
        if isinstance(answer, bytes):
            return header.correlation_id.to_bytes(4, "big") + answer[4:]
        if answer is None:
            answer = self.usual_response(broker_id, key, body)
        return codec.encode_response(key, header.api_version, header.correlation_id, answer)

    def usual_response(self, broker_id: int, key: ApiKey, body: Body) -> Body:
        """The response of a working broker."""
        usual: dict[ApiKey, Callable[[], Body]] = {
            ApiKey.API_VERSIONS: lambda: {
                "api_keys": [
                    {"api_key": key, "min_version": low, "max_version": high} for key, (low, high) in SERVED.items()
                ]
            },
            ApiKey.METADATA: lambda: self.metadata(body),
            ApiKey.LIST_OFFSETS: lambda: self.offsets(broker_id, body),
            ApiKey.DESCRIBE_LOG_DIRS: lambda: self.log_dirs(broker_id),
            ApiKey.LIST_GROUPS: lambda: self.list_groups(broker_id),
            ApiKey.OFFSET_FETCH: lambda: self.committed(body),
            ApiKey.CREATE_TOPICS: lambda: self.create(body),
            ApiKey.DESCRIBE_CONFIGS: lambda: self.describe_configs(body),
            ApiKey.PRODUCE: lambda: self.produce(broker_id, body),
        }
        return usual[key]()

    def metadata(self, body: Body) -> Body:
        """Topics and partitions in reverse order, as Kafka's order is undefined."""
        named = None if body["topics"] is None else [topic["name"] for topic in body["topics"]]
        topics: list[Body] = [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "leader_id": partition.leader,
                        "leader_epoch": partition.leader_epoch,
                        "replica_nodes": partition.replicas,
                        "isr_nodes": partition.replicas,
                    }
                    for index, partition in reversed(list(enumerate(partitions)))
                ],
            }
            for name, partitions in reversed(self.topics.items())
            if named is None or name in named
        ]
        missing = [name for name in named or [] if name not in self.topics]
        topics += [{"name": name, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION} for name in missing]
        brokers = [{"node_id": broker_id, "host": "127.0.0.1", "port": port} for broker_id, port in self.ports.items()]
        return {"brokers": brokers, "cluster_id": self.cluster_id, "controller_id": min(self.ports), "topics": topics}

    def offsets(self, broker_id: int, body: Body) -> Body:
        """Offsets of led partitions, errors for others."""

        def partition(topic: str, requested: Body) -> Body:
            index = requested["partition_index"]
            states = self.topics.get(topic, [])
            if index >= len(states):
                return {"partition_index": index, "error_code": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            state = states[index]
            if state.leader != broker_id:
                return {"partition_index": index, "error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER}
            return {"partition_index": index, "offset": state.end if requested["timestamp"] == -1 else state.start}

        return {
            "topics": [
                {"name": topic["name"], "partitions": [partition(topic["name"], each) for each in topic["partitions"]]}
                for topic in body["topics"]
            ]
        }

    def log_dirs(self, broker_id: int) -> Body:
        """All replicas of a broker, in one log directory."""
        topics = [
            {
                "name": name,
                "partitions": [
                    {"partition_index": index, "partition_size": partition.size + broker_id}
                    for index, partition in enumerate(partitions)
                    if broker_id in partition.replicas
                ],
            }
            for name, partitions in self.topics.items()
        ]
        return {"results": [{"log_dir": "/data", "topics": [topic for topic in topics if topic["partitions"]]}]}

    def list_groups(self, broker_id: int) -> Body:
        """All groups, if this is the broker with the lowest id."""
        names = self.groups if broker_id == min(self.ports) else {}
        return {"groups": [{"group_id": name, "protocol_type": "consumer"} for name in names]}

    def committed(self, body: Body) -> Body:
        """All committed offsets of each requested group."""
        groups = []
        for requested in body["groups"]:
            offsets = self.groups[requested["group_id"]]
            topics = [
                {
                    "name": name,
                    "partitions": [
                        {"partition_index": index, "committed_offset": offset, "metadata": ""}
                        for (topic, index), offset in offsets.items()
                        if topic == name
                    ],
                }
                for name in dict.fromkeys(topic for topic, _ in offsets)
            ]
            groups.append({"group_id": requested["group_id"], "topics": topics})
        return {"groups": groups}

    def create(self, body: Body) -> Body:
        """Create topics; their replicas are on the first brokers."""
        results = []
        for requested in body["topics"]:
            name = requested["name"]
            error = ErrorCode.TOPIC_ALREADY_EXISTS if name in self.topics else ErrorCode.NONE
            if not error:
                replicas = sorted(self.ports)[: requested["replication_factor"]]
                self.topics[name] = [PartitionState(replicas[0], replicas) for _ in range(requested["num_partitions"])]
                self.configs[name] = {config["name"]: config["value"] for config in requested["configs"]}
            results.append({"name": name, "error_code": error, "error_message": None})
        return {"topics": results}

    def describe_configs(self, body: Body) -> Body:
        """The configs with which topics were created."""
        return {
            "results": [
                {
                    "resource_type": resource["resource_type"],
                    "resource_name": resource["resource_name"],
                    "configs": [
                        {"name": name, "value": value}
                        for name, value in self.configs.get(resource["resource_name"], {}).items()
                    ],
                }
                for resource in body["resources"]
            ]
        }

    def produce(self, broker_id: int, body: Body) -> Body:
        """Store batches if this broker is the leader."""
        responses = []
        for topic in body["topic_data"]:
            partitions: list[dict[str, Any]] = []
            for partition in topic["partition_data"]:
                state = self.topics[topic["name"]][partition["index"]]
                error = ErrorCode.NONE if state.leader == broker_id else ErrorCode.NOT_LEADER_OR_FOLLOWER
                if not error:
                    self.produced.append((topic["name"], partition["index"], bytes(partition["records"])))
                partitions.append({"index": partition["index"], "error_code": error, "base_offset": 0})
            responses.append({"name": topic["name"], "partition_responses": partitions})
        return {"responses": responses}


@contextlib.asynccontextmanager
async def running(cluster: SimulatedCluster, broker_ids: Sequence[int] = (1, 2, 3)) -> AsyncIterator[SimulatedCluster]:
    """Serve a cluster's brokers, each on its own port."""

    def handler(broker_id: int) -> Callable[[Peer, bytes], Any]:
        async def handle(_: Peer, frame: bytes) -> bytes | None:
            return await cluster.handle(broker_id, bytes(frame))

        return handle

    try:
        for broker_id in broker_ids:
            cluster.servers[broker_id] = await serve(handler(broker_id), "127.0.0.1", 0)
            cluster.ports[broker_id] = cluster.servers[broker_id].port
        yield cluster
    finally:
        cluster.released.set()
        for server in cluster.servers.values():
            await server.close(grace_ms=1)


def two_topics() -> dict[str, list[PartitionState]]:
    """`orders` with four partitions and `payments` with two, on three brokers."""
    orders = [PartitionState(1 + at % 3, [1 + at % 3, 1 + (at + 1) % 3], at, 100 + at, 1_000 * at) for at in range(4)]
    return {
        "orders": orders,
        "payments": [PartitionState(1, [1, 2, 3], 0, 7, 70), PartitionState(2, [2, 3, 1], 5, 5, 0)],
    }
