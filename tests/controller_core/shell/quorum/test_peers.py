"""Requests to other nodes of a quorum: every one ends in a message to the node, and a connection has one at a time."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.inputs import Response
from controller_core.quorum.messages import FailedResponse, Leadership, RequestBody, VoteRequest, VoteResponse
from controller_core.quorum.ready import Outgoing
from controller_core.quorum.rules import Destination
from controller_core.quorum.voters import ReplicaKey
from controller_core.shell.quorum.peers import Peers
from controller_core.shell.quorum.process import METADATA_TOPIC
from controller_core.shell.quorum.wire_responses import encode_response
from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.net.client import NodeSettings, SaslCredentials
from kafka_wire.net.failures import CloseConnection
from kafka_wire.net.sasl_server import SaslServer
from kafka_wire.net.server import Peer, Server, serve
from kafka_wire.sasl.plain import PLAIN
from lab.processes.ports import free_port
from tests.kafka_wire.net.sasl_peers import Users
from tests.waiting import until

VOTER = 2
TIMEOUT_MS = 500
"""Enough for an answer on this machine; a peer that never answers costs it once."""

ANSWER = VoteResponse(leadership=Leadership(3), granted=True)


class FakeVoter:
    """A peer with Vote up to a version. It answers when it may, and counts the requests that wait."""

    def __init__(self, highest_vote: int = 2) -> None:
        self.highest_vote = highest_vote
        self.disconnects = False
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.waiting = self.most_waiting = 0
        self.apis: list[ApiKey] = []
        """Of all requests."""

    async def __call__(self, _: Peer, frame: bytes) -> bytes:
        """Answer a request."""
        header = codec.peek_header(frame)
        key, version = ApiKey(header.api_key), header.api_version
        self.apis.append(key)
        if key is ApiKey.API_VERSIONS:
            keys = [{"api_key": key, "max_version": 4}, {"api_key": ApiKey.VOTE, "max_version": self.highest_vote}]
            return codec.encode_response(key, version, header.correlation_id, {"api_keys": keys})
        if self.disconnects:
            raise CloseConnection("as the test wants it")
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        await self.may_answer.wait()
        self.waiting -= 1
        body = encode_response(ANSWER, METADATA_TOPIC, version)
        return codec.encode_response(key, version, header.correlation_id, body)


class Asking:
    """A node's side: its connections, and the messages that it got."""

    def __init__(self, server: Server, voter: FakeVoter, settings: NodeSettings | None = None) -> None:
        self.voter, self.port = voter, server.port
        self.messages: asyncio.Queue[Response] = asyncio.Queue()
        respond = self.messages.put_nowait
        self.peers = Peers(settings or NodeSettings(), METADATA_TOPIC, respond, request_timeout_ms=TIMEOUT_MS)

    async def ask(self, *, port: int | None = None, pre_vote: bool = False, node_id: int = VOTER) -> Response:
        """Ask for a vote, and return the message that the node gets."""
        self.send(1, port=port, pre_vote=pre_vote, node_id=node_id)
        return await self.messages.get()

    def send(
        self, correlation_id: int, *, port: int | None = None, pre_vote: bool = False, node_id: int = VOTER
    ) -> None:
        """Ask for a vote."""
        body: RequestBody = VoteRequest("cluster", 3, ReplicaKey(1), ReplicaKey(VOTER), Position(5, 2), pre_vote)
        self.peers.send(Outgoing(Destination(node_id, "127.0.0.1", port or self.port), correlation_id, body))


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    """A node that can ask a voter."""
    voter = FakeVoter()
    server = await serve(voter, "127.0.0.1", 0)
    found = Asking(server, voter)
    yield found
    voter.may_answer.set()
    await found.peers.close()
    await server.close()


async def test_a_response_reaches_the_node_with_the_requests_correlation_id(asking: Asking) -> None:
    """The id is the node's own, not that of the connection."""
    assert await asking.ask() == Response(VOTER, 1, ANSWER)


