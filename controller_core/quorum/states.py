"""States of a node, and the votes of an election. Times are in milliseconds of the shell's clock, which need not be that of the day.

`Voted` of older descriptions is Unattached or Prospective with a `voted` key; an observer is a role, not a state: a node that is in no
voter set it knows, and is Unattached or Follower.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from controller_core.quorum import batches, messages, progress
from controller_core.quorum.changed import changed
from controller_core.quorum.voters import Endpoints, ReplicaKey, Voter, VoterSet


@dataclass(frozen=True, slots=True)
class Votes:
    """Votes: voters are granting, rejecting, or have not answered."""

    voters: frozenset[ReplicaKey]
    granted: frozenset[ReplicaKey] = frozenset()
    rejected: frozenset[ReplicaKey] = frozenset()

    @staticmethod
    def start(voters: Iterable[ReplicaKey], own: ReplicaKey) -> "Votes":
        """Return the votes of a new election, in which the node itself has voted for itself."""
        keys = frozenset(voters)
        return Votes(keys, granted=frozenset(key for key in keys if key.accepts(own)))

    @property
    def majority(self) -> int:
        """Number of votes that wins."""
        return len(self.voters) // 2 + 1

    @property
    def is_won(self) -> bool:
        """Whether a majority has granted its vote."""
        return len(self.granted) >= self.majority

    @property
    def is_lost(self) -> bool:
        """Whether too few voters are left for a majority."""
        return len(self.voters) - len(self.rejected) < self.majority

    @property
    def missing(self) -> tuple[ReplicaKey, ...]:
        """Voters without an answer, in order."""
        return tuple(sorted(self.voters - self.granted - self.rejected, key=ReplicaKey.order))

    def record(self, voter_id: int, *, granted: bool) -> "Votes":
        """Return the votes with a voter's answer. Only the first answer of a voter counts; an id that is no voter's changes nothing."""
        voter = next((key for key in self.missing if key.id == voter_id), None)
        if voter is None:
            return self
        if granted:
            return changed(self, granted=self.granted | {voter})
        return changed(self, rejected=self.rejected | {voter})


NEVER = (1 << 63) - 1
"""Time that does not come: the election timeout of an observer."""


@dataclass(frozen=True, slots=True)
class Unattached:
    """The node knows an epoch, but does not follow its leader: it is not known, or how to reach it is not."""

    epoch: int
    election_due_ms: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class Prospective:
    """The node asks whether others would vote for it, before it raises its epoch (KIP-996)."""

    epoch: int
    election_due_ms: int
    votes: Votes
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """The node asks for votes in an epoch in which it has voted for itself."""

    epoch: int
    election_due_ms: int
    votes: Votes
    retries: int = 1
    """Number of elections in a row; only Kafka 3's rules use it."""
    backoff_until_ms: int | None = None
    """Kafka 3's rules: end of the wait after a lost election."""


@dataclass(frozen=True, slots=True)
class SnapshotFetch:
    """A snapshot that is being fetched. `position` is the number of bytes that are there."""

    id: batches.Position
    position: int = 0


@dataclass(frozen=True, slots=True)
class Follower:
    """The node fetches from the leader of its epoch."""

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    fetch_timeout_ms: int
    """Time without a successful fetch after which a voter campaigns: near the setting, drawn for this leader."""
    fetch_due_ms: int
    """End of the fetch timeout; a successful fetch starts it again."""
    update_due_ms: int
    """Time of the next request to change the voter set: update, add or remove."""
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    """Whether it has fetched from this leader; then it grants no pre-vote."""
    has_updated_leader: bool = False
    """At kraft.version 0: whether the leader has this voter's endpoints and versions."""
    fetching: SnapshotFetch | None = None


@dataclass(frozen=True, slots=True)
class DelayedFetch:
    """A Fetch that is answered when there is news, at the latest at a time."""

    request_id: int
    listener: str
    request: messages.FetchRequest
    due_ms: int


@dataclass(frozen=True, slots=True)
class DelayedFetches:
    """Fetches that wait at a leader, by replica: one of each."""

    by_replica: Mapping[ReplicaKey, DelayedFetch] = field(default_factory=dict)
    due_ms: int = NEVER
    """Time before which none has waited long enough."""
    pause_end_ms: int = 0
    """Time before which observers are not answered with records or commits."""
    observers_have_news: bool = False
    """Whether there are commits that observers do not know, so that they are answered at the end of the pause."""


@dataclass(frozen=True, slots=True)
class AddingVoter:
    """A voter is being added: first its versions are asked for, then its record is committed."""

    request_id: int | None
    """None once it is answered."""
    voter: Voter
    ack_when_committed: bool
    due_ms: int
    offset: int | None = None
    """Offset of the Voters record."""


@dataclass(frozen=True, slots=True)
class RemovingVoter:
    """A voter is being removed: its record is committed."""

    request_id: int
    due_ms: int
    offset: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The node leads its epoch."""

    epoch: int
    start_offset: int
    """Log end when it was elected. Nothing is committed before a record from here on is."""
    replicas: progress.Replicas
    check_quorum_due_ms: int
    begin_epoch_due_ms: int
    fetched: frozenset[int] = frozenset()
    """Voters that fetched since a majority last did."""
    delayed: DelayedFetches = DelayedFetches()
    change: AddingVoter | RemovingVoter | None = None
    """The one change of the voter set that is under way."""
    reported_voters: VoterSet | None = None
    """At kraft.version 0: the voters with what they have reported of themselves, which an upgrade writes."""
    requested_version: int | None = None
    """Level of kraft.version that was appended and is not yet the log's."""
    is_resigning: bool = False


@dataclass(frozen=True, slots=True)
class Resigned:
    """The node led its epoch, and hands over. It does not vote in this epoch, nor append in it again."""

    epoch: int
    election_due_ms: int
    unacknowledged: frozenset[int]
    successors: tuple[ReplicaKey, ...] = ()


State = Unattached | Prospective | Candidate | Follower | Leader | Resigned
