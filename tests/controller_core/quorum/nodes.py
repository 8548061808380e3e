"""Nodes in each state, made by steps as in a running quorum: voters 1, 2 and 3, and the node under test is 1 by default."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from controller_core.quorum.batches import Position
from controller_core.quorum.connections import InFlight
from controller_core.quorum.inputs import Flushed, Request, Response
from controller_core.quorum.log_view import LogView
from controller_core.quorum.messages import (
    BeginQuorumEpochRequest,
    FetchRequest,
    Leadership,
    RequestBody,
    ResponseBody,
    VoteRequest,
    VoteResponse,
)
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.ready import Ready
from controller_core.quorum.rules import Destination, Rules, Settings
from controller_core.quorum.start import start
from controller_core.quorum.step import step, tick
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import (
    DYNAMIC_VOTERS,
    STATIC_VOTERS,
    Endpoint,
    ReplicaKey,
    VersionRange,
    Voter,
    VoterSet,
)
from kafka_log.format.epochs import EpochStart, LeaderEpochs

CLUSTER = "cluster"
LISTENER = "CONTROLLER"
LEADER, OTHER = 2, 3
"""The other voters: the leader that the node knows or knew, and a candidate."""

NEW = 4
"""A controller that is no voter yet."""

EPOCH = 5
NOW_MS = 100_000
LATER_MS = NOW_MS + 2000
"""After the timeouts of elections and fetches that started at NOW_MS."""

LOG = LogView(0, 3, LeaderEpochs([EpochStart(4, 0)]), (), 2, 3)
"""Three records of epoch 4, of which two are known as committed."""


def key(node_id: int) -> ReplicaKey:
    """Return a node's key."""
    return ReplicaKey(node_id, UUID(int=node_id))


def endpoints(node_id: int) -> tuple[Endpoint, ...]:
    """Return a node's endpoints."""
    return (Endpoint(LISTENER, f"host-{node_id}", 9000 + node_id),)


FROM_LEADER = Leadership(EPOCH, LEADER, endpoints(LEADER)[0])


def voter(node_id: int, *, level: int = DYNAMIC_VOTERS) -> Voter:
    """Return a voter as the set has it at a level of kraft.version."""
    if level == STATIC_VOTERS:
        return Voter(ReplicaKey(node_id), endpoints(node_id))
    return Voter(key(node_id), endpoints(node_id), VersionRange(0, 1))


def settings(node_id: int = 1, *, rules: Rules = Rules.KAFKA_4, auto_join: bool = False) -> Settings:
    """Return a node's settings."""
    servers = tuple(
        Destination(-voter_id - 1, f"host-{voter_id}", 9000 + voter_id) for voter_id in (1, 2, 3) if voter_id != node_id
    )
    return Settings(CLUSTER, key(node_id), endpoints(node_id), LISTENER, servers, rules=rules, auto_join=auto_join)


def history(*ids: int, level: int = DYNAMIC_VOTERS) -> VoterHistory:
    """Return a history with these voters: of a record at offset 1, or configured."""
    voters = VoterSet.of(voter(node_id, level=level) for node_id in ids or (1, 2, 3))
    if level == STATIC_VOTERS:
        return VoterHistory(voters)
    return VoterHistory().from_snapshot(2, voters, level)


def started(
    stored: StoredElection | None, *, node_id: int = 1, log: LogView = LOG, level: int = DYNAMIC_VOTERS
) -> Ready:
    """Start a node of the three voters."""
    return start(settings(node_id), stored, log, history(level=level), seed=1, now_ms=NOW_MS)


def unattached(rules: Rules = Rules.KAFKA_4, *, voted: int | None = None) -> Node:
    """Return a voter that knows no leader."""
    stored = StoredElection(EPOCH, None, key(voted) if voted else None)
    return start(settings(rules=rules), stored, LOG, history(), seed=1, now_ms=NOW_MS).node


def observer() -> Node:
    """Return a controller that is no voter, Unattached."""
    return start(settings(4), StoredElection(EPOCH), LOG, history(), seed=1, now_ms=NOW_MS).node


def prospective() -> Node:
    """Return a voter that asks for pre-votes."""
    return tick(unattached(), LATER_MS).node


def candidate(voters: VoterHistory | None = None, own: Settings | None = None) -> Node:
    """Return a voter that asks for votes in EPOCH."""
    stored = StoredElection(EPOCH, None, key(1))
    return start(own or settings(), stored, LOG, voters or history(), seed=1, now_ms=NOW_MS).node


def follower(*, has_fetched: bool = False) -> Node:
    """Return a follower of LEADER."""
    node = started(StoredElection(EPOCH, LEADER)).node
    if has_fetched:
        node = replace(node, state=replace(node.state, has_fetched=True))
    return node


def elected(
    voters: VoterHistory | None = None, own: Settings | None = None, *, granted_by: Sequence[int] = (OTHER,)
) -> Ready:
    """Let voters grant their votes to a candidate; the last vote makes it the leader."""
    node = candidate(voters, own)
    for voter_id in granted_by:
        ready = respond(node, voter_id, VoteResponse(leadership=Leadership(EPOCH), granted=True))
        node = ready.node
    return ready


def leader(voters: VoterHistory | None = None) -> Node:
    """Return the leader of EPOCH: its first record, at offset 3, is on its own disk only."""
    node = elected(voters).node
    return step(node, Flushed(node.log.flush_count), NOW_MS).node


def committed(voters: VoterHistory | None = None) -> Node:
    """Return a leader whose first record is committed: OTHER has it."""
    return ask(leader(voters), fetch(OTHER, 4, EPOCH)).node


def static_leader() -> Node:
    """Return a leader at kraft.version 0 that has committed its first record."""
    return committed(history(level=STATIC_VOTERS))


def resigned() -> Node:
    """Return a node that led EPOCH."""
    return started(StoredElection(EPOCH, 1)).node


def fetch(node_id: int, offset: int, last_epoch: int, *, epoch: int = EPOCH, high_watermark: int = -1) -> FetchRequest:
    """Return the Fetch of a node with a log end."""
    return FetchRequest(CLUSTER, epoch, key(node_id), Position(offset, last_epoch), high_watermark, max_wait_ms=500)


def vote(node_id: int, epoch: int, last: Position, *, pre_vote: bool = False) -> VoteRequest:
    """Return a request for the vote of node 1."""
    return VoteRequest(CLUSTER, epoch, key(node_id), key(1), last, pre_vote)


def begin(node_id: int, epoch: int) -> BeginQuorumEpochRequest:
    """Return the announcement of a leader to node 1."""
    return BeginQuorumEpochRequest(CLUSTER, epoch, node_id, endpoints(node_id), key(1))


def ask(node: Node, body: RequestBody, now_ms: int = NOW_MS) -> Ready:
    """Send a request to a node."""
    return step(node, Request(77, LISTENER, body), now_ms)


def respond(node: Node, source: int, body: ResponseBody, now_ms: int = NOW_MS) -> Ready:
    """Answer the request that a node has sent to another."""
    in_flight = node.connections.by_id[source]
    assert isinstance(in_flight, InFlight), in_flight
    return step(node, Response(source, in_flight.correlation_id, body), now_ms)


def reply(ready: Ready) -> object:
    """Return the one reply to `ask`."""
    (found,) = (reply.body for reply in ready.replies if reply.request_id == 77)
    return found
