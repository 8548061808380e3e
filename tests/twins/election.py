"""The plain twin of `election_columns.elect_new`; the other selectors' twins are in `controller_core.rules.election`."""

from collections.abc import Collection, Sequence

from controller_core.rules.election import Election, ElectionReason, among, no_leader


def elect_new(assignment: Sequence[int], live: Collection[int]) -> Election:
    """Give a new partition its first leader and ISR: every live replica, the first of them leading."""
    if online := among(assignment, live):
        return Election(online[0], online, False, ElectionReason.NEW)
    return no_leader((), ElectionReason.NO_REPLICA_ONLINE)
