"""Plain twin of `election_columns.elect_new`; the other selectors' twins are in `controller_core.rules.election`."""

from collections.abc import Collection, Sequence

from controller_core.rules.election import Election, ElectionReason, among, no_leader


def elect_new(assignment: Sequence[int], live: Collection[int]) -> Election:
    """Elect the first leader of a new partition: the first live replica; the ISR is all live ones."""
    if online := among(assignment, live):
        return Election(online[0], online, False, ElectionReason.NEW)
    return no_leader((), ElectionReason.NO_REPLICA_ONLINE)
