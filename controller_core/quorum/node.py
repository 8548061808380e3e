"""A node of the quorum as one value: its state, its log's summary, its voters, its connections."""

from dataclasses import dataclass

from controller_core.quorum import batches, messages, rules, states
from controller_core.quorum.connections import Connections
from controller_core.quorum.log_view import LogView
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import NO_NODE, Endpoints, ReplicaKey, Voter, VoterSet, endpoint_of


@dataclass(frozen=True, slots=True)
class StoredElection:
    """Content of the quorum-state file: epoch, leader and vote. `voters` and `kraft_version` choose and fill the file's version."""

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    voters: tuple[int, ...] = ()
    kraft_version: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A node. Equal nodes do the same at the same message and time."""

    settings: rules.Settings
    state: states.State
    log: LogView
    history: VoterHistory
    stored: StoredElection
    seed: int
    connections: Connections
    high_watermark: int | None = None
    """As known in this state: a new leader knows none before its first commit."""
    installing: batches.Position | None = None
    """Snapshot that the shell checks and installs. In the meantime the node does not fetch, and starts no election."""
    shutdown_due_ms: int | None = None
    is_stopped: bool = False
    announced: tuple[int, int | None] = (-1, None)
    """Epoch and leader that the shell was last notified of."""

    @property
    def key(self) -> ReplicaKey:
        """The node's own key."""
        return self.settings.key

    @property
    def id(self) -> int:
        """The node's own id."""
        return self.settings.key.id

    @property
    def epoch(self) -> int:
        """The epoch that the node is in."""
        return self.state.epoch

    @property
    def voters(self) -> VoterSet:
        """The voter set that counts: the latest in the log."""
        return self.history.voters

    @property
    def is_voter(self) -> bool:
        """Whether the node is a voter; else it is an observer."""
        return self.voters.is_voter(self.key)

    @property
    def may_campaign(self) -> bool:
        """Whether the node may ask for votes: it is a voter, or was one before changes that may not be committed.

        A leader that was appending its own removal may have the longest log of all; if it no longer asked for votes, a quorum of two could
        never elect a leader again (ADR 30; Kafka's node would not ask).
        """
        return self.is_voter or any(
            voters.is_voter(self.key) for voters in self.history.possible(self.log.high_watermark)
        )

    @property
    def is_campaigning(self) -> bool:
        """Whether the node asks for votes or pre-votes."""
        return isinstance(self.state, states.Prospective | states.Candidate)

    @property
    def is_only_voter(self) -> bool:
        """Whether the node is the only voter."""
        return self.voters.is_only_voter(self.key)

    @property
    def own_voter(self) -> Voter:
        """The node as the voter set should list it."""
        return Voter(self.key, self.settings.endpoints, self.settings.kraft_versions)

    @property
    def leader_id(self) -> int | None:
        """The leader of the epoch, where it is known."""
        match self.state:
            case states.Leader() | states.Resigned():
                return self.id
            case states.Candidate():
                return None
            case (
                states.Unattached(leader_id=leader_id)
                | states.Prospective(leader_id=leader_id)
                | states.Follower(leader_id=leader_id)
            ):
                return leader_id

    @property
    def has_remote_leader(self) -> bool:
        """Whether another node is known as the leader of the epoch."""
        return self.leader_id not in {None, self.id}

    @property
    def leader_endpoints(self) -> Endpoints:
        """Endpoints of the leader, where they are known."""
        match self.state:
            case states.Leader() | states.Resigned():
                return self.settings.endpoints
            case states.Prospective(leader_endpoints=endpoints) | states.Follower(leader_endpoints=endpoints):
                return endpoints
            case _:
                return ()

    @property
    def voted(self) -> ReplicaKey | None:
        """Whom the node has voted for in its epoch."""
        match self.state:
            case states.Candidate():
                return self.key
            case states.Unattached(voted=voted) | states.Prospective(voted=voted) | states.Follower(voted=voted):
                return voted
            case _:
                return None

    @property
    def election(self) -> StoredElection:
        """What quorum-state must have before the node acts in its current state."""
        return StoredElection(self.epoch, self.leader_id, self.voted, self.voters.ids, self.history.kraft_version)

    def leadership(self, listener: str) -> messages.Leadership:
        """Return epoch and leader for a response on a listener.

        A leader whose endpoints are known neither here nor from the voter set is not named: a Java node that is to follow a leader
        without endpoints exits.
        """
        leader_id = self.leader_id
        endpoints = self.leader_endpoints or (() if leader_id is None else self.voters.endpoints(leader_id))
        if leader_id is None or not endpoints:
            return messages.Leadership(self.epoch, NO_NODE)
        return messages.Leadership(self.epoch, leader_id, endpoint_of(endpoints, listener))
