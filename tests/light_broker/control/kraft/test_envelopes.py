"""Requests of clients in an Envelope, judged by the code of Steward's controllers that opens them."""

import pytest

from controller_core.shell.front.envelope import open_envelope
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, ErrorCode, codec
from light_broker.control.kraft.envelopes import envelope, opened
from light_broker.control.port import ControlPlaneError

CONTEXT = RequestContext("CLIENT", "admin", "192.0.2.7", 11, 6, "User:alice")


def test_a_controller_reads_the_request_its_principal_and_its_address() -> None:
    """KIP-590; DefaultPrincipalData version 0."""
    body = {"topics": [], "timeout_ms": 5}
    found = open_envelope(envelope(ApiKey.DELETE_TOPICS, CONTEXT, body))

    assert (found.key, found.principal, found.client_host) == (ApiKey.DELETE_TOPICS, "User:alice", "192.0.2.7")
    assert (found.header.api_version, found.header.correlation_id, found.header.client_id) == (6, 11, "admin")


def test_the_inner_answer_is_decoded_in_the_version_of_the_client() -> None:
    """The broker encodes it again with the client's correlation id."""
    inner = codec.encode_response(ApiKey.DELETE_TOPICS, 6, 11, {"responses": []})
    actual = opened(ApiKey.DELETE_TOPICS, CONTEXT, {"error_code": 0, "response_data": inner})
    assert actual == {"throttle_time_ms": 0, "responses": []}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.UNSUPPORTED_VERSION),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_error_of_the_envelope_hides_what_the_broker_did_wrong(error: ErrorCode, code: ErrorCode) -> None:
    """The client is not the one who lacks ClusterAction (ForwardingManagerImpl)."""
    with pytest.raises(ControlPlaneError) as raised:
        opened(ApiKey.DELETE_TOPICS, CONTEXT, {"error_code": error, "response_data": None})
    assert raised.value.code is code
