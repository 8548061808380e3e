"""Rehearsal of an election in memory, before a node serves: it takes the cost of first calls out of the first election.

A process runs each part of an election once or twice in its life. The first calls of those parts are slower than later ones: classes of
messages are made, encoders are compiled, and the interpreter specialises the code only after some calls. Without a rehearsal the voters
of a cluster pay for that while the cluster has no leader. Nothing here touches a file, a socket or the node that will serve.
"""

from collections import deque
from collections.abc import Sequence
from uuid import UUID

from controller_core.quorum import inputs, messages, rules, states, voters
from controller_core.quorum.log_view import LogView
from controller_core.quorum.node import Node
from controller_core.quorum.ready import Appended, AppendResult, Ready, UpgradeResult
from controller_core.quorum.start import start
from controller_core.quorum.step import step, tick
from controller_core.quorum.voter_history import VoterHistory
from controller_core.shell.quorum import apis, wire_batches, wire_requests, wire_responses
from kafka_log.format.epochs import LeaderEpochs
from kafka_wire import codec

ELECTIONS = 8
"""The interpreter specialises code that was called some times; more make the first real election no faster. They take 0.1 s."""

MESSAGES_MAX = 200
"""Of one rehearsed election, which takes about 20."""

_TOPIC = wire_requests.LogTopic("rehearsal", UUID(int=1))
_LISTENER = "CONTROLLER"
_IDS = (1, 2)
_SHUTDOWN_TIMEOUT_MS = 1000


def rehearse(elections: int = ELECTIONS) -> int:
    """Let two nodes elect a leader, which then hands over to the other one; return how many elections ended with a leader."""
    return sum(_Rehearsal(seed).run() for seed in range(elections))


class _Rehearsal:
    """Two nodes whose messages pass through the codec, in a time of their own."""

    def __init__(self, seed: int) -> None:
        self.now_ms = 0
        self.nodes: dict[int, Node] = {}
        self._ticks_ms: dict[int, int] = {}
        self._logs: dict[int, dict[int, bytes]] = {node_id: {} for node_id in _IDS}
        """Each node's batches, by base offset."""
        self._inputs: deque[tuple[int, inputs.Input]] = deque()
        self._asked: dict[int, tuple[int, int, type[messages.RequestBody]]] = {}
        """Who waits for the answer to a request, under which correlation id, and what it asked."""
        self._last_id = 0
        for node_id in _IDS:
            self._carry_out(
                node_id, start(_settings(node_id), None, _EMPTY_LOG, VoterHistory(_VOTERS), seed + node_id, 0)
            )

    def run(self) -> bool:
        """Elect a leader, and let it hand over; return whether both happened."""
        leader_id = self._elect(_IDS)
        if leader_id is None:
            return False
        self._carry_out(leader_id, step(self.nodes[leader_id], inputs.Shutdown(_SHUTDOWN_TIMEOUT_MS), self.now_ms))
        return self._elect([node_id for node_id in _IDS if node_id != leader_id]) is not None

    def _elect(self, candidates: Sequence[int]) -> int | None:
        for _ in range(MESSAGES_MAX):
            for node_id in candidates:
                if isinstance(self.nodes[node_id].state, states.Leader) and not self._inputs:
                    return node_id
            if self._inputs:
                node_id, message = self._inputs.popleft()
                self._carry_out(node_id, step(self.nodes[node_id], message, self.now_ms))
            else:
                node_id = min(self._ticks_ms, key=self._ticks_ms.__getitem__)
                self.now_ms = max(self.now_ms, self._ticks_ms[node_id])
                self._carry_out(node_id, tick(self.nodes[node_id], self.now_ms))
        return None

    def _carry_out(self, node_id: int, ready: Ready) -> None:
        self.nodes[node_id] = ready.node
        self._ticks_ms[node_id] = ready.next_tick_ms
        for operation in ready.log:
            assert isinstance(operation, Appended), operation
            for batch in operation.batches:
                self._logs[node_id][batch.base_offset] = wire_batches.encode_log(batch, self.now_ms)
        if ready.flush is not None:
            self._inputs.append((node_id, inputs.Flushed(ready.flush)))
        for outgoing in ready.requests:
            self._last_id += 1
            self._asked[self._last_id] = (node_id, outgoing.correlation_id, type(outgoing.body))
            self._inputs.append(
                (_other(node_id), inputs.Request(self._last_id, _LISTENER, _transmitted_request(outgoing.body)))
            )
        for reply in ready.replies:
            asker, correlation_id, kind = self._asked.pop(reply.request_id)
            assert not isinstance(reply.body, AppendResult | UpgradeResult), reply
            body = _transmitted_response(kind, reply.body, self._records(node_id, reply.body))
            self._inputs.append((asker, inputs.Response(node_id, correlation_id, body)))

    def _records(self, node_id: int, body: messages.ResponseBody) -> bytes:
        if not isinstance(body, messages.FetchResponse) or body.read is None:
            return b""
        wanted = body.read
        return b"".join(batch for offset, batch in self._logs[node_id].items() if offset >= wanted.offset)


def _transmitted_request(body: messages.RequestBody) -> messages.RequestBody:
    """Return a request after its way through the codec."""
    key = wire_requests.API_OF[type(body)]
    version = apis.SERVED[key].highest
    name = f"{key.message}Request"
    return wire_requests.decode_request(
        key,
        version,
        codec.decode(name, version, codec.encode(name, version, wire_requests.encode_request(body, _TOPIC, version))),
        _TOPIC,
    )


def _transmitted_response(
    kind: type[messages.RequestBody], body: messages.ResponseBody, records: bytes
) -> messages.ResponseBody:
    """Return a response, with the records of a Fetch, after its way through the codec."""
    key = wire_requests.API_OF[kind]
    version = apis.SERVED[key].highest
    frame = codec.encode_response(key, version, 0, wire_responses.encode_response(body, _TOPIC, version, records))
    return wire_responses.decode_response(key, version, codec.decode_response(key, version, frame)[1], _TOPIC)


def _other(node_id: int) -> int:
    return _IDS[1] if node_id == _IDS[0] else _IDS[0]


def _endpoints(node_id: int) -> tuple[voters.Endpoint, ...]:
    return (voters.Endpoint(_LISTENER, "rehearsal", node_id),)


def _settings(node_id: int) -> rules.Settings:
    return rules.Settings("rehearsal", voters.ReplicaKey(node_id, UUID(int=node_id)), _endpoints(node_id), _LISTENER)


_EMPTY_LOG = LogView(0, 0, LeaderEpochs([]), (), 0, 0)
_VOTERS = voters.VoterSet.of(voters.Voter(voters.ReplicaKey(node_id), _endpoints(node_id)) for node_id in _IDS)
