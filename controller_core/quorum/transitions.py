"""Transitions between the states of a node; no others exist.

| from | to | reason |
| --- | --- | --- |
| Unattached | Unattached | a higher epoch, or a vote |
| Unattached | Prospective | election timeout |
| Unattached | Candidate | election timeout (Kafka 3's rules) |
| Unattached | Follower | the leader of this or a higher epoch |
| Prospective | Unattached | a higher epoch, or a lost pre-vote without a known leader |
| Prospective | Prospective | a vote |
| Prospective | Candidate | a majority would vote for it, or a voter has no pre-vote |
| Prospective | Follower | the leader of this or a higher epoch, or a lost pre-vote with a known leader |
| Candidate | Unattached | a higher epoch |
| Candidate | Prospective | election timeout |
| Candidate | Candidate | end of the backoff (Kafka 3's rules) |
| Candidate | Leader | votes of a majority |
| Candidate | Follower | the leader of this or a higher epoch |
| Follower | Unattached | a higher epoch |
| Follower | Prospective | fetch timeout |
| Follower | Candidate | fetch timeout (Kafka 3's rules) |
| Follower | Follower | the leader of a higher epoch, or more endpoints of this leader |
| Leader | Unattached | a higher epoch |
| Leader | Follower | the leader of a higher epoch |
| Leader | Resigned | shutdown, request of the controller, no fetches from a majority, or removal from the voters |
| Resigned | Unattached | a higher epoch, or election timeout with the next epoch |
| Resigned | Prospective | it is the only voter, at the start of the process |
| Resigned | Candidate | election timeout (Kafka 3's rules) |
| Resigned | Follower | the leader of a higher epoch |

Observers are only Unattached or Follower; a leader that is removed from the voters counts as a voter here until that is committed. A process starts as
Unattached, Candidate, Follower or Resigned (start.py). The epoch never falls, and rises on the way to Candidate and out of Resigned.
"""

from collections.abc import Mapping

from controller_core.quorum.states import Candidate, Follower, Leader, Prospective, Resigned, State, Unattached

TRANSITIONS: Mapping[type[State], frozenset[type[State]]] = {
    Unattached: frozenset({Unattached, Prospective, Candidate, Follower}),
    Prospective: frozenset({Unattached, Prospective, Candidate, Follower}),
    Candidate: frozenset({Unattached, Prospective, Candidate, Leader, Follower}),
    Follower: frozenset({Unattached, Prospective, Candidate, Follower}),
    Leader: frozenset({Unattached, Follower, Resigned}),
    Resigned: frozenset({Unattached, Prospective, Candidate, Follower}),
}
"""The table of the docstring."""

KEEPS_EPOCH: Mapping[type[State], frozenset[type[State]]] = {
    Unattached: frozenset({Unattached, Prospective, Follower}),
    Prospective: frozenset({Unattached, Prospective, Follower}),
    Candidate: frozenset({Prospective, Leader, Follower}),
    Follower: frozenset({Prospective, Follower}),
    Leader: frozenset({Resigned}),
    Resigned: frozenset({Prospective}),
}
"""Transitions that may stay in the epoch; all others raise it."""


def check(before: State, after: State) -> None:
    """Assert that a transition is in the table, and that it raises the epoch where it must."""
    kinds = type(before).__name__, type(after).__name__
    assert type(after) in TRANSITIONS[type(before)], kinds
    if after.epoch == before.epoch:
        assert type(after) in KEEPS_EPOCH[type(before)], kinds
    assert after.epoch >= before.epoch, (kinds, before.epoch, after.epoch)
