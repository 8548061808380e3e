"""Requests addressed to the controller as one of the listed nodes.

The controller holds no replica and coordinates no group or transaction. Clients send these requests to every node that Metadata lists,
or to one node by its id. If they were relayed, the broker's groups, transactions and producers would be counted twice, and the broker
would move its replicas. Except for configurations, the answers do not depend on the cluster, so a standby gives them as well.

Configurations: a request whose resources all belong to single nodes (a broker by id, loggers of a broker) is answered here. For the
controller's id the controller answers; for another id the answer is that of a Kafka broker that is not addressed. Relayed, the request
would read or change the configuration of an arbitrary broker. Requests about other resources (topics, the default of all brokers) are
relayed to a broker, which has the defaults and validates keys and values.

Source: KafkaApis.handleListGroupsRequest, handleListTransactionsRequest, handleAlterReplicaLogDirsRequest, handleDescribeProducersRequest
and handleDescribeLogDirsRequest, for a broker without replicas; ConfigHelper.describeConfigs, ConfigAdminManager.preprocess,
RuntimeLoggerManager.
"""

from collections.abc import Callable, Mapping

from controller_core.model import Cluster
from controller_core.shell.active import ActiveController
from controller_core.shell.admin.responses import Outcome, error_fields
from controller_core.shell.admin.topic_description import known_topic
from controller_core.shell.front.handler import RelayInstead, RequestHandler
from kafka_node.configs import alterations, described_configs, resource_types
from kafka_node.context import RequestContext
from kafka_node.logger_levels import alter_logger_levels, logger_levels
from kafka_node.topic_names import topic_name_error
from kafka_wire import ApiKey, Body, ErrorCode, Failure

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
"""States in Kafka 3.9 (TransactionState.AllStates)."""

NO_DATA = "(a controller holds no data)"
"""Path of the only log directory in responses."""


STRING = 2
"""ConfigEntry.ConfigType.STRING."""

THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Configurations that tools set on every broker of a move (KIP-73): accepted without effect, since the node has no data."""


def controller_node_handlers(cluster: Callable[[], Cluster | None]) -> Mapping[ApiKey, RequestHandler]:
    """Create the handlers. `cluster` returns the cluster while this process is the controller, otherwise None."""

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
    """List no groups, regardless of the filters."""
    return {"error_code": ErrorCode.NONE, "groups": []}


async def list_transactions(_: RequestContext, body: Body) -> Body:
    """List no transactions, and return the unknown states of the filter."""
    unknown = [name for name in body["state_filters"] if name not in TRANSACTION_STATES]
    return {"error_code": ErrorCode.NONE, "unknown_state_filters": unknown, "transaction_states": []}


async def describe_log_dirs(_: RequestContext, _body: Body) -> Body:
    """Describe one empty directory: clients interpret an answer without directories as a refusal."""
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
    """Answer each partition with the error of a node that has no producers of it."""
    topics = [
        {
            "name": topic["name"],
            "partitions": [
                {"partition_index": index, **_no_producers_error(cluster, topic["name"], index)}
                for index in topic["partition_indexes"]
            ],
        }
        for topic in body["topics"]
    ]
    return {"topics": topics}


def _no_producers_error(cluster: Cluster | None, name: str, index: int) -> Body:
    """Return the error fields of one partition; as in Kafka, an error of a single partition comes without a message."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    invalid = topic_name_error(name)
    if invalid is not None:
        return error_fields(invalid)
    if cluster is not None and known_topic(cluster, name) is None:
        return error_fields(Failure(unknown, unknown.message))
    is_known = cluster is None or cluster.row_of(name, index) is not None
    return {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else unknown, "error_message": None}


