"""Votes of one election, counted by the voters' keys as they were when it started."""

from collections.abc import Iterable
from dataclasses import dataclass

from controller_core.quorum.changed import changed
from controller_core.quorum.replicas import ReplicaKey


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
