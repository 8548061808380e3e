"""Requests of clients in an Envelope (KIP-590): the controller answers them as the client's principal. Pure.

Source: ForwardingManager, DefaultKafkaPrincipalBuilder of Kafka.
"""

import ipaddress

from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from light_broker.control.port import ControlPlaneError

VERSIONS = (0, 0)
PRINCIPAL_VERSION = 0
"""Version of DefaultPrincipalData."""
_VERSION_BYTES = 2
NO_ADDRESS = ipaddress.ip_address("0.0.0.0")  # noqa: S104 - sent, not bound


def envelope(key: ApiKey, context: RequestContext, body: Body) -> Body:
    """Return the Envelope of a client's request."""
    kind, _, name = context.principal.partition(":")
    principal = codec.encode("DefaultPrincipalData", PRINCIPAL_VERSION, {"type": kind, "name": name})
    return {
        "request_data": codec.encode_request(key, context.api_version, context.correlation_id, context.client_id, body),
        "request_principal": PRINCIPAL_VERSION.to_bytes(_VERSION_BYTES) + principal,
        "client_host_address": _address(context.peer_host),
    }


def opened(key: ApiKey, context: RequestContext, answer: Body) -> Body:
    """Return the answer in an Envelope's response. Raises ControlPlaneError for an error of the Envelope itself."""
    if answer["error_code"] != ErrorCode.NONE or answer["response_data"] is None:
        error = ErrorCode.of(answer["error_code"]) or ErrorCode.UNKNOWN_SERVER_ERROR
        if error is ErrorCode.UNSUPPORTED_VERSION:
            raise ControlPlaneError(
                error, f"The controller does not answer {key.name} in version {context.api_version}."
            )
        # Kafka's broker hides what it did wrong itself, such as a lack of rights, from its clients.
        raise ControlPlaneError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The controller answered {error.name} to an Envelope.")
    return codec.decode_response(key, context.api_version, bytes(answer["response_data"]))[1]


def _address(host: str) -> bytes:
    try:
        return ipaddress.ip_address(host).packed
    except ValueError:  # a connection without an address, as in tests
        return NO_ADDRESS.packed
