"""Log directories of replicas in KRaft mode, and the replicas that are offline because their directory is.

A replica in a directory that its broker no longer has online counts as one on a dead broker (`Cluster.offline_replicas`, as for failed
directories in ZooKeeper mode).
"""

from collections.abc import Iterator, Mapping
from uuid import UUID

import numpy as np

from controller_core.model import NO_BROKER, Broker, Cluster, IntArray, changes, columns

_NUMBER_BITS = 32
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1
"""A replica and the number of its directory are compared as one integer."""


def set_directories(cluster: Cluster, directories: Mapping[int, changes.Directories]) -> None:
    """Set the directories of the replicas of partitions, by row, and which of these replicas are offline."""
    if directories:
        numbers = [[cluster.directory_number(directory) for directory in ids] for ids in directories.values()]
        set_directory_numbers(cluster, np.array(list(directories), dtype=np.int32), columns.pad(numbers))


def set_directory_numbers(cluster: Cluster, rows: IntArray, numbers: IntArray) -> None:
    """Set the directories of all replicas of rows by their numbers: shape (rows, longest), padded with -1."""
    cluster.columns.set_directories(rows, numbers)
    width = numbers.shape[1]
    replicas = cluster.columns.replicas[rows, :width]
    is_replica = replicas != NO_BROKER
    pairs = np.unique(replicas[is_replica].astype(np.int64) << _NUMBER_BITS | numbers[is_replica]).tolist()
    places = [(pair >> _NUMBER_BITS, pair & _NUMBER_MASK) for pair in pairs]
    offline = {place for place in places if _is_offline(cluster, place[0], cluster.directory_ids[place[1]])}
    if not offline and not cluster.offline_replicas:
        return
    for row, of_row in zip(rows.tolist(), _places(replicas, numbers), strict=True):
        for place in of_row:
            cluster.set_offline(row, place[0], is_offline=place in offline)
        for gone in cluster.offline_at(row) - {replica for replica, _ in of_row}:
            cluster.set_offline(row, gone, is_offline=False)


def _places(replicas: IntArray, numbers: IntArray) -> Iterator[list[tuple[int, int]]]:
    """Yield the replicas of each row with the numbers of their directories."""
    for assigned, of_row in zip(columns.unpad_all(replicas), numbers.tolist(), strict=True):
        yield list(zip(assigned, of_row, strict=False))


def _is_offline(cluster: Cluster, replica: int, directory: UUID) -> bool:
    broker = cluster.brokers.get(replica)
    return broker is not None and not broker.has_online(directory)


def set_first_directories(cluster: Cluster, rows: IntArray, replicas: IntArray, states: changes.FirstStates) -> None:
    """Set the directories of new partitions' replicas."""
    highest = int(replicas.max(initial=0))
    numbers = np.full(highest + 2, NO_BROKER, dtype=np.int32)
    for broker, directory in states.directories.items():
        numbers[broker] = cluster.directory_number(directory)
    cluster.columns.set_directories(rows, numbers[replicas])


def refresh_offline_replicas(cluster: Cluster, broker: Broker) -> None:
    """Compare the directories of all replicas of a broker with those that are online."""
    forget_offline_replicas(cluster, broker.id)
    offline = {directory_id for directory_id in cluster.directory_ids if not broker.has_online(directory_id)}
    for row in cluster.rows_in_directories(broker.id, offline).tolist():
        cluster.set_offline(row, broker.id, is_offline=True)


def forget_offline_replicas(cluster: Cluster, broker: int) -> None:
    """Count no replica of a broker as offline."""
    for row in [row for row, offline in cluster.offline_replicas.items() if broker in offline]:
        cluster.set_offline(row, broker, is_offline=False)
