"""PartitionRecords of new partitions as columns: those of all topics that a request creates, together.

A request for a hundred topics has a thousand of them; a Python object for each would be a third of the controller's work. Source:
ReplicationControlManager.createTopic and PartitionRegistration.toRecord of Kafka.
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from controller_core.model import IntArray, changes
from controller_core.model.columns import widen
from controller_core.model.ids import INITIAL_LEADER_EPOCH
from kafka_metadata.metadata_versions import DIRECTORIES_SINCE, record_version
from kafka_wire.columns.record_encoder import UUID as UUID_TYPE
from kafka_wire.columns.record_encoder import Lists, RecordColumns

MESSAGE = "PartitionRecord"

Added = changes.TopicAdded | changes.PartitionsAdded


def new_partitions(added: Sequence[tuple[UUID, Added]], metadata_version: int) -> RecordColumns:
    """Return the records of the partitions of topics, in their order, in the version of a metadata version."""
    version = record_version(MESSAGE, metadata_version)
    assert version is not None, "every metadata version has partitions"
    made = [change for _, change in added]
    states = [change.states for change in made if change.states is not None]
    assert len(states) == len(made), "partitions of KRaft mode have leaders from the beginning"
    partitions = np.concatenate([change.partitions for change in made])
    replicas = _joined([change.replicas for change in made])
    numbers = {
        "partition_id": partitions,
        "leader": np.concatenate([state.leader for state in states]),
        "leader_epoch": np.full_like(partitions, INITIAL_LEADER_EPOCH),
        "partition_epoch": np.zeros_like(partitions),
    }
    lists = {"replicas": Lists.padded(replicas), "isr": Lists.padded(_joined([state.isr for state in states]))}
    if metadata_version >= DIRECTORIES_SINCE:
        lists["directories"] = Lists(_directories(replicas, states), lists["replicas"].lengths)
    ids = np.array([topic_id.bytes for topic_id, _ in added], UUID_TYPE)
    return RecordColumns(MESSAGE, version, ids.repeat([len(change.partitions) for change in made]), numbers, lists)


def _joined(lists: Sequence[IntArray]) -> IntArray:
    width = max(columns.shape[1] for columns in lists)
    return np.concatenate([widen(columns, width) for columns in lists])


def _directories(
    replicas: IntArray, states: Sequence[changes.FirstStates]
) -> np.ndarray[tuple[int, int], np.dtype[np.void]]:
    """Return the directory of each replica: one decision gives all new replicas of a broker the same."""
    by_broker = np.zeros(int(replicas.max(initial=0)) + 2, UUID_TYPE)  # The last one is for the padding, -1.
    for state in states:
        for broker, directory in state.directories.items():
            by_broker[broker] = np.void(directory.bytes)
    return by_broker[replicas]
