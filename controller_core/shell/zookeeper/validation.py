"""What is read must keep the rules that every controller keeps: pure checks between the znodes and the core.

Decisions rest on these rules and stop the controller where one is broken (`transition`), so a single znode that was written
by hand would keep it from all others. Leaves out what is no document of Kafka's at all: the formats judge that.
"""

from itertools import chain

import numpy as np

from controller_core.model.columns import BoolArray, IntArray, any_of
from controller_core.model.ids import MAX_BROKER_ID, NO_BROKER, NO_LEADER
from kafka_zookeeper import paths
from kafka_zookeeper.formats.documents import FormatError, shown
from kafka_zookeeper.formats.topics import TopicAssignment

MAX_REPLICAS = 1_000
"""Replicas of one partition: columns are as wide as the longest list, for all partitions. Clusters are smaller than this."""
MAX_LEADER_EPOCH = 2**31 - 2**20
"""Highest leader epoch that is taken: a million elections before 32 bits are full."""


def check_assignment(name: str, found: TopicAssignment) -> None:
    """Raise FormatError for replicas that cannot be."""
    for partition, replicas in chain(found.replicas.items(), found.adding.items(), found.removing.items()):
        wrong = None
        if len(replicas) > MAX_REPLICAS:
            wrong = f"has {len(replicas)} replicas, {MAX_REPLICAS} at most are handled"
        elif len(set(replicas)) != len(replicas):
            wrong = f"names a replica twice: {shown(replicas)}"
        elif max(replicas, default=0) > MAX_BROKER_ID:
            wrong = f"names the broker {max(replicas)}, ids to {MAX_BROKER_ID} are handled"
        if wrong:
            raise FormatError(paths.topic(name), f"partition {partition} {wrong}")


def can_be(
    leader: IntArray, leader_epoch: IntArray, isr: IntArray, replicas: IntArray, *, shares_a_replica: bool = True
) -> BoolArray:
    """Tell row by row which states keep the rules that every controller keeps.

    The ISR has members, each once; the leader is one of them, or nobody leads. With `shares_a_replica`, one of the members is
    a replica.
    """
    ordered = np.sort(isr, axis=1)
    distinct = ~any_of((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_BROKER))
    known = np.zeros(len(isr), dtype=np.bool_)
    for member in isr.T:
        is_replica = any_of(replicas == member[:, None]) if shares_a_replica else True
        known |= is_replica & (member != NO_BROKER)
    led = (leader == NO_LEADER) | ((leader >= 0) & any_of(isr == leader[:, None]))
    in_range = (isr.min(axis=1) >= NO_BROKER) & (isr.max(axis=1) <= MAX_BROKER_ID)
    epochs = (leader_epoch >= 0) & (leader_epoch <= MAX_LEADER_EPOCH)
    sound: BoolArray = distinct & known & led & in_range & epochs
    return sound
