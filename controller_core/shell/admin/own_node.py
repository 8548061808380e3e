"""Requests to the controller as one listed node: it holds no replica, coordinates no group and no transaction.

Clients send these to every node that Metadata lists, or to one node by its id. A broker that answered in the controller's place
would add its own groups, transactions and producers a second time, or move its own replicas. The answers do not depend on the
cluster, so a standby gives them as well.

Source: KafkaApis.handleListGroupsRequest, handleListTransactionsRequest, handleAlterReplicaLogDirsRequest,
handleDescribeProducersRequest, handleDescribeLogDirsRequest, for a broker without replicas.
"""

from collections.abc import Callable, Mapping

from controller_core.cluster.topic_names import refuse_name
from controller_core.model.cluster import Cluster
from controller_core.shell.admin.described import known_topic
from controller_core.shell.admin.outcomes import error_fields
from controller_core.shell.front.handler import OwnHandler
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

TRANSACTION_STATES = frozenset(
    {
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    }
)
"""The names that a coordinator of Kafka 3.9 knows (TransactionState.AllStates)."""

NO_DATA = "(a controller holds no data)"
"""The path of the only log directory."""


def own_node_handlers(cluster: Callable[[], Cluster | None]) -> Mapping[ApiKey, OwnHandler]:
    """Make the handlers. `cluster` returns the cluster while this process is the controller, otherwise None."""

    async def describe_producers(_: RequestContext, body: Body) -> Body:
        return no_producers(cluster(), body)

    return {
        ApiKey.LIST_GROUPS: list_groups,
        ApiKey.LIST_TRANSACTIONS: list_transactions,
        ApiKey.DESCRIBE_LOG_DIRS: describe_log_dirs,
        ApiKey.ALTER_REPLICA_LOG_DIRS: alter_replica_log_dirs,
        ApiKey.DESCRIBE_PRODUCERS: describe_producers,
    }


async def list_groups(_: RequestContext, _body: Body) -> Body:
    """List no groups, whatever the filters are."""
    return {"error_code": ErrorCode.NONE, "groups": []}


async def list_transactions(_: RequestContext, body: Body) -> Body:
    """List no transactions, and name the states in the filter that no transaction can have."""
    unknown = [name for name in body["state_filters"] if name not in TRANSACTION_STATES]
    return {"error_code": ErrorCode.NONE, "unknown_state_filters": unknown, "transaction_states": []}


async def describe_log_dirs(_: RequestContext, _body: Body) -> Body:
    """Describe one empty directory: clients take an answer without directories for a refusal."""
    return {"error_code": ErrorCode.NONE, "results": [{"error_code": ErrorCode.NONE, "log_dir": NO_DATA, "topics": []}]}


async def alter_replica_log_dirs(_: RequestContext, body: Body) -> Body:
    """Refuse every partition: this node does not have the directory."""
    partitions: dict[str, dict[int, None]] = {}
    for directory in body["dirs"]:
        for topic in directory["topics"]:
            partitions.setdefault(topic["name"], {}).update(dict.fromkeys(topic["partitions"]))
    code = ErrorCode.LOG_DIR_NOT_FOUND
    results = [
        {"topic_name": name, "partitions": [{"partition_index": index, "error_code": code} for index in indexes]}
        for name, indexes in partitions.items()
    ]
    return {"results": results}


def no_producers(cluster: Cluster | None, body: Body) -> Body:
    """Answer each partition with the reason why this node has no producers of it."""
    topics = [
        {
            "name": topic["name"],
            "partitions": [
                {"partition_index": index, **_why_no_producers(cluster, topic["name"], index)}
                for index in topic["partition_indexes"]
            ],
        }
        for topic in body["topics"]
    ]
    return {"topics": topics}


def _why_no_producers(cluster: Cluster | None, name: str, index: int) -> Body:
    """Return the error fields of one partition; as in Kafka, an error of a single partition comes without a message."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    illegal = refuse_name(name)
    if illegal is not None:
        return error_fields(illegal)
    if cluster is not None and known_topic(cluster, name) is None:
        return error_fields(Failure(unknown, unknown.message))
    is_known = cluster is None or cluster.row_of(name, index) is not None
    return {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else unknown, "error_message": None}
