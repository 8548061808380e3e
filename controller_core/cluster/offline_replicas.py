"""Offline replicas of live brokers: in a failed log directory (KIP-112), or refused by their broker.

A broker says so in its answer to a LeaderAndIsr, partition by partition (KAFKA_STORAGE_ERROR). From then on such a replica
counts like one on a dead broker: `Heal` takes its leadership, and takes it out of the ISR, nobody elects it, and no leader may
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

from controller_core.cluster.election import Election
from controller_core.cluster.election_columns import Elections
from controller_core.cluster.refused_replicas import ask_others, newly_refused, refused_but_taken
from controller_core.model.changes import ReplicasObserved
from controller_core.model.cluster import Cluster
from controller_core.model.columns import BoolArray, IntArray, pad, places_of, widen
from controller_core.model.decision import Decision, decision
from controller_core.model.events import (
    AdvanceDeletions,
    AdvanceMoves,
    Event,
    Heal,
    ReplaceStaleLogs,
    ReplicasAnswered,
)
from controller_core.model.ids import TopicPartition


def decide_replicas_answered(cluster: Cluster, event: ReplicasAnswered) -> Decision[None]:
    """Take note of replicas that went offline or came back, and do what is possible or needed now."""
    known = cluster.brokers.get(event.broker)
    if known is None or known.epoch != event.broker_epoch:
        return decision()
    offline = tuple(name for name in event.offline if _is_held(cluster, event.broker, name, offline=False))
    online = tuple(name for name in event.online if _is_held(cluster, event.broker, name, offline=True))
    refused = newly_refused(cluster, event)
    lost = refused_but_taken(cluster, event)
    topics = frozenset(name.topic for name in (*offline, *online, *refused, *(name for _, name in lost)))
    if not topics:
        return decision()
    # A deletion may be blocked by it from now on, or no longer.
    later = (AdvanceDeletions(),) if cluster.deletions else ()
    changes = [ReplicasObserved(event.broker, offline, online, refused)] if offline or online or refused else []
    then: list[Event] = [Heal(topics), AdvanceMoves(topics)]
    for broker in sorted({broker for broker, _ in lost}):
        names = tuple(name for one, name in lost if one == broker)
        changes.append(ReplicasObserved(broker, names, ()))
        # Only after the leadership and the ISR have left the broker.
        then.append(ReplaceStaleLogs(broker, cluster.brokers[broker].epoch, names))
    return decision(*changes, sends=ask_others(cluster, event.broker, refused), then=then, later=later)


def _is_held(cluster: Cluster, broker: int, name: TopicPartition, *, offline: bool) -> bool:
    """Whether a broker holds a replica that counts as online or offline (a refused one: either) so far."""
    row = cluster.row_of(*name)
    if row is None or broker not in cluster.columns.replicas_of(row):
        return False
    is_offline = broker in cluster.offline_at(row)
    return is_offline or broker in cluster.refused_at(row) if offline else not is_offline


def offline_among(cluster: Cluster, rows: IntArray, ids: IntArray) -> BoolArray:
    """Flag the ids (shape (rows,) or (rows, width)) whose replica of that row is offline although the broker lives."""
    flags = np.zeros(ids.shape, dtype=np.bool_)
    for place in places_of(cluster.offline_replicas, rows):
        flags[place] = np.isin(ids[place], list(cluster.offline_at(int(rows[place]))))
    return flags


def led_offline(cluster: Cluster) -> list[int]:
    """List the rows whose leader's replica is offline although the broker lives."""
    leader = cluster.columns.leader
    return [row for row, brokers in cluster.offline_replicas.items() if int(leader[row]) in brokers]


def elect_apart(
    cluster: Cluster, rows: IntArray, elections: Elections, elect: Callable[[int, int], Election]
) -> Elections:
    """Replace what columns say of rows with offline replicas by a plain selector's word: `elect` takes a place in `rows` and the row."""
    concerned = places_of(cluster.offline_replicas, rows)
    if not concerned:
        return elections
    leader, isr = elections.leader.copy(), elections.isr.copy()
    unclean, reason = elections.unclean.copy(), elections.reason.copy()
    for place in concerned:
        elected = elect(place, int(rows[place]))
        leader[place], unclean[place], reason[place] = elected.leader, elected.unclean, elected.reason
        isr[place] = widen(pad([elected.isr]), isr.shape[1])[0]
    return Elections(leader, isr, unclean, reason)
