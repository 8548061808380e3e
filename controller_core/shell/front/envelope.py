"""Requests of clients that a broker forwards to the controller in an Envelope (KIP-590).

    Envelope ──► inner header, principal, address ──► the front judges and answers the inner request ──► response in an Envelope

The broker has authenticated the client, so the inner request is judged by the principal and the address that the Envelope names; to send an
Envelope at all needs CLUSTER_ACTION. An error of the Envelope itself is in its error code, one of the inner request in the inner response,
except that NOT_CONTROLLER is in both: the broker then looks for the active controller, and repeats the request.

Source: EnvelopeUtils, RequestChannel.Request.buildResponseSend and DefaultKafkaPrincipalBuilder of Kafka 4.3.
"""

import ipaddress
from dataclasses import dataclass

from controller_core.shell.front import request_limits
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.encoded_body import PiecewiseResponse, Response

FORWARDABLE = frozenset(
    {
        ApiKey.CREATE_TOPICS,
        ApiKey.DELETE_TOPICS,
        ApiKey.CREATE_PARTITIONS,
        ApiKey.CREATE_ACLS,
        ApiKey.DELETE_ACLS,
        ApiKey.ALTER_CONFIGS,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.ELECT_LEADERS,
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKey.UPDATE_FEATURES,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
    }
)
"""APIs that brokers forward (ApiKeys.forwardable)."""

PRINCIPAL_VERSION = 0
"""The only version of DefaultPrincipalData."""
_VERSION_BYTES = 2
_CHUNK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Enveloped:
    """The inner request of an Envelope."""

    key: ApiKey
    header: codec.RequestHeader
    frame: bytes
    principal: str
    """As `User:NAME`."""
    client_host: str


class EnvelopeError(Exception):
    """The inner request cannot be processed; `code` is for the Envelope's response."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def open_envelope(body: Body) -> Enveloped:
    """Return the request in an Envelope; its body is not decoded yet. Raises EnvelopeError."""
    principal = _principal(body["request_principal"])
    host = _host(bytes(body["client_host_address"]))
    frame = bytes(body["request_data"])
    try:
        header = codec.peek_header(frame)
    except codec.CodecError as error:
        raise EnvelopeError(ErrorCode.INVALID_REQUEST, f"the forwarded request has no valid header: {error}") from error
    if header.api_key not in FORWARDABLE:
        raise EnvelopeError(
            ErrorCode.INVALID_REQUEST, f"requests of the API {header.api_key} are not forwarded to controllers"
        )
    key = ApiKey(header.api_key)
    if len(frame) > request_limits.own_bytes(key):
        raise EnvelopeError(ErrorCode.INVALID_REQUEST, f"the forwarded {key.name} request has {len(frame)} bytes")
    return Enveloped(key, header, frame, principal, host)


def _principal(data: bytes | None) -> str:
    """Return the principal of a serialized one: a version in two bytes, and DefaultPrincipalData."""
    content = b"" if data is None else bytes(data)
    version = int.from_bytes(content[:_VERSION_BYTES])
    code = ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE
    if len(content) < _VERSION_BYTES or version != PRINCIPAL_VERSION:
        raise EnvelopeError(code, "the principal of a forwarded request is missing, or of an unknown version")
    try:
        found = codec.decode("DefaultPrincipalData", version, content[_VERSION_BYTES:])
    except codec.CodecError as error:
        raise EnvelopeError(code, f"the principal of a forwarded request cannot be read: {error}") from error
    return f"{found['type']}:{found['name']}"


def _host(address: bytes) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError as error:
        raise EnvelopeError(
            ErrorCode.INVALID_REQUEST, f"the client's address has {len(address)} bytes; 4 or 16 are needed"
        ) from error


def sealed(response: Response) -> Body:
    """Return the body of an Envelope's response with an inner response."""
    assert isinstance(response, bytes | PiecewiseResponse), "a controller sends nothing from files"
    data = response if isinstance(response, bytes) else b"".join(response.chunks(_CHUNK_BYTES))
    return {"response_data": data, "error_code": ErrorCode.NONE}


def refused(code: ErrorCode) -> Body:
    """Return the body of an Envelope's response without an inner one."""
    return {"response_data": None, "error_code": code}
