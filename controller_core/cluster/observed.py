"""What was found written by someone else: topics that appeared or vanished.

Brokers in ZooKeeper mode create topics by themselves (auto-creation, internal topics), over every broker they know of, and
they know the controller as one. Such an assignment is repaired before the topic becomes online, so that no assignment ever
names the controller's id (protocol notes, Z22): each occurrence is replaced by the live broker that has the fewest replicas in the
topic and none of this partition. Where there is no such broker the partition loses that replica.

Leaves out topics that grew by someone else's hand.
"""

from collections import Counter
from collections.abc import Mapping

import numpy as np

from controller_core.model.changes import MovesStarted, Origin, TopicAdded, TopicRemoved
from controller_core.model.cluster import Cluster
from controller_core.model.columns import pad
from controller_core.model.decision import Decision, decision
from controller_core.model.events import AdvanceDeletions, AdvanceMoves, Event, Heal, TopicRecord, TopicsRead
from controller_core.model.move import Move, Replicas, plan_move, without


def decide_topics_read(cluster: Cluster, event: TopicsRead) -> Decision[None]:
    """Forget topics that vanished, and take in those that appeared; a name in both lists is another topic by now."""
    removed = [TopicRemoved(name, Origin.OBSERVED) for name in event.removed if name in cluster.topics]
    known = cluster.topics.keys() - set(event.removed)
    added = [added_topic(cluster, record) for record in event.added if record.name not in known]
    then: list[Event] = []
    if added:
        names = frozenset(change.name for change in added)
        then = [Heal(names), AdvanceMoves(names)]
    if removed and cluster.deletions:
        then.append(AdvanceDeletions())
    return decision(*removed, *added, then=then)


def decide_repair_assignments(cluster: Cluster) -> Decision[None]:
    """Move partitions away from the controller's id, if it was assigned while no Steward controller was active.

    Such a partition may be in service, so it is moved like any other: the new replica joins the ISR first. One whose ISR
    contains the id is left alone: a broker with this id has its records (own_replicas).
    """
    moves: dict[str, dict[int, Move]] = {}
    hosted = cluster.columns.hosted_by(cluster.columns.flags([cluster.controller_id]))
    for topic, rows in cluster.by_topic(hosted.tolist()):
        if topic.name in cluster.deletions:
            continue
        idle = [row for row in rows if row not in cluster.moves and not _has_records(cluster, row)]
        present = {cluster.name_of(row).partition: cluster.columns.replicas_of(row) for row in idle}
        repaired = repair(present, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        # Where no broker could take its place, nothing changes: there is no move to start.
        wanted = {name: target for name, target in repaired.items() if target != present[name]}
        if wanted:
            moves[topic.name] = {name: plan_move(present[name], (), target) for name, target in wanted.items()}
    # A partition that only the controller's id was to hold has a replica now, and can have a leader.
    then = (Heal(frozenset(moves)),) if moves else ()
    return decision(*(MovesStarted(name, of_topic) for name, of_topic in moves.items()), then=then)


def _has_records(cluster: Cluster, row: int) -> bool:
    """Whether the controller's id is in a partition's ISR."""
    return cluster.controller_id in cluster.columns.isr_of(row)


def added_topic(cluster: Cluster, record: TopicRecord, *, repaired: bool = True) -> TopicAdded:
    """Turn what was found into a change, repaired where it names the controller unless that is left for later."""
    replicas = (
        repair(record.replicas, cluster.controller_id, tuple(sorted(cluster.may_lead())))
        if repaired
        else record.replicas
    )
    topic_id = record.topic_id or record.new_id
    is_as_written = replicas == dict(record.replicas) and topic_id == record.topic_id
    names = sorted(replicas)
    moves = {
        partition: Move(replicas[partition], record.adding.get(partition, ()), record.removing.get(partition, ()))
        for partition in names
        if record.adding.get(partition) or record.removing.get(partition)
    }
    return TopicAdded(
        record.name,
        topic_id,
        np.array(names, dtype=np.int32),
        pad([replicas[partition] for partition in names]),
        Origin.OBSERVED if is_as_written else Origin.REPAIRED,
        moves,
        record.configs,
        version=record.version,
    )


def repair(assignment: Mapping[int, Replicas], controller_id: int, live: Replicas) -> dict[int, Replicas]:
    """Replace the controller's id in an assignment.

    >>> repair({0: (1, 1000), 1: (1000, 2), 2: (1, 2)}, 1000, (1, 2, 3))
    {0: (1, 3), 1: (3, 2), 2: (1, 2)}
    """
    load = Counter(replica for replicas in assignment.values() for replica in replicas)
    repaired: dict[int, Replicas] = {}
    for partition, replicas in assignment.items():
        chosen = list(replicas)
        for place, replica in enumerate(replicas):
            if replica == controller_id:
                free = [broker for broker in live if broker not in chosen]
                chosen[place] = min(free, key=lambda broker: (load[broker], broker), default=controller_id)
                load[chosen[place]] += 1
        # Where no broker lives that could take its place, it stays until one does: a partition needs a replica.
        repaired[partition] = without(chosen, (controller_id,)) or replicas
    return repaired
