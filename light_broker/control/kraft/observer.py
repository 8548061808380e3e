"""Fetch loop of an observer of the metadata log: it finds the leader, and keeps a FollowedLog up to date.

    Fetch ──► batches, high watermark, or a snapshot's id ──► FetchSnapshot … ──► FollowedLog ──► on_change

An error of a controller or of a connection is retried without end, with a pause; the first one of a series is logged. Records that cannot
be applied end the loop: the broker would act on another state than the cluster's. Source: KafkaRaftClient of Kafka, as observer.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from kafka_log.format.names import CLUSTER_METADATA_TOPIC
from kafka_node.security.endpoints import Address
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.codec import CodecError
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.connection import body_decoder
from light_broker.control.kraft.controllers import Controllers
from light_broker.control.kraft.followed_log import FollowedLog
from light_broker.control.port import ControlPlaneError

log = logging.getLogger(__name__)

TOPIC_ID = UUID(int=1)
"""Id of `__cluster_metadata` (Uuid.METADATA_TOPIC_ID)."""
PARTITION = 0
FETCH_VERSIONS, FETCH_SNAPSHOT_VERSIONS = (13, 18), (0, 1)
"""Fetch with topic ids; controllers of Kafka 3.3 have them."""
REPLICA_STATE_FROM = 15
"""Version of Fetch from which the replica's id is in ReplicaState (KIP-903)."""
MAX_WAIT_MS = 500
"""Time that a leader without new records waits before it answers (KafkaRaftClient.MAX_FETCH_WAIT_MS)."""
MAX_SNAPSHOT_BYTES = 1024 * 1024 * 1024
"""Largest snapshot: that of 100,000 partitions has 12 MiB."""
NO_POSITION = -1
STOPS = {ErrorCode.INCONSISTENT_CLUSTER_ID, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.INVALID_REQUEST}
"""Errors that do not end by themselves. They are logged as errors and retried, since an administrator can fix them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who fetches, and how."""

    cluster_id: str
    broker_id: int
    directory_id: Callable[[], UUID]
    request_timeout_ms: int
    retry_backoff_ms: int
    fetch_max_bytes: int
    fetch_snapshot_max_bytes: int


