"""Leader election for one partition: the selectors of Kafka's controllers.

Each is one function of plain values and returns the choice with its reason. They determine leader and ISR;
`partition_change` determines the epochs. `election_columns` has the selectors that events with many partitions need, over whole
columns, and the first leader of a new partition; this module is its plain twin.

    selector            the leader is the first of ...                    the new ISR is
    elect_offline       assignment, live and in the ISR                   the ISR's live members
      unclean           assignment, live                                  only the leader
    elect_online        the current leader, live and in service; else as elect_offline, with the last known leader before an
                        unclean one
    elect_reassigned    target, live and in the ISR                       the same
    elect_preferred     only the assignment's first, live and in the ISR  the same
    elect_shutdown      assignment, in the ISR, live, not shutting down   the ISR without those that shut down

Without a candidate the leader is NO_LEADER and the ISR stays as it is. Invariants: C1
(leader in the ISR), C2 (ISR within the assignment if it was before), C7 (unclean only if allowed and no ISR member is
live), C8 (a broker that shuts down leads nothing afterwards).

`elect_online` is KRaft's (PartitionChangeBuilder.electAnyLeader of Kafka 4.3). Its replicas "in service" are the ISR or, where that is empty,
the eligible leader replicas (KIP-966). A suspected broker is elected only where no other one in service can be: its connection with
its heartbeats ended, so that it may be dead although its session has not expired (ADR 57).

Source: Kafka 3.9's Election and PartitionLeaderElectionAlgorithms (protocol notes, Z62 to Z64). "Live" excludes brokers that are
shutting down, except for elect_shutdown, and replicas in a failed log directory: callers pass the set of live replicas of the
partition. An ISR keeps its order.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import IntEnum

from controller_core.model import NO_LEADER

Replicas = tuple[int, ...]


class ElectionReason(IntEnum):
    """Reason of an election's result; below zero no leader was elected. Fits an int8 column."""

    LIVE_IN_ISR = 1
    """A live replica in the ISR took over."""
    UNCLEAN = 2
    """No ISR member is live; the topic or the caller allows an unclean leader. Acknowledged records may be lost."""
    REASSIGNED = 3
    """A replica of the reassignment's target took over."""
    PREFERRED = 4
    """The first replica of the assignment took over."""
    SHUTDOWN = 5
    """Another replica took over from a broker that shuts down."""
    NEW = 6
    """The partition got its first leader."""
    LAST_KNOWN_LEADER = 7
    """No replica is in service; the last leader took over (KIP-966). Acknowledged records may be lost."""
    NO_REPLICA_ONLINE = -1
    """No replica that may lead is live (Kafka's NoReplicaOnlineException)."""
    PREFERRED_LEADER_NOT_AVAILABLE = -2
    """The preferred replica is not live or not in the ISR."""
    ELECTION_NOT_NEEDED = -3
    """The leader is the requested one already (Kafka's LeaderElectionNotNeededException)."""
    STATE_CHANGE_FAILED = -4
    """No other replica in the ISR can take over from the broker that shuts down."""


@dataclass(frozen=True, slots=True)
class Election:
    """Result of an election: leader (NO_LEADER for none), ISR, and reason.

    `unclean`: the leader was not in the ISR, and has to recover (leader recovery state RECOVERING, KIP-704).
    """

    leader: int
    isr: Replicas
    unclean: bool
    reason: ElectionReason

    @property
    def elected(self) -> bool:
        """Whether there is a new state to write."""
        return self.reason > 0


