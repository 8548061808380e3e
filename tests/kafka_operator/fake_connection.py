"""Connection of the Admin client with prepared responses, which the codec encodes and decodes as those of a broker."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafka_operator.admin.connection import MAX_VERSION, VERSIONS, Connection
from kafka_operator.admin.requests import Request, metadata_request
from kafka_wire import ApiKey, Body, codec
from kafka_wire.columns.metadata_decoder import MetadataColumns, decode_metadata
from kafka_wire.net.client import ConnectionFailed, RequestFailed

AWAY = ConnectionFailed("refused", sent=False)
METADATA_VERSION = 12

Answer = Body | RequestFailed
"""A response's body, or the failure of the request."""


def encode_answer(key: ApiKey, version: int, body: Body) -> bytes:
    """Return a whole response frame."""
    return codec.encode_response(key, version, 0, body)


def columns(body: Body) -> MetadataColumns:
    """Return a Metadata response as columns."""
    return decode_metadata(METADATA_VERSION, encode_answer(ApiKey.METADATA, METADATA_VERSION, body))


class FakeConnection(Connection):
    """Answers each request by `answer`, in the highest version of a real connection; `requests` has the node and request of each.

    The node is an id, "any" or "controller".
    """

    def __init__(self, answer: Callable[[int | str, Request], Answer]) -> None:
        self._answer = answer
        self.requests: list[tuple[int | str, Request]] = []

    async def to_node(self, request: Request, node_id: int | None) -> Body:
        """Answer as a node, or as some broker."""
        return self._ask("any" if node_id is None else node_id, request)

    async def to_controller(self, request: Request, codes_of: Callable[[Body], Iterable[int]]) -> Body:
        """Answer as the controller; the codes are read as by a real connection."""
        found = self._ask("controller", request)
        list(codes_of(found))
        return found

    async def all_partitions(self) -> MetadataColumns:
        """Answer Metadata as the controller."""
        return columns(self._ask("controller", metadata_request(None)))

    def _ask(self, node: int | str, request: Request) -> Any:
        self.requests.append((node, request))
        _, highest = VERSIONS.get(request.key, (0, MAX_VERSION))
        version = min(codec.versions(f"{request.key.message}Request")[1], highest)
        assert codec.encode_request(request.key, version, 0, None, request.body)
        found = self._answer(node, request)
        if isinstance(found, RequestFailed):
            raise found
        return codec.decode_response(request.key, version, encode_answer(request.key, version, found))[1]