class Observer:
    """`run` follows the log until it is cancelled. `on_change` is awaited after committed records were applied."""

    def __init__(
        self, controllers: Controllers, followed: FollowedLog, reader: Reader, on_change: Callable[[], Awaitable[None]]
    ) -> None:
        self._controllers = controllers
        self._log = followed
        self._reader = reader
        self._on_change = on_change
        self.failure = "no controller has answered yet"
        """Why the last fetch failed, for messages."""
        self._is_failing = False

    async def run(self) -> None:
        """Follow the log. Raises MetadataError and WireError for records that cannot be applied."""
        while True:
            address = self._controllers.next_address()
            try:
                answer = await self._request(address, ApiKey.FETCH, self._fetch, FETCH_VERSIONS, wait_ms=MAX_WAIT_MS)
            except (RequestFailed, CodecError) as failure:
                await self._failed(address, str(failure))
                continue
            error = ErrorCode.of(answer["error_code"])
            if error is not ErrorCode.NONE:
                await self._failed(address, f"{address} answered {error.name}: {error.message}", error)
            else:
                await self._take(address, answer)

    async def _request(
        self,
        address: Address,
        key: ApiKey,
        make: Callable[[int], Body],
        versions: tuple[int, int],
        *,
        wait_ms: int = 0,
    ) -> Body:
        async def encode(version: int) -> Body:
            return make(version)

        timeout_ms = self._reader.request_timeout_ms + wait_ms
        node = self._controllers.node(address)
        return await node.request(key, encode, body_decoder(key), versions=versions, timeout_ms=timeout_ms)

    async def _failed(self, address: Address, reason: str, error: ErrorCode | None = None) -> None:
        self.failure = reason
        level = logging.DEBUG if self._is_failing else logging.ERROR if error in STOPS else logging.WARNING
        log.log(level, "Fetch from a controller failed; retrying", extra={"peer": str(address), "error": reason})
        self._is_failing = True
        self._controllers.lost(address)
        await asyncio.sleep(self._reader.retry_backoff_ms / 1000)

    # Fetch

    def _fetch(self, version: int) -> Body:
        end_offset, epoch = self._log.end
        partition = {
            "partition": PARTITION,
            "current_leader_epoch": self._controllers.epoch,
            "fetch_offset": end_offset,
            "last_fetched_epoch": epoch,
            "replica_directory_id": self._reader.directory_id(),
        }
        replica: Body = {"replica_id": self._reader.broker_id}
        return {
            "cluster_id": self._reader.cluster_id,
            **({"replica_state": replica} if version >= REPLICA_STATE_FROM else replica),
            "max_wait_ms": MAX_WAIT_MS,
            "max_bytes": self._reader.fetch_max_bytes,
            "topics": [{"topic": CLUSTER_METADATA_TOPIC, "topic_id": TOPIC_ID, "partitions": [partition]}],
        }

    async def _take(self, address: Address, answer: Body) -> None:
        partition = _only_partition(answer["responses"])
        if partition is None:
            await self._failed(address, f"{address} answered without the metadata log.")
            return
        error = ErrorCode.of(partition["error_code"])
        self._learn(partition["current_leader"], answer)
        if error is not ErrorCode.NONE:
            await self._not_led(address, error)
            return
        self._is_failing = False
        self._controllers.answered(address)
        if (snapshot := partition["snapshot_id"])["end_offset"] >= 0:
            await self._load(address, snapshot)
            return
        if (diverging := partition["diverging_epoch"])["end_offset"] >= 0:
            self._log.truncate(diverging["end_offset"])
            return
        self._log.append(bytes(partition["records"] or b""))
        before = self._log.applied
        for _ in self._log.commit(partition["high_watermark"]):
            await asyncio.sleep(0)
        if self._log.applied is not before or self._log.is_caught_up:
            await self._on_change()

    async def _not_led(self, address: Address, error: ErrorCode) -> None:
        """Go to the leader that was named; without one, wait before another controller is asked."""
        self.failure = f"{address} answered {error.name}"
        leader = self._controllers.leader
        if leader is None or leader == address:
            if error is not ErrorCode.FENCED_LEADER_EPOCH:
                self._controllers.lost(address)
            await asyncio.sleep(self._reader.retry_backoff_ms / 1000)

    def _learn(self, known: Body, answer: Body) -> None:
        leader_id = known["leader_id"]
        endpoints = [endpoint for endpoint in answer.get("node_endpoints", ()) if endpoint["node_id"] == leader_id]
        address = Address(endpoints[0]["host"], endpoints[0]["port"]) if endpoints else None
        self._controllers.learn(known["leader_epoch"], leader_id, address)

    # FetchSnapshot

    async def _load(self, address: Address, snapshot: Body) -> None:
        """Read a snapshot, in as many requests as it needs, and load it. After an error the log is fetched again."""
        data = bytearray()
        while True:
            try:
                answer = await self._request(
                    address,
                    ApiKey.FETCH_SNAPSHOT,
                    partial(self._fetch_snapshot, snapshot, len(data)),
                    FETCH_SNAPSHOT_VERSIONS,
                )
            except (RequestFailed, CodecError) as failure:
                await self._failed(address, str(failure))
                return
            partition = _only_partition(answer["topics"])
            error = ErrorCode.of(answer["error_code"] or (partition or {}).get("error_code", ErrorCode.NONE))
            if partition is None or error is not ErrorCode.NONE or partition["position"] != len(data):
                await self._failed(address, f"{address} answered {error.name} to FetchSnapshot")
                return
            data += partition["unaligned_records"] or b""
            if partition["size"] > MAX_SNAPSHOT_BYTES:
                raise ControlPlaneError(
                    ErrorCode.UNKNOWN_SERVER_ERROR,
                    f"The metadata snapshot has {partition['size']} bytes; at most {MAX_SNAPSHOT_BYTES} are read.",
                )
            if len(data) >= partition["size"]:
                break
        for _ in self._log.load(bytes(data), snapshot["end_offset"], snapshot["epoch"]):
            await asyncio.sleep(0)
        extra = {"offset": snapshot["end_offset"], "size_bytes": len(data)}
        log.info("Loaded a snapshot of the metadata", extra=extra)

    def _fetch_snapshot(self, snapshot: Body, position: int, _version: int) -> Body:
        partition = {
            "partition": PARTITION,
            "current_leader_epoch": self._controllers.epoch,
            "snapshot_id": {"end_offset": snapshot["end_offset"], "epoch": snapshot["epoch"]},
            "position": position,
            "replica_directory_id": self._reader.directory_id(),
        }
        return {
            "cluster_id": self._reader.cluster_id,
            "replica_id": self._reader.broker_id,
            "max_bytes": self._reader.fetch_snapshot_max_bytes,
            "topics": [{"name": CLUSTER_METADATA_TOPIC, "partitions": [partition]}],
        }


def _only_partition(topics: list[Body]) -> Body | None:
    """Return the metadata log's part of a response; None without it, as of a node that has another topic."""
    partitions = [partition for topic in topics for partition in topic["partitions"]]
    return partitions[0] if len(partitions) == 1 else None
