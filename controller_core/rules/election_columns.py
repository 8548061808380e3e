"""Leader election for many partitions at once: the selectors of `election` over columns, and first leaders of new partitions.

Goals: the election of 200,000 partitions in a few milliseconds, with the same results as the plain twin row by row.
Constraints: numpy only, no Python object per partition, list order unchanged.

Columns: one row for each partition. Replica lists and ISRs are int32 of shape (n, width), in Kafka's order, padded on the
right with -1; the two may differ in width. Sets of brokers are flags by broker id (`PartitionColumns.flags`), one more than the
highest id, so that the padding, index -1, reads the False at the end. Leaders may be -1 for the same reason.

Algorithm: lists are converted into slots (all first replicas, all second ones, ...), each contiguous, and masks over them. A
choice between two numbers is arithmetic (`blend`): numpy's `where` branches on every row, which costs five times as much
if the rows differ. The resulting lists are views of the slots (Fortran order), without a copy.

A replica of a live broker can be offline: in a failed log directory (KIP-112), or refused by its broker. Offline replicas are rare.
Elections over columns therefore ignore them, and `elect_rows_with_offline_replicas` replaces their results for rows with offline
replicas by those of `election`, each with its own set of live replicas.

A broker reports a failed directory per partition in its response to a LeaderAndIsr (KAFKA_STORAGE_ERROR). Such a replica then
counts as a replica on a dead broker: `RepairPartitions` elects another leader and removes it from the ISR, it is not elected, and no
leader may add it to the ISR. It is online again when a later response has no error for it, or when its broker registers again, since
only a restart brings a directory back. A topic with such a replica is not deleted until then, since its log would remain.

A broker may refuse a replica with another error (`Cluster.refused_replicas`). Once another member of the ISR has accepted the
partition, the refused replica is offline by the same rules. It does not block a deletion: StopReplica deletes a log by its name, so
the log that caused the error is deleted with the topic.

`zookeeper_mode.leader_and_isr_answers` decides which replicas are offline. Source: KafkaController.processLeaderAndIsrResponseReceived,
ControllerContext.replicasOnOfflineDirs.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, Cluster, IntArray, columns
from controller_core.rules.election import Election, ElectionReason

FEW = 4
"""Up to this number, brokers are compared one by one; more are looked up by id. The usual event is one broker that leaves."""

ReasonArray = npt.NDArray[np.int8]
Slots = Sequence[IntArray]


@dataclass(frozen=True, slots=True, eq=False)
class Elections:
    """`election.Election` in columns over the same rows.

    leader int32 (n,), isr int32 (n, width of the ISR given), unclean bool (n,), reason int8 (n,).
    """

    leader: IntArray
    isr: IntArray
    unclean: BoolArray
    reason: ReasonArray

    @property
    def elected(self) -> BoolArray:
        """Rows that have a new state to write."""
        return self.reason > 0


def elect_offline(
    replicas: IntArray, isr: IntArray, live: BoolArray, unclean_allowed: BoolArray, suspected: BoolArray | None = None
) -> Elections:
    """Elect live members of the ISR, or else any live replica in rows where that is allowed (shape (n,)).

    Brokers in `suspected` are elected only where no other one can be.
    """
    slots, isr_slots = slots_of(replicas), slots_of(isr)
    online = flags_of(live, slots)
    in_sync = [flag & is_in(slot, isr_slots) for flag, slot in zip(online, slots, strict=True)]
    leader = _first_unsuspected(slots, in_sync, suspected)
    new_isr = drop_where(isr_slots, flags_of(~live, isr_slots))
    leaderless = np.flatnonzero(leader == NO_LEADER)
    new_isr[leaderless] = isr[leaderless]
    tried = leaderless[unclean_allowed[leaderless]]
    leader[tried] = _first_unsuspected([slot[tried] for slot in slots], [flag[tried] for flag in online], suspected)
    chosen = tried[leader[tried] != NO_LEADER]
    new_isr[chosen] = NO_BROKER
    new_isr[chosen, 0] = leader[chosen]
    elections = with_reasons(leader, new_isr, ElectionReason.LIVE_IN_ISR, ElectionReason.NO_REPLICA_ONLINE)
    elections.unclean[chosen] = True
    elections.reason[chosen] = ElectionReason.UNCLEAN
    return elections


def _first_unsuspected(slots: Slots, fits: list[BoolArray], suspected: BoolArray | None) -> IntArray:
    first = first_where(slots, fits)
    if suspected is None or not suspected.any():
        return first
    trusted = [fit & ~flag for fit, flag in zip(fits, flags_of(suspected, slots), strict=True)]
    better = first_where(slots, trusted)
    blend(first, better, better != NO_LEADER)
    return first


def elect_online(
    leader: IntArray,
    replicas: IntArray,
    in_service: IntArray,
    live: BoolArray,
    unclean_allowed: BoolArray,
    last_known: IntArray,
    suspected: BoolArray | None = None,
) -> Elections:
    """Keep leaders that are live and in service; else elect those that are, last known leaders, or (where allowed) any live replica."""
    stays = live.take(leader) & is_in(leader, slots_of(in_service)) & (leader != NO_LEADER)
    last = np.ascontiguousarray(last_known[:, 0])
    only_one = (last_known != NO_BROKER).sum(axis=1) == 1
    returns = ~stays & only_one & live.take(last) & ~columns.any_of(in_service != NO_BROKER)
    elections = elect_offline(replicas, in_service, live, unclean_allowed & ~returns, suspected)
    blend(elections.leader, last, returns)
    blend(elections.leader, leader, stays)
    elections.isr[returns] = NO_BROKER
    elections.isr[returns, 0] = last[returns]
    elections.isr[stays] = in_service[stays]
    elections.unclean[stays], elections.unclean[returns] = False, True
    elections.reason[returns] = ElectionReason.LAST_KNOWN_LEADER
    elections.reason[stays] = ElectionReason.ELECTION_NOT_NEEDED
    return elections


def elect_preferred(leader: IntArray, replicas: IntArray, isr: IntArray, live: BoolArray) -> Elections:
    """Elect each assignment's first replica where it is not the leader already."""
    preferred = np.ascontiguousarray(replicas[:, 0])
    not_needed = preferred == leader
    available = live.take(preferred) & is_in(preferred, slots_of(isr))
    new_leader = first_where([preferred], [available | not_needed])
    elections = with_reasons(new_leader, isr, ElectionReason.PREFERRED, ElectionReason.PREFERRED_LEADER_NOT_AVAILABLE)
    elections.reason[not_needed] = ElectionReason.ELECTION_NOT_NEEDED
    return elections


