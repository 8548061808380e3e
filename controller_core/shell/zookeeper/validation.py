"""Validation of decoded znodes: assignments and partition states must satisfy the rules that every controller satisfies when it writes.

Decisions rely on these rules, and transitions fail where one is violated: without these checks one invalid znode would stop the
controller for all partitions. Documents that cannot be decoded at all are rejected by the formats (`kafka_zookeeper.formats`).
"""

from itertools import chain

import numpy as np

from controller_core.model import NO_BROKER, NO_LEADER, BoolArray, IntArray, columns
from controller_core.model.ids import MAX_BROKER_ID
from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents, topics

MAX_REPLICAS = 1_000
"""Replicas of one partition: columns are as wide as the longest list, for all partitions. Clusters are smaller than this."""
MAX_LEADER_EPOCH = 2**31 - 2**20
"""Highest leader epoch that is accepted: it leaves a million elections before 32 bits overflow."""


def check_assignment(name: str, found: topics.TopicAssignment) -> None:
    """Raise FormatError for an invalid list of replicas."""
    for partition, replicas in chain(found.replicas.items(), found.adding.items(), found.removing.items()):
        wrong = None
        if len(replicas) > MAX_REPLICAS:
            wrong = f"has {len(replicas)} replicas, at most {MAX_REPLICAS} are supported"
        elif len(set(replicas)) != len(replicas):
            wrong = f"lists a replica twice: {documents.shown(replicas)}"
        elif max(replicas, default=0) > MAX_BROKER_ID:
            wrong = f"lists broker {max(replicas)}, ids up to {MAX_BROKER_ID} are supported"
        if wrong:
            raise documents.FormatError(paths.topic(name), f"partition {partition} {wrong}")


def is_valid_state(
    leader: IntArray, leader_epoch: IntArray, isr: IntArray, replicas: IntArray, *, shares_a_replica: bool = True
) -> BoolArray:
    """Return for each row whether its state is valid.

    The ISR is not empty and lists each member once; the leader is a member or there is none. With `shares_a_replica`, at least one
    member is a replica.
    """
    known = np.zeros(len(isr), dtype=np.bool_)
    for member in isr.T:
        is_replica = columns.any_of(replicas == member[:, None]) if shares_a_replica else True
        known |= is_replica & (member != NO_BROKER)
    led = (leader == NO_LEADER) | ((leader >= 0) & columns.any_of(isr == leader[:, None]))
    in_range = (isr.min(axis=1) >= NO_BROKER) & (isr.max(axis=1) <= MAX_BROKER_ID)
    epochs = (leader_epoch >= 0) & (leader_epoch <= MAX_LEADER_EPOCH)
    valid: BoolArray = ~columns.repeats(isr) & known & led & in_range & epochs
    return valid
