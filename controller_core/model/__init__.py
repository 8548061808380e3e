"""Values of the control plane: brokers, topics, partitions in columns, events, changes, decisions.

Events and changes of one mode only have modules of their own (`zookeeper_events`, `zookeeper_changes`, `quorum_events`,
`quorum_changes`), which the other mode does not import.

Code outside this package imports the types and reserved numbers of the cluster's state from here, together with the modules that it
names: `from controller_core.model import NO_LEADER, Cluster, TopicPartition, changes, events`.
"""

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster, Deletion, Topic
from controller_core.model.columns import BoolArray, IntArray
from controller_core.model.ids import NO_BROKER, NO_EPOCH, NO_LEADER, TopicPartition
from controller_core.model.move import Move, MoveStage, Replicas
from controller_core.model.origin import Origin

__all__ = [
    "NO_BROKER",
    "NO_EPOCH",
    "NO_LEADER",
    "BoolArray",
    "Broker",
    "Cluster",
    "Deletion",
    "Endpoint",
    "IntArray",
    "Move",
    "MoveStage",
    "Origin",
    "Replicas",
    "Topic",
    "TopicPartition",
]
