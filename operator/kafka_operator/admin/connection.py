"""Requests of one Admin call, which share its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kafka_operator.admin.requests import Request, codes_of_metadata, metadata_request
from kafka_wire import ApiKey, Body, codec
from kafka_wire.columns.metadata_decoder import MetadataColumns, decode_metadata
from kafka_wire.net.cluster import METADATA_VERSIONS, ClusterClient
from kafka_wire.net.connection import BodyDecoder
from kafka_wire.net.negotiation import VersionRange

OPERATION_TIMEOUT_MS = 8_000
"""Time limit of an operation on the controller before it answers REQUEST_TIMED_OUT."""

MAX_BYTES_IN_LOOP = 64 * 1024
"""A larger response is decoded by a thread: it takes more than some ten milliseconds, and 200,000 partitions take two seconds."""

MAX_VERSION = 0x7FFF
"""No upper limit: versions are int16."""

VERSIONS: Mapping[ApiKey, VersionRange] = {
    ApiKey.METADATA: METADATA_VERSIONS,
    ApiKey.DELETE_TOPICS: (1, 5),
    ApiKey.DESCRIBE_CONFIGS: (1, MAX_VERSION),
    ApiKey.DESCRIBE_LOG_DIRS: (1, MAX_VERSION),
    ApiKey.ELECT_LEADERS: (1, MAX_VERSION),
    ApiKey.FIND_COORDINATOR: (1, 3),
    ApiKey.LIST_OFFSETS: (1, MAX_VERSION),
    ApiKey.OFFSET_FETCH: (2, 7),
}
"""Versions with the fields that are written and read here, where these are not all; every broker from Kafka 2.4 on has one of them."""

T = TypeVar("T")


class Connection:
    """A cluster, for one Admin call that ends at `deadline` (loop time in s). All requests raise RequestFailed."""

    def __init__(self, client: ClusterClient, deadline: float) -> None:
        self._client = client
        self._deadline = deadline

    async def to_any(self, request: Request) -> Body:
        """Send a request to some broker and return the answer."""
        return await self.to_node(request, None)

    async def to_node(self, request: Request, node_id: int | None) -> Body:
        """Send a request to one broker, or (None) to some broker, and return the answer."""
        decode, versions = decoder(request.key), VERSIONS.get(request.key)
        return await self._client.call(*request, decode, broker_id=node_id, deadline=self._deadline, versions=versions)

    async def to_controller(self, request: Request, codes_of: Callable[[Body], Iterable[int]]) -> Body:
        """Send a request to the controller and return the answer."""
        return await self._to_controller(request, decoder(request.key), codes_of)

    async def cluster(self) -> MetadataColumns:
        """Return brokers and controller from some broker's Metadata."""
        return await self._client.metadata(deadline=self._deadline, topics=[])

    async def topics(self, names: Iterable[str] | None) -> Body:
        """Return the controller's Metadata of topics by name, or (None) of all; NoController for a response without nodes."""
        request = metadata_request(None if names is None else list(names))
        return await self.to_controller(request, codes_of_metadata)

    async def all_partitions(self) -> MetadataColumns:
        """Return the controller's Metadata of all topics as columns; NoController for a response without nodes."""

        async def decode(version: int, frame: bytes) -> MetadataColumns:
            return await asyncio.to_thread(decode_metadata, version, frame)

        return await self._to_controller(metadata_request(None), decode, _codes_of_columns)

    async def _to_controller(
        self, request: Request, decode: BodyDecoder[T], codes_of: Callable[[T], Iterable[int]]
    ) -> T:
        return await self._client.call_controller(
            *request, decode, codes_of, deadline=self._deadline, versions=VERSIONS.get(request.key)
        )


def decoder(key: ApiKey) -> BodyDecoder[Body]:
    """Return the decoder of an API's responses; large ones do not block the event loop."""

    async def decode(version: int, frame: bytes) -> Body:
        if len(frame) <= MAX_BYTES_IN_LOOP:
            return codec.decode_response(key, version, frame)[1]
        return (await asyncio.to_thread(codec.decode_response, key, version, frame))[1]

    return decode


def _codes_of_columns(found: MetadataColumns) -> tuple[int, ...]:
    return codes_of_metadata({"error_code": found.error_code, "brokers": found.brokers})
