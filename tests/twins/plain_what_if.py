"""Plain twin of the outage of a what-if: one partition after another, with the selectors of `rules.election`."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from controller_core.model import NO_LEADER
from controller_core.model.partition_health import is_under_min_isr
from controller_core.rules.election import elect_offline, elect_shutdown


@dataclass(frozen=True, slots=True)
class PlainPartition:
    """A partition before the scenario; its leader is live or -1, its ISR contains live brokers."""

    replicas: Sequence[int]
    isr: Sequence[int]
    leader: int
    min_isr: int


@dataclass(frozen=True, slots=True)
class PlainOutage:
    """One partition after the scenario."""

    leader: int
    under_min_isr: bool
    needs_unclean: bool
    no_replica_left: bool


def plain_outage(
    partition: PlainPartition, live: Collection[int], gone: Collection[int], *, drain: bool
) -> PlainOutage:
    """Return what becomes of a partition when brokers fail, or shut down in a controlled way."""
    remaining = [broker for broker in live if broker not in gone]
    leader = partition.leader
    if leader in gone:
        if drain:
            leader = elect_shutdown(partition.replicas, partition.isr, live, gone).leader
        else:
            leader = elect_offline(partition.replicas, partition.isr, remaining, unclean_allowed=False).leader
    in_sync = [broker for broker in partition.isr if broker in remaining]
    has_replica = any(broker in remaining for broker in partition.replicas)
    offline = leader == NO_LEADER
    return PlainOutage(
        leader,
        not offline and is_under_min_isr(len(in_sync), partition.min_isr),
        offline and has_replica,
        offline and not has_replica,
    )
