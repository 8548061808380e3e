"""JSON documents of `/state`: the controller's state in memory, for debugging.

`state_schema` defines their fields. Lists are truncated at a limit and contain their full length. `shell.process` serves the
documents, the command line prints them.
"""

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Literal

from controller_core.model import NO_EPOCH, Broker, Cluster
from controller_core.views import state_schema
from controller_core.views import state_schema as schema
from controller_core.views.partition_state import partition_state
from controller_core.views.service_health import service_health

MAX_PARTITIONS_OF_TOPIC = 10_000
"""Maximum number of partitions in the document of one topic."""

Document = schema.ClusterDocument | schema.StandbyDocument | schema.TopicDocument


def cluster_document(
    cluster: Cluster, cluster_id: str, queued: Mapping[int, int], waiting_events: int, unreadable: Iterable[str] = ()
) -> schema.ClusterDocument:
    """Return the state of an active controller.

    `queued` is the number of waiting requests by broker; `unreadable` are the topics whose znode cannot be decoded.
    """
    health = service_health(cluster)
    return {
        "active": True,
        "cluster_id": cluster_id,
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "waiting_events": waiting_events,
        "brokers": [
            _broker(cluster, cluster.brokers[broker], queued.get(broker, 0)) for broker in sorted(cluster.brokers)
        ],
        "unreachable_brokers": sorted(cluster.unreachable),
        "topics": len(cluster.topics),
        "partitions": {
            "in_service": len(health.rows),
            "offline": int(health.flags.offline.sum()),
            "under_replicated": int(health.flags.under_replicated.sum()),
            "not_led_by_preferred": int(health.flags.not_led_by_preferred.sum()),
        },
        "offline_partitions": _names(cluster, health.rows[health.flags.offline].tolist()),
        "reassignments": _reassignments(cluster),
        "deletions": _deletions(cluster),
        "stray_replicas": _stray_replicas(cluster),
        "refused_replicas": _refused(cluster),
        "unreadable_topics": list(islice(unreadable, state_schema.MAX_LISTED)),
    }


def standby_document(controller_id: int) -> schema.StandbyDocument:
    """Return the state of a controller that is not active."""
    return {"active": False, "controller_id": controller_id}


def topic_document(cluster: Cluster, name: str) -> schema.TopicDocument | None:
    """Return the state of one topic's partitions; None if there is no such topic."""
    topic = cluster.topics.get(name)
    if topic is None:
        return None
    rows = topic.rows.tolist()
    return {
        "topic": name,
        "topic_id": None if topic.topic_id is None else str(topic.topic_id),
        "partitions": [_partition(cluster, row) for row in rows[:MAX_PARTITIONS_OF_TOPIC]],
        "partitions_in_all": len(rows),
    }


def _broker(cluster: Cluster, broker: Broker, queued: int) -> schema.BrokerDocument:
    columns = cluster.columns
    flags = columns.flags([broker.id])
    state: Literal["live", "shutting down"] = "shutting down" if broker.id in cluster.shutting_down else "live"
    return {
        "id": broker.id,
        "epoch": broker.epoch,
        "rack": broker.rack,
        "state": state,
        "endpoints": [f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in broker.endpoints],
        "leads": len(columns.led_by(flags)),
        "in_sync": len(columns.with_in_isr(flags)),
        "replicas": len(columns.hosted_by(flags)),
        "queued_requests": queued,
    }


def _partition(cluster: Cluster, row: int) -> schema.PartitionDocument:
    columns = cluster.columns
    leader = int(columns.leader[row])
    state = partition_state(
        has_leader_and_isr=bool(columns.partition_epoch[row] != NO_EPOCH), leader_is_live=leader in cluster.brokers
    )
    return {
        "partition": int(columns.partition[row]),
        "state": state.label,
        "leader": leader,
        "leader_epoch": int(columns.leader_epoch[row]),
        "partition_epoch": int(columns.partition_epoch[row]),
        "isr": list(columns.isr_of(row)),
        "replicas": list(columns.replicas_of(row)),
    }


def _reassignments(cluster: Cluster) -> schema.Listing[schema.ReassignmentDocument]:
    listed: list[schema.ReassignmentDocument] = [
        {
            "partition": _name(cluster, row),
            "replicas": list(move.replicas),
            "adding": list(move.adding),
            "removing": list(move.removing),
            "stage": move.stage.value,
            "waits_for": list(move.waiting),
        }
        for row, move in islice(cluster.moves.items(), state_schema.MAX_LISTED)
    ]
    return {"in_all": len(cluster.moves), "listed": listed}


def _deletions(cluster: Cluster) -> schema.Listing[schema.DeletionDocument]:
    listed: list[schema.DeletionDocument] = [
        {
            "topic": name,
            "started": deletion.started,
            "blocked": deletion.blocked,
            "waits_for": {str(broker): len(partitions) for broker, partitions in deletion.waiting.items()},
        }
        for name, deletion in islice(cluster.deletions.items(), state_schema.MAX_LISTED)
    ]
    return {"in_all": len(cluster.deletions), "listed": listed}


def _stray_replicas(cluster: Cluster) -> schema.Listing[schema.StrayReplicasDocument]:
    """Return replicas outside the assignment that brokers have not deleted yet; offline brokers delete them after their return."""
    listed: list[schema.StrayReplicasDocument] = [
        {"partition": _name(cluster, row), "brokers": sorted(brokers)}
        for row, brokers in islice(cluster.stray_replicas.items(), state_schema.MAX_LISTED)
    ]
    return {"in_all": len(cluster.stray_replicas), "listed": listed}


def _refused(cluster: Cluster) -> schema.Listing[schema.RefusedReplicaDocument]:
    """Return replicas that live brokers refuse, with the error of their response."""
    refused = [
        (row, broker, error) for row, brokers in cluster.refused_replicas.items() for broker, error in brokers.items()
    ]
    listed: list[schema.RefusedReplicaDocument] = [
        {"partition": _name(cluster, row), "broker": broker, "error": error}
        for row, broker, error in refused[: state_schema.MAX_LISTED]
    ]
    return {"in_all": len(refused), "listed": listed}


def _names(cluster: Cluster, rows: Iterable[int]) -> list[str]:
    return [_name(cluster, row) for row in islice(rows, state_schema.MAX_LISTED)]


def _name(cluster: Cluster, row: int) -> str:
    name = cluster.name_of(row)
    return f"{name.topic}-{name.partition}"