def elect_shutdown(replicas: IntArray, isr: IntArray, live: BoolArray, shutting_down: BoolArray) -> Elections:
    """Move leaders off brokers that shut down; `live` includes these brokers."""
    slots, isr_slots = slots_of(replicas), slots_of(isr)
    online, leaving = flags_of(live, slots), flags_of(shutting_down, slots)
    fits = [on & ~off & is_in(slot, isr_slots) for on, off, slot in zip(online, leaving, slots, strict=True)]
    leader = first_where(slots, fits)
    new_isr = drop_where(isr_slots, flags_of(shutting_down, isr_slots))
    failed = np.flatnonzero(leader == NO_LEADER)
    new_isr[failed] = isr[failed]
    return with_reasons(leader, new_isr, ElectionReason.SHUTDOWN, ElectionReason.STATE_CHANGE_FAILED)


def elect_new(replicas: IntArray, live: BoolArray) -> Elections:
    """Elect the first leaders of new partitions; the ISR contains the live replicas."""
    slots = slots_of(replicas)
    online = flags_of(live, slots)
    leader, isr = first_where(slots, online), drop_where(slots, [~flag for flag in online])
    return with_reasons(leader, isr, ElectionReason.NEW, ElectionReason.NO_REPLICA_ONLINE)


def with_reasons(leader: IntArray, isr: IntArray, elected: ElectionReason, failed: ElectionReason) -> Elections:
    """Return the elections with a reason for every row; none is unclean."""
    reason = np.full(len(leader), elected, dtype=np.int8)
    reason[leader == NO_LEADER] = failed
    return Elections(leader, isr, np.zeros(len(leader), dtype=np.bool_), reason)


