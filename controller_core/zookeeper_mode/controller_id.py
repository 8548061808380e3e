"""Partitions that a broker with the controller's id may hold records of.

Brokers know the controller as one more broker, and a broker that creates a topic by itself may assign replicas to its id. Such a
replica holds nothing and is repaired (observed). A real broker with the same id, away for the moment, looks alike in
`/brokers/ids`; its replicas must not be moved away. What is written of a partition tells them apart:

    in the ISR, or the leader             a broker has the records: claimed
    assigned, no state is written         no replica was ever in sync: not claimed
    assigned, the state has version 0     the ISR is the first one ever, and does not contain the id: not claimed
    assigned, the state was written again the id may have been in an earlier ISR: claimed

Leaves out what follows from a claim (`shell.startup_checks`).
"""

import numpy as np

from controller_core.model import changes
from controller_core.model.cluster import Cluster
from controller_core.model.columns import IntArray, any_of

FIRST_VERSION = 0
"""Version of a state znode that was written once."""


def claimed_by_states(states: changes.StatesObserved, controller_id: int) -> IntArray:
    """List the rows whose state, as it is written, names the controller's id as leader or in the ISR."""
    claimed: IntArray = states.rows[(states.leader == controller_id) | any_of(states.isr == controller_id)]
    return claimed


def claimed_by_assignments(cluster: Cluster) -> IntArray:
    """List the rows that are assigned to the controller's id and whose ISR may have contained it."""
    rows = cluster.columns.hosted_by(cluster.columns.flags([cluster.controller_id]))
    claimed: IntArray = rows[cluster.columns.partition_epoch[rows] > FIRST_VERSION]
    return claimed


def claimed_partitions(cluster: Cluster, by_states: IntArray) -> list[str]:
    """Name all claimed partitions."""
    rows = np.union1d(by_states, claimed_by_assignments(cluster))
    return [f"{name.topic}-{name.partition}" for name in map(cluster.name_of, rows.tolist())]
