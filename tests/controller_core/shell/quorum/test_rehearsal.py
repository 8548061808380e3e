"""Rehearsal of elections at the start of a node's process."""

from controller_core.shell.quorum.rehearsal import ELECTIONS, rehearse


def test_each_rehearsed_election_ends_with_a_leader_that_hands_over() -> None:
    """Otherwise the calls of a hand-over would be slow in the first real one."""
    actual = rehearse()
    assert actual == ELECTIONS