async def describe_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Describe nodes. Raises RelayInstead for a request with other resources."""
    _check_all_of_nodes(body["resources"])
    return {"results": [_described(active, resource) for resource in body["resources"]]}


async def incremental_alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Accept throttles and any removal; refuse to set other configurations. Raises RelayInstead as `describe_configs`."""
    _check_all_of_nodes(body["resources"])
    responses = []
    for resource in body["resources"]:
        configs = resource["configs"]
        if resource["resource_type"] == resource_types.ConfigResourceType.BROKER_LOGGER:
            node_id, validate_only = active.cluster.controller_id, body["validate_only"]
            failure = _other_node(active, resource) or alter_logger_levels(
                node_id, resource, validate_only=validate_only
            )
        else:
            names = [
                config["name"] for config in configs if config["config_operation"] != alterations.AlterOperation.DELETE
            ]
            failure = _other_node(active, resource) or _not_a_throttle(names)
        responses.append(_of(resource, failure))
    return {"responses": responses}


async def alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Do the same for AlterConfigs, which removes all other configurations (before KIP-339)."""
    _check_all_of_nodes(body["resources"])
    responses = []
    for resource in body["resources"]:
        if resource["resource_type"] == resource_types.ConfigResourceType.BROKER_LOGGER:
            failure: Outcome = Failure(
                ErrorCode.INVALID_REQUEST,
                f"Unknown resource type {resource_types.ConfigResourceType.BROKER_LOGGER.value}",
            )
        else:
            names = [config["name"] for config in resource["configs"]]
            failure = _other_node(active, resource) or _not_a_throttle(names)
        responses.append(_of(resource, failure))
    return {"responses": responses}


def relay_refused(*_: object) -> Body:
    """Relay the request: these APIs do not require the controller, so NOT_CONTROLLER is not a valid answer."""
    raise RelayInstead("the API does not require the controller")


def _check_all_of_nodes(resources: list[Body]) -> None:
    if not resources or not all(map(_is_of_a_node, resources)):
        raise RelayInstead("the request has resources other than single nodes")


def _is_of_a_node(resource: Body) -> bool:
    """Return whether a resource belongs to one node; a broker resource without a name is the default of all brokers."""
    kind: int = resource["resource_type"]
    return kind == resource_types.ConfigResourceType.BROKER_LOGGER or (
        kind == resource_types.ConfigResourceType.BROKER and bool(resource["resource_name"])
    )


def _other_node(active: ActiveController, resource: Body) -> Outcome:
    """Refuse the name of a resource that is not this node's id, with Kafka's messages."""
    node_id, name = active.cluster.controller_id, resource["resource_name"]
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if not resource_types.NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        return Failure(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id}, but received {name}")
    return None


def _not_a_throttle(names: list[str]) -> Outcome:
    """Refuse configurations that this node cannot have."""
    refused = [name for name in names if name not in THROTTLES]
    if not refused:
        return None
    message = f"This node is a controller and holds no data: {', '.join(refused)} cannot be set on it."
    return Failure(ErrorCode.INVALID_CONFIG, message)


def _described(active: ActiveController, resource: Body) -> Body:
    failure = _other_node(active, resource)
    if failure is not None:
        return {**_of(resource, failure), "configs": []}
    if resource["resource_type"] == resource_types.ConfigResourceType.BROKER_LOGGER:
        known, source, kind = (
            logger_levels(),
            described_configs.ConfigSource.DYNAMIC_BROKER_LOGGER,
            described_configs.UNKNOWN_TYPE,
        )
    else:
        known, source, kind = _settings(active), described_configs.ConfigSource.STATIC_BROKER, STRING
    wanted = resource["configuration_keys"] or known  # null and an empty list both mean all
    configs = [
        {
            "name": name,
            "value": value,
            "read_only": source == described_configs.ConfigSource.STATIC_BROKER,
            "config_source": source,
            "is_sensitive": False,
            "config_type": kind,
        }
        for name, value in known.items()
        if name in wanted
    ]
    return {**_of(resource, None), "configs": configs}


def _settings(active: ActiveController) -> dict[str, str]:
    endpoints = ",".join(f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in active.advertised())
    return {
        "broker.id": str(active.cluster.controller_id),
        # Tools that count brokers use it to recognise a node without data (KIP-631).
        "process.roles": "controller",
        "advertised.listeners": endpoints,
    }


def _of(resource: Body, outcome: Outcome) -> Body:
    return {
        **error_fields(outcome),
        "resource_type": resource["resource_type"],
        "resource_name": resource["resource_name"],
    }
