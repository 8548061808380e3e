"""Requests that old tools write to ZooKeeper: reassignments, and elections of preferred leaders.

Each kind is a list in its znode, `/admin/reassign_partitions` and `/admin/preferred_replica_election`, and is read as a level: listed
requests are to be carried out, and are removed when they are done.

    ReassignmentRequestsRead    New requests start moves as AlterPartitionReassignments does. Then:
    ReviewReassignmentRequests  Running moves stay in the list; requests that are done, refused or superseded are removed. Repeated
                                whenever a move ends. The znode is deleted with the last request.
    ElectionRequestsRead        Preferred leaders are elected. Then:
    RemoveElectionRequests      The znode is deleted, whatever the results.

A controller that takes over therefore finds the unfinished requests of its predecessor and continues them. An unreadable list
is read as an empty one. A write of a list is conditional on the version that was read: if another process has changed it,
nothing is written, and the watch causes the next read.

Differences from Kafka: targets with brokers that are not live, or are invalid, are refused as in AlterPartitionReassignments (Kafka
starts them and waits forever), and requests that are added to an existing list are processed (Kafka watches only for its creation).
Source: KafkaController.processZkPartitionReassignment, maybeRemoveFromZkReassignment,
fetchPendingPreferredReplicaElections, removePartitionsFromPreferredReplicaElection.
"""

from collections.abc import Mapping

from controller_core import model
from controller_core.decisions.leader_elections import decide_elect_leaders
from controller_core.model import events, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, decision
from controller_core.zookeeper_mode.moves import decide_alter_reassignments
from kafka_wire import ErrorCode, Failure


def decide_reassignment_requests_read(
    cluster: model.Cluster, event: zookeeper_events.ReassignmentRequestsRead
) -> Decision[None]:
    """Start the moves of new requests."""
    started = decide_alter_reassignments(cluster, events.AlterReassignments(_new_requests(cluster, event.targets)))
    # The review removes requests from the list, on the version that was read.
    moves = (change for change in started.changes if isinstance(change, zookeeper_changes.MovesStarted))
    return decision(*moves, then=(*started.then, zookeeper_events.ReviewReassignmentRequests(event)))


def decide_review_reassignment_requests(
    cluster: model.Cluster, event: zookeeper_events.ReviewReassignmentRequests
) -> Decision[None]:
    """Keep requests with a running move in the list, and remove all others."""
    targets = cluster.reassignment_requests if event.found is None else event.found.targets
    # A list that exists and is empty is deleted; the known one exists while it has requests.
    exists = bool(targets) if event.found is None else event.found.exists
    checked = decide_alter_reassignments(cluster, events.AlterReassignments(_new_requests(cluster, targets)))
    if checked.changes:
        return decision()  # Another process wrote the same topic, so the move did not start; the next read retries.
    refused = {partition: failure for partition, failure in (checked.reply or {}).items() if failure is not None}
    running = {partition: target for partition, target in targets.items() if cluster.is_moving_to(partition, target)}
    is_to_be_written = exists and (not running or running != targets)
    if (
        not is_to_be_written
        and running == cluster.reassignment_requests
        and (event.found is None or not event.found.exists)
    ):
        # An existing list that was read is observed even if it is known: another process may have written it again.
        return decision()
    origin = model.Origin.REQUESTED if is_to_be_written else model.Origin.OBSERVED
    return decision(zookeeper_changes.PendingReassignmentRequestsChanged(running, origin, refused))


def _new_requests(
    cluster: model.Cluster, targets: Mapping[model.TopicPartition, model.Replicas]
) -> dict[model.TopicPartition, model.Replicas | None]:
    """Return the requests that are neither running nor were started before; the others are done or superseded."""
    return {
        partition: target
        for partition, target in targets.items()
        if cluster.reassignment_requests.get(partition) != target and not cluster.is_moving_to(partition, target)
    }


def decide_election_requests_read(
    cluster: model.Cluster, event: zookeeper_events.ElectionRequestsRead
) -> Decision[None]:
    """Elect the requested preferred leaders where possible."""
    elected = decide_elect_leaders(cluster, events.ElectLeaders(event.partitions))
    return decision(*elected.changes, then=(zookeeper_events.RemoveElectionRequests(event),))


def decide_remove_election_requests(
    cluster: model.Cluster, event: zookeeper_events.RemoveElectionRequests
) -> Decision[None]:
    """Delete the requests, and report the partitions that failed."""
    results = decide_elect_leaders(cluster, events.ElectLeaders(event.found.partitions)).reply or {}
    failed: dict[model.TopicPartition, Failure] = {
        partition: failure
        for partition, failure in results.items()
        if failure is not None and failure.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    return decision(zookeeper_changes.ElectionRequestsProcessed(failed))