def slots_of(lists: IntArray) -> Slots:
    """Convert lists into slots: all first ids, all second ones, ..., each contiguous."""
    return list(np.ascontiguousarray(lists.T))


def flags_of(flags: BoolArray, slots: Slots) -> list[BoolArray]:
    """Look up the flags of every broker in the slots. Raises IndexError for an id beyond the flags."""
    members = np.flatnonzero(flags)
    if 0 < members.size <= FEW:
        return [is_in(slot, list(members)) for slot in slots]
    return [flags.take(slot) for slot in slots]


def is_in(slot: IntArray, slots: Slots) -> BoolArray:
    """Return for each row whether the id is in one of the slots."""
    found: BoolArray = slot == slots[0]
    for other in slots[1:]:
        found |= slot == other
    return found


def first_where(slots: Slots, fits: list[BoolArray]) -> IntArray:
    """Return for each row the id in the first slot that fits, or NO_LEADER."""
    first = np.full(len(slots[0]), NO_LEADER, dtype=np.int32)
    for slot, fit in zip(slots, fits, strict=True):
        blend(first, slot, fit & (first == NO_LEADER))
    return first


def drop_where(slots: Slots, dropped: list[BoolArray]) -> IntArray:
    """Return the lists without the dropped ids, in their order, moved together to the left and padded again."""
    closed = np.stack(slots)
    # From the right, so that the ids behind a slot are already closed up when the slot is removed.
    for position in reversed(range(len(slots))):
        if dropped[position].any():
            for later in range(position, len(slots) - 1):
                blend(closed[later], closed[later + 1], dropped[position])
            blend(closed[-1], NO_BROKER, dropped[position])
    return closed.T


def blend(into: IntArray, other: IntArray | int, where: BoolArray) -> None:
    """Replace numbers with those of `other` in the rows of `where`, without a branch."""
    step = other - into
    step *= where
    into += step


def offline_flags(cluster: Cluster, rows: IntArray, ids: IntArray) -> BoolArray:
    """Return flags of ids (shape (rows,) or (rows, width)): whether the replica of that row is offline on a live broker."""
    flags = np.zeros(ids.shape, dtype=np.bool_)
    for position in columns.positions_of(cluster.offline_replicas, rows):
        flags[position] = np.isin(ids[position], list(cluster.offline_at(int(rows[position]))))
    return flags


def rows_led_by_offline_replica(cluster: Cluster) -> list[int]:
    """Return the rows whose leader is an offline replica on a live broker."""
    leader = cluster.columns.leader
    return [row for row, brokers in cluster.offline_replicas.items() if int(leader[row]) in brokers]


def elect_rows_with_offline_replicas(
    cluster: Cluster, rows: IntArray, elections: Elections, elect: Callable[[int, int], Election]
) -> Elections:
    """Replace the elections of rows with offline replicas: `elect` takes a position in `rows` and the row."""
    affected = columns.positions_of(cluster.offline_replicas, rows)
    if not affected:
        return elections
    leader, isr = elections.leader.copy(), elections.isr.copy()
    unclean, reason = elections.unclean.copy(), elections.reason.copy()
    for position in affected:
        elected = elect(position, int(rows[position]))
        leader[position], unclean[position], reason[position] = elected.leader, elected.unclean, elected.reason
        isr[position] = columns.widen(columns.pad([elected.isr]), isr.shape[1])[0]
    return Elections(leader, isr, unclean, reason)
