"""Offline replicas of live brokers: in a failed log directory (KIP-112), or refused by their broker.

A broker says so in its answer to a LeaderAndIsr, partition by partition (KAFKA_STORAGE_ERROR). From then on such a replica
counts like one on a dead broker: `RepairPartitions` takes its leadership, and takes it out of the ISR, nobody elects it, and no leader may
take it back in. It is online again when a later answer has no error for it, or when its broker registers anew, since only a
restart brings a directory back. A topic with such a replica is not deleted until then: its log would stay behind.

A broker may refuse a replica with another error (`refused_replicas`). Once another member of the ISR has taken the partition
on, the refused replica is offline by the same rules. It does not block a deletion: StopReplica deletes a log by its name, so
a log in the way is deleted with the topic.

They are few, and mostly there are none. So elections over columns know nothing of them: what these say of the rows concerned
is replaced by what the plain selectors say, each with its own set of live replicas.

Source: KafkaController.processLeaderAndIsrResponseReceived, ControllerContext.replicasOnOfflineDirs. Leaves out how the answer
is read (`shell.brokers.answers`).
"""

from collections.abc import Callable

import numpy as np

from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, pad, positions_of, widen
from controller_core.rules.election import Election
from controller_core.rules.election_columns import Elections


def offline_flags(cluster: Cluster, rows: IntArray, ids: IntArray) -> BoolArray:
    """Flag the ids (shape (rows,) or (rows, width)) whose replica of that row is offline although the broker lives."""
    flags = np.zeros(ids.shape, dtype=np.bool_)
    for place in positions_of(cluster.offline_replicas, rows):
        flags[place] = np.isin(ids[place], list(cluster.offline_at(int(rows[place]))))
    return flags


def rows_led_by_offline_replica(cluster: Cluster) -> list[int]:
    """List the rows whose leader's replica is offline although the broker lives."""
    leader = cluster.columns.leader
    return [row for row, brokers in cluster.offline_replicas.items() if int(leader[row]) in brokers]


def elect_rows_with_offline_replicas(
    cluster: Cluster, rows: IntArray, elections: Elections, elect: Callable[[int, int], Election]
) -> Elections:
    """Replace what columns say of rows with offline replicas by a plain selector's word: `elect` takes a place in `rows` and the row."""
    concerned = positions_of(cluster.offline_replicas, rows)
    if not concerned:
        return elections
    leader, isr = elections.leader.copy(), elections.isr.copy()
    unclean, reason = elections.unclean.copy(), elections.reason.copy()
    for place in concerned:
        elected = elect(place, int(rows[place]))
        leader[place], unclean[place], reason[place] = elected.leader, elected.unclean, elected.reason
        isr[place] = widen(pad([elected.isr]), isr.shape[1])[0]
    return Elections(leader, isr, unclean, reason)
