"""The quorum of a KRaft cluster in the status of a Cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from reconciler.resources.metadata import RawObject


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """Epoch of the leader, and ids of nodes, ascending; offsets are left out, because they change with each read."""

    leader_epoch: int
    voter_ids: tuple[int, ...] = ()
    out_of_sync_voter_ids: tuple[int, ...] = ()
    out_of_sync_observer_ids: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the API's form; None takes away."""
        return {
            "leaderEpoch": self.leader_epoch,
            "voterIds": list(self.voter_ids),
            "outOfSyncVoterIds": list(self.out_of_sync_voter_ids) or None,
            "outOfSyncObserverIds": list(self.out_of_sync_observer_ids) or None,
        }


def read_quorum(raw: RawObject | None) -> QuorumStatus | None:
    """Read `status.quorum`."""
    if raw is None:
        return None
    return QuorumStatus(
        leader_epoch=int(raw["leaderEpoch"]),
        voter_ids=tuple(raw.get("voterIds") or ()),
        out_of_sync_voter_ids=tuple(raw.get("outOfSyncVoterIds") or ()),
        out_of_sync_observer_ids=tuple(raw.get("outOfSyncObserverIds") or ()),
    )
