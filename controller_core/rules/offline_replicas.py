"""Offline replicas of live brokers: in a failed log directory (KIP-112), or refused by their broker.

A broker reports this per partition in its response to a LeaderAndIsr (KAFKA_STORAGE_ERROR). Such a replica then
counts as a replica on a dead broker: `RepairPartitions` elects another leader and removes it from the ISR, it is not elected, and no
leader may add it to the ISR. It is online again when a later response has no error for it, or when its broker registers again, since
only a restart brings a directory back. A topic with such a replica is not deleted until then, since its log would remain.

A broker may refuse a replica with another error (`Cluster.refused_replicas`). Once another member of the ISR has accepted the
partition, the refused replica is offline by the same rules. It does not block a deletion: StopReplica deletes a log by its name, so
the log that caused the error is deleted with the topic.

Offline replicas are rare. Elections over columns therefore ignore them, and their results for rows with offline replicas are replaced
with those of the plain selectors, each with its own set of live replicas.

`zookeeper_mode.leader_and_isr_answers` decides which replicas are offline. Source: KafkaController.processLeaderAndIsrResponseReceived,
ControllerContext.replicasOnOfflineDirs.
"""

from collections.abc import Callable

import numpy as np

from controller_core.model import BoolArray, Cluster, IntArray
from controller_core.model.columns import pad, positions_of, widen
from controller_core.rules.election import Election
from controller_core.rules.election_columns import Elections


def offline_flags(cluster: Cluster, rows: IntArray, ids: IntArray) -> BoolArray:
    """Return flags of ids (shape (rows,) or (rows, width)): whether the replica of that row is offline on a live broker."""
    flags = np.zeros(ids.shape, dtype=np.bool_)
    for position in positions_of(cluster.offline_replicas, rows):
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
    affected = positions_of(cluster.offline_replicas, rows)
    if not affected:
        return elections
    leader, isr = elections.leader.copy(), elections.isr.copy()
    unclean, reason = elections.unclean.copy(), elections.reason.copy()
    for position in affected:
        elected = elect(position, int(rows[position]))
        leader[position], unclean[position], reason[position] = elected.leader, elected.unclean, elected.reason
        isr[position] = widen(pad([elected.isr]), isr.shape[1])[0]
    return Elections(leader, isr, unclean, reason)
