"""Reserved numbers of Kafka's control plane, and partition names."""

from kafka_wire.topic_partition import TopicPartition

__all__ = [
    "EPOCH_DURING_DELETE",
    "INITIAL_LEADER_EPOCH",
    "LEADER_DURING_DELETE",
    "MAX_BROKER_ID",
    "NO_BROKER",
    "NO_EPOCH",
    "NO_LEADER",
    "TopicPartition",
]

NO_LEADER = -1
"""No broker leads the partition (`LeaderAndIsr.NoLeader`)."""

LEADER_DURING_DELETE = -2
"""Leader sent to brokers while a topic is being deleted (`LeaderAndIsr.LeaderDuringDelete`): clients then see no such topic."""

EPOCH_DURING_DELETE = -2
"""Leader epoch in a StopReplica of a topic's deletion (`LeaderAndIsr.EpochDuringDelete`): passes every epoch check."""

INITIAL_LEADER_EPOCH = 0
"""Leader epoch of a partition's first leader."""

NO_EPOCH = -1
"""Unknown epoch: of a partition without a state, or of a request that carries none."""

NO_BROKER = -1
"""Padding of replica and ISR columns: no broker has a negative id."""

MAX_BROKER_ID = 10_000_000
"""Largest broker id accepted. Sets of brokers are flags indexed by id up to the highest known one, so ids determine memory and time:
10 MB and 8 ms per set at this limit, 0.5 ms at an id of a million, negligible at small ids. Kafka generates ids from 1001 on and
operators choose small ones; a lower limit would exclude ids derived from the last parts of IP addresses."""