def elect_offline(
    assignment: Sequence[int],
    isr: Sequence[int],
    live: Collection[int],
    *,
    unclean_allowed: bool,
    suspected: Collection[int] = (),
) -> Election:
    """Elect a leader where there is no live one: a live member of the ISR, or else, if allowed, any live replica.

    >>> elect_offline([1, 2, 3], [3, 1, 2], {2, 3}, unclean_allowed=False)
    Election(leader=2, isr=(3, 2), unclean=False, reason=<ElectionReason.LIVE_IN_ISR: 1>)
    """
    online = among(assignment, live)
    if in_sync := among(online, isr):
        return Election(_first(in_sync, suspected), among(isr, live), False, ElectionReason.LIVE_IN_ISR)
    if online and unclean_allowed:
        leader = _first(online, suspected)
        return Election(leader, (leader,), True, ElectionReason.UNCLEAN)
    return no_leader(isr, ElectionReason.NO_REPLICA_ONLINE)


def _first(replicas: Replicas, suspected: Collection[int]) -> int:
    """Return the first replica whose broker is not suspected, or else the first one."""
    return next((replica for replica in replicas if replica not in suspected), replicas[0])


def elect_online(
    leader: int,
    assignment: Sequence[int],
    in_service: Sequence[int],
    live: Collection[int],
    *,
    unclean_allowed: bool,
    last_known: Sequence[int] = (),
    suspected: Collection[int] = (),
) -> Election:
    """Keep the leader if it is live and in service; else elect one that is, or the last known leader, or, if allowed, any live replica.

    >>> elect_online(-1, [1, 2, 3], [], {2, 3}, unclean_allowed=True, last_known=[3])
    Election(leader=3, isr=(3,), unclean=True, reason=<ElectionReason.LAST_KNOWN_LEADER: 7>)
    """
    if leader in live and leader in in_service:
        return Election(leader, tuple(in_service), False, ElectionReason.ELECTION_NOT_NEEDED)
    # With several entries the field does not have the last leader (PartitionChangeBuilder.canElectLastKnownLeader).
    if not in_service and len(last_known) == 1 and last_known[0] in live:
        return Election(last_known[0], (last_known[0],), True, ElectionReason.LAST_KNOWN_LEADER)
    return elect_offline(assignment, in_service, live, unclean_allowed=unclean_allowed, suspected=suspected)


def elect_reassigned(target: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Election:
    """Elect the first replica of a reassignment's target that is live and in the ISR."""
    candidates = among(among(target, live), isr)
    if not candidates:
        return no_leader(isr, ElectionReason.NO_REPLICA_ONLINE)
    return Election(candidates[0], tuple(isr), False, ElectionReason.REASSIGNED)


def elect_preferred(leader: int, assignment: Sequence[int], isr: Sequence[int], live: Collection[int]) -> Election:
    """Elect the first replica of the assignment, unless it is the leader already."""
    preferred = assignment[0]
    if preferred == leader:
        return Election(leader, tuple(isr), False, ElectionReason.ELECTION_NOT_NEEDED)
    if preferred not in live or preferred not in isr:
        return no_leader(isr, ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE)
    return Election(preferred, tuple(isr), False, ElectionReason.PREFERRED)


def elect_shutdown(
    assignment: Sequence[int], isr: Sequence[int], live: Collection[int], shutting_down: Collection[int]
) -> Election:
    """Move the leader off brokers that shut down; `live` includes these brokers.

    >>> elect_shutdown([1, 2, 3], [1, 2, 3], {1, 2, 3}, {1})
    Election(leader=2, isr=(2, 3), unclean=False, reason=<ElectionReason.SHUTDOWN: 5>)
    """
    online = among(assignment, live)
    staying = tuple(replica for replica in isr if replica not in shutting_down)
    if candidates := among(online, staying):
        return Election(candidates[0], staying, False, ElectionReason.SHUTDOWN)
    return no_leader(isr, ElectionReason.STATE_CHANGE_FAILED)


def among(replicas: Sequence[int], members: Collection[int]) -> Replicas:
    """Return the replicas that are members, in their order."""
    return tuple(replica for replica in replicas if replica in members)


def no_leader(isr: Sequence[int], reason: ElectionReason) -> Election:
    """Return an election without a leader: the ISR stays as it is."""
    return Election(NO_LEADER, tuple(isr), False, reason)