async def test_a_connection_that_was_opened_before_needs_only_the_request_itself(asking: Asking) -> None:
    """P6: an election does not wait for the connection and the exchange of versions. A node that is connected is left alone."""
    destination = Destination(VOTER, "127.0.0.1", asking.port)
    asking.peers.connect([destination, destination])
    await until(lambda: len(asking.voter.apis) == 2)
    answer = await asking.ask()
    asking.peers.connect([destination])
    again = await asking.ask()

    assert (answer.body, again.body) == (ANSWER, ANSWER)
    assert asking.voter.apis == [ApiKey.API_VERSIONS, ApiKey.API_VERSIONS, ApiKey.VOTE, ApiKey.VOTE]


async def test_a_node_that_cannot_be_reached_gets_a_connection_at_a_later_attempt(asking: Asking) -> None:
    """It may start later; the attempts are not reported to the node."""
    port = free_port()
    asking.peers.connect([Destination(VOTER, "127.0.0.1", port)])
    server = await serve(asking.voter, "127.0.0.1", port)

    def is_connected() -> bool:
        asking.peers.connect([Destination(VOTER, "127.0.0.1", port)])
        return len(asking.voter.apis) == 2

    await until(is_connected)
    assert asking.messages.empty()
    await server.close()


async def test_a_node_that_cannot_be_reached_is_a_network_error(asking: Asking) -> None:
    """The node then backs off."""
    assert await asking.ask(port=free_port()) == Response(VOTER, 1, FailedResponse(ErrorCode.NETWORK_EXCEPTION))


async def test_a_bootstrap_server_is_asked_by_its_address(asking: Asking) -> None:
    """Its id is not known: the node gives it a negative one (KafkaNetworkChannelTest.testSendAndReceiveOutboundRequest)."""
    assert await asking.ask(node_id=-2) == Response(-2, 1, ANSWER)


async def test_a_node_that_disconnects_is_a_network_error_and_is_reached_again(asking: Asking) -> None:
    """KafkaNetworkChannelTest.testSendAndDisconnect; Kafka has another error, to which a node reacts in the same way."""
    asking.voter.disconnects = True
    disconnected = await asking.ask()
    asking.voter.disconnects = False

    assert disconnected == Response(VOTER, 1, FailedResponse(ErrorCode.NETWORK_EXCEPTION))
    assert await asking.ask() == Response(VOTER, 1, ANSWER)


async def test_a_failed_authentication_is_a_network_error() -> None:
    """KafkaNetworkChannelTest.testSendAndFailAuthentication: the node asks again, because the password may be corrected."""
    voter, users = FakeVoter(), Users({"member": "right"})
    server = await serve(
        voter, "127.0.0.1", 0, sasl=SaslServer(mechanisms=(PLAIN,), credentials=users, failure_delay_ms=1)
    )
    asking = Asking(server, voter, NodeSettings(sasl=SaslCredentials(PLAIN, "member", "wrong")))
    answer = await asking.ask()
    await asking.peers.close()
    await server.close()

    assert answer == Response(VOTER, 1, FailedResponse(ErrorCode.NETWORK_EXCEPTION))
    assert voter.most_waiting == 0


async def test_a_pre_vote_to_an_older_node_is_an_unsupported_version(asking: Asking) -> None:
    """The node then asks for votes at once (KIP-996)."""
    asking.voter.highest_vote = 1

    assert await asking.ask(pre_vote=True) == Response(VOTER, 1, FailedResponse(ErrorCode.UNSUPPORTED_VERSION))


@pytest.mark.slow
async def test_a_node_that_does_not_answer_in_time_is_a_network_error(asking: Asking) -> None:
    """It may be frozen: its connection is open."""
    asking.voter.may_answer.clear()

    assert await asking.ask() == Response(VOTER, 1, FailedResponse(ErrorCode.NETWORK_EXCEPTION))


async def test_a_connection_has_one_request_at_a_time(asking: Asking) -> None:
    """A Java node handles the requests of a connection one after another, so that a second one would only wait there."""
    for correlation_id in (1, 2, 3):
        asking.send(correlation_id)
    found = [await asking.messages.get() for _ in range(3)]

    assert [request.correlation_id for request in found] == [1, 2, 3]
    assert asking.voter.most_waiting == 1
