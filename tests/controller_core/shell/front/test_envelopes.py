"""Requests that brokers forward in Envelopes (KIP-590): they are answered as their clients', and their errors as Kafka's controllers answer them."""

import ipaddress
from collections.abc import AsyncIterator

import pytest

from controller_core.shell.front.front import Front, open_front
from kafka_node.context import RequestContext
from kafka_wire import ApiKey, Body, ErrorCode, codec
from kafka_wire.net.server import CloseConnection
from tests.controller_core.shell.front.fakes import Client

SERVED = {
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.ENVELOPE: (0, 0),
    ApiKey.DESCRIBE_CLUSTER: (0, 1),
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
}
VERSION = 7
ALICE = bytes(2) + codec.encode(
    "DefaultPrincipalData", 0, {"type": "User", "name": "alice", "token_authenticated": False}
)
ADDRESS = ipaddress.ip_address("10.1.2.3").packed


class Controller:
    """The handlers of a controller, and what they were asked."""

    def __init__(self) -> None:
        self.is_active = True
        self.asked: list[tuple[str, str, str | None]] = []

    async def create(self, context: RequestContext, body: Body) -> Body:
        """Note whose request it is."""
        self.asked.append((context.principal, context.peer_host, context.client_id))
        return {"topics": [{"name": topic["name"], "topic_config_error_code": 0} for topic in body["topics"]]}

    async def fail(self, _context: RequestContext, _body: Body) -> Body:
        """Fail by a defect."""
        raise CloseConnection("a defect")


@pytest.fixture
def controller() -> Controller:
    """An active controller."""
    return Controller()


@pytest.fixture
async def front(controller: Controller) -> AsyncIterator[Front]:
    """Its listener."""
    handlers = {ApiKey.CREATE_TOPICS: controller.create, ApiKey.DELETE_TOPICS: controller.fail}
    served = {key: SERVED[key] for key in (ApiKey.API_VERSIONS, ApiKey.ENVELOPE, *handlers)}
    front = await open_front(
        "CONTROLLER", "127.0.0.1", 0, handlers, None, served=served, is_active=lambda: controller.is_active
    )
    yield front
    await front.close(grace_ms=1)


def envelope(
    key: ApiKey = ApiKey.CREATE_TOPICS,
    version: int = VERSION,
    *,
    data: bytes | None = None,
    principal: bytes | None = ALICE,
    address: bytes = ADDRESS,
) -> Body:
    """Return an Envelope with a request, or with other data in its place."""
    body = {"topics": [{"name": "orders"}], "timeout_ms": 1000}
    frame = codec.encode_request(key, version, 77, "app", body) if data is None else data
    return {"request_data": frame, "request_principal": principal, "client_host_address": address}


async def test_a_forwarded_request_is_answered_as_its_client(front: Front, controller: Controller, connect) -> None:
    """The inner response has the inner correlation id (EnvelopeUtils)."""
    client: Client = await connect(front)
    answer = await client.call(ApiKey.ENVELOPE, 0, envelope())
    correlation_id, inner = codec.decode_response(ApiKey.CREATE_TOPICS, VERSION, answer["response_data"])

    assert answer["error_code"] == ErrorCode.NONE
    assert (correlation_id, [topic["name"] for topic in inner["topics"]]) == (77, ["orders"])
    assert controller.asked == [("User:alice", "10.1.2.3", "app")]


TORN = codec.encode_request(ApiKey.CREATE_TOPICS, VERSION, 1, "app", {"topics": [{"name": "orders"}], "timeout_ms": 1})[
    :-3
]
IN_ENVELOPE = codec.encode_request(ApiKey.ENVELOPE, 0, 1, "app", envelope())

REFUSED = {
    "no principal": (envelope(principal=None), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    "a principal of another version": (
        envelope(principal=b"\0\7" + ALICE[2:]),
        ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE,
    ),
    "a torn principal": (envelope(principal=ALICE[:-2]), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    "an address of 3 bytes": (envelope(address=b"\1\2\3"), ErrorCode.INVALID_REQUEST),
    "no request": (envelope(data=b""), ErrorCode.INVALID_REQUEST),
    "a torn request": (envelope(data=TORN), ErrorCode.INVALID_REQUEST),
    "an Envelope in an Envelope": (envelope(data=IN_ENVELOPE), ErrorCode.INVALID_REQUEST),
    "an API that is not forwarded": (
        envelope(data=codec.encode_request(ApiKey.DESCRIBE_CLUSTER, 0, 1, "app", {})),
        ErrorCode.INVALID_REQUEST,
    ),
    "an unsupported version": (
        envelope(data=codec.encode_request(ApiKey.DELETE_TOPICS, 0, 1, "app", {"topic_names": [], "timeout_ms": 1})),
        ErrorCode.UNSUPPORTED_VERSION,
    ),
    "a handler that fails": (
        envelope(data=codec.encode_request(ApiKey.DELETE_TOPICS, 1, 1, "app", {"topic_names": ["a"], "timeout_ms": 1})),
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ),
}


@pytest.mark.parametrize(("body", "code"), REFUSED.values(), ids=REFUSED)
async def test_a_bad_envelope_is_answered_and_the_connection_serves_on(
    body: Body, code: ErrorCode, front: Front, controller: Controller, connect
) -> None:
    """Other clients of the broker use the same connection."""
    client: Client = await connect(front)
    answers = [await client.call(ApiKey.ENVELOPE, 0, request) for request in (body, envelope())]

    assert [answer["error_code"] for answer in answers] == [code, ErrorCode.NONE]
    assert answers[0]["response_data"] is None
    assert len(controller.asked) == 1


async def test_a_standby_answers_not_controller_in_the_envelope(front: Front, controller: Controller, connect) -> None:
    """The broker then looks for the active controller (RequestChannel.Request.buildResponseSend)."""
    client: Client = await connect(front)
    controller.is_active = False
    answer = await client.call(ApiKey.ENVELOPE, 0, envelope())

    assert (answer["error_code"], answer["response_data"]) == (ErrorCode.NOT_CONTROLLER, None)
    assert controller.asked == []
