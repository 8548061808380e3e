"""Progress of the replicas that fetch from a leader, and the high watermark that follows from it (Kafka's LeaderState)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from controller_core.quorum.changed import changed
from controller_core.quorum.rules import CAUGHT_UP_WITHIN_MS, OBSERVER_SESSION_MS
from controller_core.quorum.voters import Endpoints, ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class Progress:
    """A replica as its leader sees it. `end_offset` is its last fetch offset: everything before it is on the replica's disk.

    Of the leader itself it is the end of what its own flushes have made durable.
    """

    key: ReplicaKey
    endpoints: Endpoints = ()
    end_offset: int | None = None
    last_fetch_ms: int | None = None
    leader_end_offset: int | None = None
    """The leader's end offset at the last fetch."""
    last_caught_up_ms: int | None = None

    def fetched(self, offset: int, leader_end_offset: int, now_ms: int) -> "Progress":
        """Return the progress after a fetch from an offset.

        A replica has caught up now if it fetches from the leader's end, and at its last fetch if it fetches from where the end was then.
        """
        caught_up = self.last_caught_up_ms
        if offset >= leader_end_offset:
            caught_up = now_ms
        elif self.leader_end_offset is not None and offset >= self.leader_end_offset:
            caught_up = max(caught_up or 0, self.last_fetch_ms or 0)
        return changed(
            self,
            end_offset=offset,
            last_fetch_ms=max(self.last_fetch_ms or 0, now_ms),
            leader_end_offset=leader_end_offset,
            last_caught_up_ms=caught_up,
        )

    def can_become_voter(self, now_ms: int) -> bool:
        """Whether the replica has caught up and fetched in the last hour, so that it does not hold the high watermark back."""
        return (
            self.last_caught_up_ms is not None
            and self.last_fetch_ms is not None
            and self.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )


@dataclass(frozen=True, slots=True)
class Replicas:
    """Progress of the voters by id, and of the observers by key."""

    voters: Mapping[int, Progress]
    observers: Mapping[ReplicaKey, Progress]

    @staticmethod
    def start(voters: VoterSet) -> "Replicas":
        """Return the progress at the start of an epoch: nothing is known."""
        return Replicas({voter.key.id: Progress(voter.key, voter.endpoints) for voter in voters.voters}, {})

    def find(self, key: ReplicaKey) -> Progress | None:
        """Return the progress of a voter or observer."""
        voter = self.voters.get(key.id)
        return voter if voter is not None and voter.key.accepts(key) else self.observers.get(key)

    def is_voter(self, key: ReplicaKey) -> bool:
        """Whether a replica is one of the voters."""
        voter = self.voters.get(key.id)
        return voter is not None and voter.key.accepts(key)

    def update(self, key: ReplicaKey, progress: Progress) -> "Replicas":
        """Return the replicas with new progress of one of them."""
        if self.is_voter(key):
            return changed(self, voters={**self.voters, key.id: progress})
        return changed(self, observers={**self.observers, key: progress})

    def with_voters(self, voters: VoterSet) -> "Replicas":
        """Return the replicas under another voter set; a voter that left it goes on as an observer, and the reverse."""
        new: dict[int, Progress] = {}
        observers = dict(self.observers)
        for voter in voters.voters:
            known = self.find(voter.key) or Progress(voter.key)
            observers.pop(voter.key, None)
            new[voter.key.id] = changed(known, key=voter.key, endpoints=voter.endpoints)
        for node_id, progress in self.voters.items():
            if node_id not in new or not progress.key.accepts(new[node_id].key):
                observers.setdefault(progress.key, changed(progress, endpoints=()))
        return Replicas(new, observers)

    def without_silent_observers(self, now_ms: int, own: ReplicaKey) -> "Replicas":
        """Return the replicas without observers that have not fetched for five minutes."""
        kept = {
            key: progress
            for key, progress in self.observers.items()
            if key == own or now_ms - (progress.last_fetch_ms or 0) < OBSERVER_SESSION_MS
        }
        return self if len(kept) == len(self.observers) else changed(self, observers=kept)

    def by_descending_end(self) -> list[Progress]:
        """Return the voters, those with the longest logs first."""
        return sorted(self.voters.values(), key=_descending_end)

    def majority_end(self) -> int | None:
        """Return the highest offset up to which a majority of the voters has the log on disk; None if no majority is known.

        >>> ends = {1: 9, 2: 4, 3: 7}
        >>> Replicas({id: Progress(ReplicaKey(id), end_offset=end) for id, end in ends.items()}, {}).majority_end()
        7
        """
        return self.by_descending_end()[len(self.voters) // 2].end_offset


def _descending_end(progress: Progress) -> tuple[int, tuple[int, int]]:
    end = -1 if progress.end_offset is None else progress.end_offset
    return -end, progress.key.order()


def ids_of(replicas: Iterable[Progress]) -> tuple[int, ...]:
    """Return the ids of replicas, ascending."""
    return tuple(sorted(progress.key.id for progress in replicas))
