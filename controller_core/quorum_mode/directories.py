"""Directories that brokers report for their replicas (AssignReplicasToDirs, KIP-858).

A broker with several log directories chooses one for each new replica, or moves a replica between two, and then reports it. If the directory
has failed in the meantime, the replica leaves leaders and ISRs in the same change.

Source: ReplicationControlManager.handleAssignReplicasToDirs of Kafka 4.3, which needs two records for such a replica.
"""

from collections.abc import Mapping

import numpy as np

from controller_core.decisions.broker_requests import refuse_stale_broker
from controller_core.model import Cluster, TopicPartition, changes, columns
from controller_core.model.decision import Decision
from controller_core.model.quorum_events import AssignReplicasToDirs
from controller_core.rules.complete_change import Electing, Target, complete_change
from kafka_wire import ErrorCode, Failure

Assigned = Mapping[TopicPartition, Failure | None]


def decide_assign_replicas_to_dirs(cluster: Cluster, event: AssignReplicasToDirs) -> Decision[Failure | Assigned]:
    """Check each replica independently, and note the directories."""
    if not cluster.rules.directories:
        return Decision(reply=Failure(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet."))
    if (failure := refuse_stale_broker(cluster, event.broker, event.broker_epoch)) is not None:
        return Decision(reply=failure)
    results: dict[TopicPartition, Failure | None] = {}
    valid: dict[int, TopicPartition] = {}
    for name in event.directories:
        row = cluster.row_of(*name)
        if row is None:
            results[name] = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.")
        elif event.broker not in cluster.columns.replicas_of(row):
            message = f"Broker {event.broker} has no replica of the partition."
            results[name] = Failure(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
        else:
            results[name], valid[row] = None, name
    known = cluster.brokers[event.broker]
    online = [row for row, name in valid.items() if known.has_online(event.directories[name])]
    offline = [row for row in valid if row not in set(online)]
    made = (
        _assign(cluster, event, {row: valid[row] for row in online}, leaves=False),
        _assign(cluster, event, {row: valid[row] for row in offline}, leaves=True),
    )
    return Decision(tuple(change for change in made if change is not None), reply=results)


def _assign(
    cluster: Cluster, event: AssignReplicasToDirs, names: Mapping[int, TopicPartition], *, leaves: bool
) -> changes.PartitionStates | None:
    rows = np.array(list(names), dtype=np.int32)
    isr = cluster.columns.isr[rows]
    kept = columns.keep_ids(isr, isr != event.broker) if leaves else isr
    directories = {row: {event.broker: event.directories[name]} for row, name in names.items()}
    may_lead = cluster.may_lead() - {event.broker} if leaves else cluster.may_lead()
    who = Electing(may_lead, cluster.unclean_allowed(rows))
    return complete_change(cluster, rows, Target(kept, directories=directories), who)
