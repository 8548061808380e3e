"""Simulated brokers that answer a sampler's requests about a cluster of any size, from precomputed bytes.

The sampler is measured: an answer costs the broker a dictionary access. An offsets request is answered from the broker's partitions the
first time, and from memory when it is repeated. The brokers have the API versions of Kafka 3.9 and do nothing else; there is no ZooKeeper.
"""

from balance_analytics.model.sample_rows import SAMPLES_TOPIC
from kafka_wire import ApiKey, codec
from kafka_wire.net.server import Peer, Server, serve
from lab.processes.loop_thread import LoopThread

REPLICATION_FACTOR = 3
SAMPLES_PARTITIONS = 6
SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.METADATA: (0, 12),
    ApiKey.LIST_OFFSETS: (0, 9),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.OFFSET_FETCH: (0, 9),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.PRODUCE: (0, 11),
}
_CORRELATION = slice(4, 8)


class AnsweringBrokers:
    """A number of brokers that hold a number of partitions, in a separate thread."""

    def __init__(self, brokers: int, topics: int, partitions: int) -> None:
        self.brokers, self.topics, self.partitions = brokers, topics, partitions
        self.taken_bytes = 0
        """Bytes of record batches that were produced to the brokers."""
        self._ports: list[int] = []
        self._servers: list[Server] = []
        self._answers: dict[tuple[int, bytes], bytes] = {}
        self._all: list[codec.Body] = []
        self._sizes: list[codec.Body] = []
        self._thread = LoopThread("answering brokers")

    @property
    def bootstrap(self) -> str:
        """Address of the first broker."""
        return f"127.0.0.1:{self._ports[0]}"

    def start(self) -> None:
        """Listen, and precompute the large answers."""
        self._thread.start()
        for broker_id in range(self.brokers):

            async def handle(_: Peer, frame: bytes, broker_id: int = broker_id) -> bytes:
                return self._handle(broker_id, bytes(frame))

            self._servers.append(self._thread.wait(serve(handle, "127.0.0.1", 0)))
            self._ports.append(self._servers[-1].port)
        self._sizes = [self._log_dirs(broker_id) for broker_id in range(self.brokers)]
        self._all = self._topics(None)

    def close(self) -> None:
        """Stop listening."""
        for server in self._servers:
            self._thread.wait(server.close(grace_ms=1))
        self._thread.close()

    def _handle(self, broker_id: int, frame: bytes) -> bytes:
        header = codec.peek_header(frame)
        key = ApiKey(header.api_key)
        if key is ApiKey.PRODUCE:
            return codec.encode_response(key, header.api_version, header.correlation_id, self._produce(frame))
        # Repeated requests have equal bytes except for the correlation id.
        question = (broker_id, frame[: _CORRELATION.start] + frame[_CORRELATION.stop :])
        if question not in self._answers:
            body = self._answer(broker_id, key, codec.decode_request(frame)[1])
            self._answers[question] = codec.encode_response(key, header.api_version, 0, body)
        return header.correlation_id.to_bytes(4, "big") + self._answers[question][4:]

    def _answer(self, broker_id: int, key: ApiKey, asked: codec.Body) -> codec.Body:
        if key is ApiKey.API_VERSIONS:
            served = ((key, low, high) for key, (low, high) in SERVED.items())
            return {
                "api_keys": [{"api_key": key, "min_version": low, "max_version": high} for key, low, high in served]
            }
        if key is ApiKey.METADATA:
            return self._metadata(asked)
        if key is ApiKey.LIST_OFFSETS:
            return {"topics": [{"name": topic["name"], "partitions": _offsets(topic)} for topic in asked["topics"]]}
        if key is ApiKey.DESCRIBE_LOG_DIRS:
            return self._sizes[broker_id]
        return {}

    def _replicas(self, topic: int, partition: int) -> list[int]:
        first = topic + partition
        return [(first + step) % self.brokers for step in range(min(REPLICATION_FACTOR, self.brokers))]

    def _metadata(self, asked: codec.Body) -> codec.Body:
        topics = self._all if asked["topics"] is None else self._topics({topic["name"] for topic in asked["topics"]})
        brokers = [{"node_id": node, "host": "127.0.0.1", "port": port} for node, port in enumerate(self._ports)]
        return {"brokers": brokers, "cluster_id": "measured", "controller_id": 0, "topics": topics}

    def _topics(self, names: set[str] | None) -> list[codec.Body]:
        found = []
        for at, (name, partitions) in enumerate(self._layout()):
            if names is None or name in names:
                replicas = [self._replicas(at, partition) for partition in range(partitions)]
                rows = [
                    {
                        "partition_index": index,
                        "leader_id": ids[0],
                        "leader_epoch": 5,
                        "replica_nodes": ids,
                        "isr_nodes": ids,
                    }
                    for index, ids in enumerate(replicas)
                ]
                found.append({"name": name, "partitions": rows})
        return found

    def _layout(self) -> list[tuple[str, int]]:
        return [(f"topic-{at:05}", self.partitions) for at in range(self.topics)] + [
            (SAMPLES_TOPIC, SAMPLES_PARTITIONS)
        ]

    def _log_dirs(self, broker_id: int) -> codec.Body:
        topics = []
        for at, (name, partitions) in enumerate(self._layout()):
            held = [partition for partition in range(partitions) if broker_id in self._replicas(at, partition)]
            topics.append(
                {
                    "name": name,
                    "partitions": [
                        {"partition_index": partition, "partition_size": 10**9 + partition} for partition in held
                    ],
                }
            )
        return {"results": [{"log_dir": "/data", "topics": topics}]}

    def _produce(self, frame: bytes) -> codec.Body:
        responses = []
        for topic in codec.decode_request(frame)[1]["topic_data"]:
            self.taken_bytes += sum(len(partition["records"]) for partition in topic["partition_data"])
            partitions = [{"index": partition["index"], "base_offset": 0} for partition in topic["partition_data"]]
            responses.append({"name": topic["name"], "partition_responses": partitions})
        return {"responses": responses}


def _offsets(topic: codec.Body) -> list[codec.Body]:
    return [
        {"partition_index": partition["partition_index"], "offset": 10_000_000_000 + partition["partition_index"]}
        for partition in topic["partitions"]
    ]
