"""Partitions of which a broker with the controller's id may have records.

Brokers treat the controller as another broker, and a broker that creates a topic may assign replicas to its id. Such a
replica is empty and is replaced (`observed_topics`). A real broker with the same id that is offline at the moment cannot be distinguished
in `/brokers/ids`, and its replicas must not be moved away. The written state of a partition distinguishes the two:

    id in the ISR, or leader                  a broker has the records: claimed
    id assigned, no state written             no replica was ever in sync: not claimed
    id assigned, state has version 0          the ISR is the first one and does not contain the id: not claimed
    id assigned, state was written again      the id may have been in an earlier ISR: claimed

`shell.startup_checks` refuses to start if a partition is claimed.
"""

import numpy as np

from controller_core.model import Cluster, IntArray, columns, zookeeper_changes

FIRST_VERSION = 0
"""Version of a state znode that was written only once."""


def claimed_by_states(states: zookeeper_changes.StatesObserved, controller_id: int) -> IntArray:
    """Return the rows whose written state contains the controller's id as leader or in the ISR."""
    claimed: IntArray = states.rows[(states.leader == controller_id) | columns.any_of(states.isr == controller_id)]
    return claimed


def claimed_by_assignments(cluster: Cluster) -> IntArray:
    """Return the rows that are assigned to the controller's id and whose ISR may have contained it."""
    rows = cluster.columns.hosted_by(cluster.columns.flags([cluster.controller_id]))
    claimed: IntArray = rows[cluster.columns.partition_epoch[rows] > FIRST_VERSION]
    return claimed


def claimed_partitions(cluster: Cluster, by_states: IntArray) -> list[str]:
    """Return the names of all claimed partitions."""
    rows = np.union1d(by_states, claimed_by_assignments(cluster))
    return [f"{name.topic}-{name.partition}" for name in map(cluster.name_of, rows.tolist())]
