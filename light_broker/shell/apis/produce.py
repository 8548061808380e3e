"""Produce: batches of clients for partitions that this broker leads.

With acks=0 there is no response; an error closes the connection, so that the client reads the metadata again. Source:
KafkaApis.handleProduceRequest, ProduceRequest.validateRecords.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.context import RequestContext
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import Body, ErrorCode
from kafka_wire.compression import Compression
from kafka_wire.net.failures import CloseConnection
from kafka_wire.records import HEADER_BYTES, MAGIC
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.replica_requests import AppendResult
from light_broker.shell.apis.current_leader import CurrentLeaders
from light_broker.shell.broker import Broker

VERSIONS = (3, 13)

TOPIC_IDS_FROM = 13
LEADERS_FROM = 10
ZSTD_FROM = 7
"""Version from which on a client knows zstd (KIP-110)."""

_LENGTH = struct.Struct(">i")
_LENGTH_AT = 8
_MAGIC_AT = 16
_ATTRIBUTES_AT = 22
"""Position of the low byte of a batch's attributes."""
_COMPRESSION_MASK = 0x07
_TRANSACTIONAL = 0x10


class _Part(NamedTuple):
    """Records of one partition, as the request has them."""

    named: TopicPartition
    topic_id: UUID
    records: bytes | memoryview
    error: ErrorCode


async def handle(broker: Broker, context: RequestContext, body: Body) -> Body | None:
    """Append the batches, and return their offsets once `acks` replicas have them."""
    parts = list(_parts(broker, context, body))
    accepted = {part.named: part.records for part in parts if not part.error}
    appended: dict[TopicPartition, AppendResult] = {}
    if accepted:
        appended = await broker.replicas.writes.append(
            accepted,
            acks=body["acks"],
            timeout_ms=body["timeout_ms"],
            allow_internal=_is_broker(broker, context),
        )
    results = [(part, AppendResult(part.error) if part.error else appended[part.named]) for part in parts]
    if body["acks"] == 0:
        failed = {result.error.name for _, result in results if result.error is not ErrorCode.NONE}
        if failed:
            raise CloseConnection(f"a Produce request with acks=0 failed: {', '.join(sorted(failed))}")
        return None
    return _response(broker, context, results)


def _parts(broker: Broker, context: RequestContext, body: Body) -> Iterator[_Part]:
    """Yield the records by partition, with the error of those that are not appended."""
    may, view, version = broker.may(context), broker.view, context.api_version
    all_fail = _transaction_error(broker, context, body)
    for topic in body["topic_data"]:
        if version >= TOPIC_IDS_FROM:
            topic_id = topic["topic_id"]
            name = view.topic_name(topic_id) or ""
        else:
            name, topic_id = topic["name"], NO_TOPIC_ID
        error = all_fail
        if not error and version >= TOPIC_IDS_FROM and not name:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        if not error and not may(Operation.WRITE, ResourceType.TOPIC, name):
            error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for partition in topic["partition_data"]:
            records = partition["records"]
            named = TopicPartition(name, partition["index"])
            its_error = error
            if not error and view.partition(named) is None:
                its_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            yield _Part(named, topic_id, records, its_error or _records_error(records, version))


def _records_error(records: bytes | memoryview | None, version: int) -> ErrorCode:
    """Return why records are no batch that a client of this version may send; the append checks everything else."""
    size_bytes = _batch_bytes(records, 0)
    if records is None or size_bytes is None:
        return ErrorCode.INVALID_RECORD
    if size_bytes < HEADER_BYTES:
        return ErrorCode.CORRUPT_MESSAGE
    if records[_MAGIC_AT] != MAGIC or _batch_bytes(records, size_bytes) is not None:
        return ErrorCode.INVALID_RECORD
    attributes = records[_ATTRIBUTES_AT]
    if attributes & _TRANSACTIONAL:
        # The transaction coordinator knows no such transaction, as this broker has none.
        return ErrorCode.INVALID_TXN_STATE
    if version < ZSTD_FROM and attributes & _COMPRESSION_MASK == Compression.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.NONE


def _batch_bytes(records: bytes | memoryview | None, position: int) -> int | None:
    """Return the size that a batch announces, None if there is no whole one at a position."""
    if records is None or len(records) - position <= _MAGIC_AT:
        return None
    size_bytes: int = _LENGTH.unpack_from(records, position + _LENGTH_AT)[0] + _LENGTH_AT + _LENGTH.size
    return size_bytes if size_bytes <= len(records) - position else None


def _transaction_error(broker: Broker, context: RequestContext, body: Body) -> ErrorCode:
    """Return the error of a request with transactional records whose transactional id is missing or not the caller's."""
    if not _is_transactional(body):
        return ErrorCode.NONE
    name = body["transactional_id"]
    if name is None or not broker.may(context)(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def _is_transactional(body: Body) -> bool:
    for topic in body["topic_data"]:
        for partition in topic["partition_data"]:
            records = partition["records"]
            if records is not None and len(records) > _ATTRIBUTES_AT and records[_ATTRIBUTES_AT] & _TRANSACTIONAL:
                return True
    return False


def _is_broker(broker: Broker, context: RequestContext) -> bool:
    """Return whether the caller may write internal topics. Without an authorizer no caller is known to be a broker."""
    return broker.guard is not None and broker.may(context)(
        Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True
    )


def _response(broker: Broker, context: RequestContext, results: list[tuple[_Part, AppendResult]]) -> Body:
    leaders: CurrentLeaders | None = None
    topics: dict[tuple[str, UUID], list[Body]] = {}
    for part, result in results:
        answer: Body = {
            "index": part.named.partition,
            "error_code": result.error,
            "base_offset": result.base_offset,
            "log_append_time_ms": result.log_append_time_ms,
            "log_start_offset": result.log_start_offset,
        }
        if result.error is not ErrorCode.NONE:
            answer["error_message"] = result.message
            answer["record_errors"] = [
                {"batch_index": index, "batch_index_error_message": reason} for index, reason in result.record_errors
            ]
            if result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER and context.api_version >= LEADERS_FROM:
                leaders = leaders or CurrentLeaders(broker, context)
                answer["current_leader"] = leaders.of(part.named)
        topics.setdefault((part.named.topic, part.topic_id), []).append(answer)
    response: Body = {
        "responses": [
            {"name": name, "topic_id": topic_id, "partition_responses": answers}
            for (name, topic_id), answers in topics.items()
        ]
    }
    if leaders is not None and leaders.endpoints:
        response["node_endpoints"] = leaders.endpoints
    return response
