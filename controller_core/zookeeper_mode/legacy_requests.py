"""Requests that old tools leave in ZooKeeper itself: moves of replicas, and elections of preferred leaders.

Each is a list in a znode of its own, read as a level: whatever stands there is wanted, and what is taken out of it is done.

    ReassignmentRequestsRead        what is new in the list is begun as by AlterPartitionReassignments; then
    ReviewReassignmentRequests      what runs stays in the list; what is done, refused, or overtaken by another request is taken out;
                            looked at again whenever a move ends. The znode goes with the last of them.
    ElectionRequestsRead    preferred leaders are elected; then
    RemoveElectionRequests  the znode goes, whatever became of each partition

So a controller that takes over finds in the lists what its predecessor had not done, and goes on. A list that cannot be read
comes here as an empty one. A write of a list names the version that was read: should somebody else have written meanwhile,
nothing is written, and the watch brings the next look.

As in Kafka, but for this: a target of brokers that are not alive, or that cannot be, is refused as it is for
AlterPartitionReassignments (Kafka begins it and waits for ever), and what is added to a list that is there already is seen
(Kafka watches for its creation alone). Source: KafkaController.processZkPartitionReassignment, maybeRemoveFromZkReassignment,
fetchPendingPreferredReplicaElections, removePartitionsFromPreferredReplicaElection.

Leaves out paths, formats and watches (the shell).
"""

from controller_core.decisions.leader_elections import decide_elect_leaders
from controller_core.decisions.reassignment import decide_alter_reassignments
from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_EPOCH, TopicPartition
from controller_core.model.move import Replicas
from kafka_node.errors import Failure
from kafka_wire.errors import ErrorCode


def decide_reassignment_requests_read(cluster: Cluster, event: events.ReassignmentRequestsRead) -> Decision[None]:
    """Begin the moves that are new in the list."""
    begun = decide_alter_reassignments(cluster, events.AlterReassignments(_fresh(cluster, event)))
    # What the list itself has to lose is for the review to say, on the version that was read.
    moves = (change for change in begun.changes if isinstance(change, changes.MovesStarted))
    return decision(*moves, then=(*begun.then, events.ReviewReassignmentRequests(event)))


def decide_review_reassignment_requests(cluster: Cluster, event: events.ReviewReassignmentRequests) -> Decision[None]:
    """Leave in the list what runs, and take out all else."""
    found = event.found or events.ReassignmentRequestsRead(
        cluster.reassignment_requests, cluster.reassignment_requests_version
    )
    checked = decide_alter_reassignments(cluster, events.AlterReassignments(_fresh(cluster, found)))
    if checked.changes:
        return decision()  # Others write the same topic: it could not be begun, and the next look tries again.
    refused = {partition: failure for partition, failure in (checked.reply or {}).items() if failure is not None}
    left = {partition: target for partition, target in found.targets.items() if cluster.is_moving_to(partition, target)}
    is_to_be_written = found.version != NO_EPOCH and (not left or left != found.targets)
    if (
        not is_to_be_written
        and left == cluster.reassignment_requests
        and found.version == cluster.reassignment_requests_version
    ):
        return decision()
    origin = changes.Origin.REQUESTED if is_to_be_written else changes.Origin.OBSERVED
    return decision(changes.PendingReassignmentRequestsChanged(left, found.version, origin, refused))


def _fresh(cluster: Cluster, found: events.ReassignmentRequestsRead) -> dict[TopicPartition, Replicas | None]:
    """Tell what neither runs nor was taken up before: that is done, or another request came after it."""
    return {
        partition: target
        for partition, target in found.targets.items()
        if cluster.reassignment_requests.get(partition) != target and not cluster.is_moving_to(partition, target)
    }


def decide_election_requests_read(cluster: Cluster, event: events.ElectionRequestsRead) -> Decision[None]:
    """Elect the preferred leaders that are asked for and can be had."""
    elected = decide_elect_leaders(cluster, events.ElectLeaders(event.partitions))
    return decision(*elected.changes, then=(events.RemoveElectionRequests(event),))


def decide_remove_election_requests(cluster: Cluster, event: events.RemoveElectionRequests) -> Decision[None]:
    """Say that the list is done with, and for which partitions in vain."""
    results = decide_elect_leaders(cluster, events.ElectLeaders(event.found.partitions)).reply or {}
    failed: dict[TopicPartition, Failure] = {
        partition: failure
        for partition, failure in results.items()
        if failure is not None and failure.code is not ErrorCode.ELECTION_NOT_NEEDED
    }
    return decision(changes.ElectionRequestsProcessed(event.found.version, failed))
