"""Steps of answering a request that every listener has: its context, its refusal by the authorizer, its errors and its encoding.

The front of a controller and the dispatch of a broker are made of them.
"""

import logging

from kafka_node import versions
from kafka_node.authorization.refusal import refusal, refuses_at_top
from kafka_node.context import RequestContext
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode, Failure, codec
from kafka_wire.codec import CodecError, RequestHeader
from kafka_wire.encoded_body import EncodedBody, Response, framed
from kafka_wire.net.server import CloseConnection, Peer

log = logging.getLogger(__name__)


def context_of(listener: str, peer: Peer, header: RequestHeader) -> RequestContext:
    """Return the context of a request on a listener."""
    return RequestContext(
        listener=listener,
        client_id=header.client_id,
        peer_host=peer.host,
        correlation_id=header.correlation_id,
        api_version=header.api_version,
        principal=peer.principal,
        connection=peer,
        is_forwarded=peer.is_forwarded,
    )


def api_versions_error(header: RequestHeader, frame: bytes, served: VersionRange, units: int) -> bytes | None:
    """Return the error for an ApiVersions request of another version, or without a valid name of its software; None: it is valid.

    The request is decoded within a budget of `units`. Raises CodecError.
    """
    version = header.api_version
    body: Body
    if not served[0] <= version <= served[1]:
        version, body = 0, versions.unsupported_version_body(served)
    elif not versions.names_its_software_well(codec.decode_bounded(frame, header, units), version):
        body = {"error_code": ErrorCode.INVALID_REQUEST}
    else:
        return None
    return codec.encode_response(ApiKey.API_VERSIONS, version, header.correlation_id, body)


def unsupported_version(key: ApiKey, header: RequestHeader) -> bytes:
    """Answer UNSUPPORTED_VERSION if the response has a field for it; else close the connection, as Kafka always does.

    Clients that use ApiVersions never send such a request.
    """
    try:
        body = {"error_code": ErrorCode.UNSUPPORTED_VERSION}
        return codec.encode_response(key, header.api_version, header.correlation_id, body)
    except CodecError:
        raise CloseConnection(f"{key.name} version {header.api_version} is not supported here") from None


def refused_by_header(key: ApiKey, header: RequestHeader, frame: bytes, failure: Failure, units: int) -> bytes:
    """Refuse a request that is not decoded yet; it is decoded, within a budget, only if the response repeats its elements."""
    version = header.api_version
    if refuses_at_top(key, version):
        body = refusal(key, version, {}, failure)
    else:
        body = refusal(key, version, codec.decode_bounded(frame, header, units), failure)
    return codec.encode_response(key, version, header.correlation_id, body)


def encode_answer(key: ApiKey, peer: Peer, header: RequestHeader, body: Body | EncodedBody) -> Response:
    """Return the response frame of an answer. Raises CloseConnection, and logs, where it cannot be encoded: a defect of its handler."""
    if isinstance(body, EncodedBody):
        return framed(codec.response_header(key, header.api_version, header.correlation_id), body)
    try:
        return codec.encode_response(key, header.api_version, header.correlation_id, body)
    except CodecError as error:
        raise failed(key, peer, header, error) from error


def failed(key: ApiKey, peer: Peer, header: RequestHeader, error: Exception) -> CloseConnection:
    """Log an unexpected error; only the connection of the request is closed."""
    extra = {"api": key.name, "api_version": header.api_version, "peer": str(peer)}
    log.error("Failed to handle a request (UNKNOWN_SERVER_ERROR)", exc_info=error, extra=extra)
    return CloseConnection(f"{key.name} request failed with an unexpected error")
