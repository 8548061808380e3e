"""Numbers with a meaning of their own in Kafka's control plane, and the name of a partition.

Leaves out everything that has behaviour.
"""

from typing import NamedTuple

NO_LEADER = -1
"""No broker leads the partition (`LeaderAndIsr.NoLeader`)."""

LEADER_DURING_DELETE = -2
"""Told to brokers while a topic is being deleted (`LeaderAndIsr.LeaderDuringDelete`): clients then see no such topic."""

EPOCH_DURING_DELETE = -2
"""Leader epoch in a StopReplica of a topic's deletion (`LeaderAndIsr.EpochDuringDelete`): passes every epoch check."""

INITIAL_LEADER_EPOCH = 0
"""Leader epoch of a partition's first leader."""

NO_EPOCH = -1
"""An epoch not known: a partition that has no state yet, a caller that sent none."""

NO_BROKER = -1
"""Padding of replica and ISR columns: no broker has a negative id."""

MAX_BROKER_ID = 10_000_000
"""Largest broker id taken. Sets of brokers are flags indexed by id up to the highest that is known, so that ids bound memory and time:
10 MB and 8 ms a set at this limit, 0.5 ms at an id of a million, nothing to speak of at small ones. Kafka hands out ids from 1001 on
and people choose small ones; a lower limit would shut out ids made of the last parts of addresses."""


class TopicPartition(NamedTuple):
    """A partition by name, as callers and brokers speak of it."""

    topic: str
    partition: int
