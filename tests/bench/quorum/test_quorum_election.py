"""The times of an election in the logs of its voters."""

import pytest

from bench.quorum.election_log import Round, round_after

STEWARD = """
{"time": "2026-11-25T10:00:00.100Z", "level": "INFO", "message": "Started an election", "epoch": 4}
{"time": "2026-11-25T10:00:00.105Z", "level": "INFO", "message": "Quorum's epoch or leader changed", "epoch": 5, "leader": null}
{"time": "2026-11-25T10:00:00.107Z", "level": "INFO", "message": "Quorum's epoch or leader changed", "epoch": 5, "leader": 2}
{"time": "2026-11-25T10:00:09.500Z", "level": "INFO", "message": "Started an election", "epoch": 5}
{"time": "2026-11-25T10:00:09.750Z", "level": "INFO", "message": "Quorum's epoch or leader changed", "epoch": 6, "leader": %d}
"""

KAFKA = """
[2026-11-25 10:00:00,100] INFO [RaftManager id=2] Completed transition to ProspectiveState(epoch=4, leaderId=OptionalInt[1]) (o.a.k.raft.QuorumState)
[2026-11-25 10:00:00,180] INFO [RaftManager id=2] Completed transition to CandidateState(localId=2, epoch=5) (o.a.k.raft.QuorumState)
[2026-11-25 10:00:00,350] INFO [RaftManager id=2] Completed transition to Leader(localVoterNode=VoterNode(), epoch=5) (o.a.k.raft.QuorumState)
"""


def milliseconds(won: Round) -> int:
    """Return what a round took."""
    return round((won.elected_s - won.started_s) * 1000)


def test_a_round_is_from_the_start_of_the_election_to_the_leadership_of_its_voter() -> None:
    """P6. Both are in the log of the voter that won."""
    assert milliseconds(round_after(4, [(2, STEWARD % 2)])) == 7
    assert milliseconds(round_after(4, [(2, KAFKA)])) == 250


def test_the_round_of_another_voter_or_of_an_earlier_epoch_is_left_out() -> None:
    """P6. The logs have all elections so far, and those that others won."""
    assert milliseconds(round_after(5, [(1, ""), (2, STEWARD % 2)])) == 250
    with pytest.raises(ValueError, match="no election after epoch 5"):
        round_after(5, [(2, STEWARD % 3), (3, KAFKA)])
