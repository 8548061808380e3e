"""Creation and deletion of topics and partitions by a standalone broker, with Kafka's error messages.

Each function returns the next state and the response. Topics of a request are independent of each other. Source:
ReplicationControlManager and ControllerApis of Kafka 4.3.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from uuid import UUID

from kafka_node.authorization.acl import CLUSTER_NAME, Operation, ResourceType
from kafka_node.authorization.guard import Ask
from kafka_node.configs.described_configs import topic_entry
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.topic_config_table_4 import TOPIC_CONFIGS
from kafka_node.configs.topic_configs import ConfigContext, topic_config_error
from kafka_node.describe_configs import created_configs
from kafka_node.outcomes import NO_TOPIC_ID, duplicates, error_fields
from kafka_node.topic_names import topic_name_error
from kafka_wire import Body, ErrorCode, Failure
from light_broker.control.standalone.state import State, TopicState

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Partitions that one request may create: the limit of Kafka's KRaft controller."""

DENIED = Failure(ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED.message)
UNKNOWN_TOPIC = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
UNKNOWN_ID = Failure(ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_ID.message)
DUPLICATE = Failure(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
TOO_MANY_PARTITIONS = Failure(
    ErrorCode.POLICY_VIOLATION,
    f"Unable to create more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request.",
)
_ERROR_CODE_SINCE = 3
"""DeleteTopics: version that has TOPIC_DELETION_DISABLED."""


def create_topics(
    state: State, body: Body, may: Ask, settings: Settings, new_id: Callable[[], UUID]
) -> tuple[State, Body]:
    """Create the valid topics, unless the request is only to be validated."""
    repeated = duplicates(topic["name"] for topic in body["topics"])
    anywhere = may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, quiet=True)
    remaining, made, results = MAX_PARTITIONS_PER_REQUEST, state, []
    for wanted in {topic["name"]: topic for topic in body["topics"]}.values():
        name = wanted["name"]
        if name in repeated:
            results.append(_creation_failed(name, DUPLICATE))
            continue
        if not anywhere and not may(Operation.CREATE, ResourceType.TOPIC, name):
            results.append(_creation_failed(name, DENIED))
            continue
        topic = _new_topic(made, wanted, settings, new_id)
        if not isinstance(topic, Failure) and topic.partitions > remaining:
            topic = TOO_MANY_PARTITIONS
        if isinstance(topic, Failure):
            results.append(_creation_failed(name, topic))
            continue
        remaining -= topic.partitions
        made = made.with_topic(name, topic)
        shows_configs = may(Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, name, quiet=True)
        results.append(_created(name, topic, settings, shows_configs=shows_configs))
    return state if body["validate_only"] else made, {"topics": results}


def _new_topic(state: State, wanted: Body, settings: Settings, new_id: Callable[[], UUID]) -> TopicState | Failure:
    name = wanted["name"]
    if name in state.topics:
        return Failure(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    if name in state.deletions:
        # Its logs could not be deleted yet, and are not to be found by a topic that is new.
        return Failure(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' is marked for deletion.")
    if (failure := topic_name_error(name, state.topics)) is not None:
        return failure
    configs = {config["name"]: config["value"] for config in wanted["configs"]}
    if (failure := config_failure(configs, settings)) is not None:
        return failure
    partitions = _partition_count(state, wanted, settings)
    if isinstance(partitions, Failure):
        return partitions
    return TopicState(new_id(), partitions, state.broker_epoch, configs)


def config_failure(configs: Mapping[str, str | None], settings: Settings) -> Failure | None:
    """Return why a topic cannot have these configs, None if it can."""
    defaults = {name: value for name in TOPIC_CONFIGS if (value := topic_entry(name, {}, settings).value) is not None}
    wrong = topic_config_error(configs, ConfigContext(broker_defaults=defaults, zookeeper=False, table=TOPIC_CONFIGS))
    return None if wrong is None else Failure(ErrorCode.INVALID_CONFIG, wrong.message)


def _partition_count(state: State, wanted: Body, settings: Settings) -> int | Failure:
    count, replicas = wanted["num_partitions"], wanted["replication_factor"]
    if wanted["assignments"]:
        return _assigned_count(state, wanted)
    if replicas < -1 or replicas == 0:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        return Failure(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    if count < -1 or count == 0:
        return Failure(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    factor = settings.number("default.replication.factor") if replicas == -1 else replicas
    if factor > 1:
        message = (
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} cannot be reached "
            "because only 1 broker(s) are registered."
        )
        return Failure(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    chosen: int = settings.number("num.partitions") if count == -1 else count
    return chosen


def _assigned_count(state: State, wanted: Body) -> int | Failure:
    for field, kafka_name in (("replication_factor", "replicationFactor"), ("num_partitions", "numPartitions")):
        if wanted[field] != -1:
            message = f"A manual partition assignment was specified, but {kafka_name} was not set to -1."
            return Failure(ErrorCode.INVALID_REQUEST, message)
    numbers = sorted(assignment["partition_index"] for assignment in wanted["assignments"])
    if numbers != list(range(len(numbers))):
        message = "partitions should be a consecutive 0-based integer sequence"
        return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    failure = refused_replicas(state, [assignment["broker_ids"] for assignment in wanted["assignments"]])
    return len(numbers) if failure is None else failure


def refused_replicas(state: State, assignments: list[list[int]]) -> Failure | None:
    """Return why replica lists are invalid: each has this broker only."""
    for brokers in assignments:
        if not brokers:
            message = "The manual partition assignment includes an empty replica list."
        elif unknown := [broker for broker in brokers if broker != state.node_id]:
            message = f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
        elif len(brokers) > 1:
            message = f"The manual partition assignment includes the broker {state.node_id} more than once."
        else:
            continue
        return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return None


def _creation_failed(name: str, failure: Failure) -> Body:
    return {"name": name, **error_fields(failure), "configs": []}


def _created(name: str, topic: TopicState, settings: Settings, *, shows_configs: bool) -> Body:
    result = {"name": name, "topic_id": topic.id, **error_fields(None)}
    if not shows_configs:
        return {**result, "topic_config_error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED, "configs": []}
    return {
        **result,
        "num_partitions": topic.partitions,
        "replication_factor": 1,
        "configs": created_configs(topic.configs, settings),
    }


def delete_topics(state: State, version: int, body: Body, may: Ask, settings: Settings) -> tuple[State, Body]:
    """Delete topics by name or id; a topic that the caller may not describe is not distinguished from one that is missing."""
    asked = [(topic["name"], topic["topic_id"]) for topic in body["topics"]]
    asked += [(name, NO_TOPIC_ID) for name in body["topic_names"]]
    names_by_id = {topic.id: name for name, topic in state.topics.items()}
    repeated = duplicates(name for name, _ in asked if name is not None)
    results, made = [], state
    for name, topic_id in dict.fromkeys(asked):
        deleted_id = topic_id
        found = names_by_id.get(topic_id) if name is None else name
        failure = _deletion_failure(made, version, name, found, may, settings)
        if name in repeated:
            failure = DUPLICATE
        elif name is not None and topic_id != NO_TOPIC_ID:
            failure = Failure(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
        if failure is None and found is not None:
            deleted_id = made.topics[found].id
            made = made.with_topic_deleted(found)
        # The name of an id that may not be described stays hidden.
        shown = found if failure is None or failure.code is not ErrorCode.TOPIC_AUTHORIZATION_FAILED else name
        results.append({"name": shown, "topic_id": deleted_id, **error_fields(failure)})
    return made, {"responses": results}


def _deletion_failure(
    state: State, version: int, name: str | None, found: str | None, may: Ask, settings: Settings
) -> Failure | None:
    if not settings.flag("delete.topic.enable"):
        code = ErrorCode.INVALID_REQUEST if version < _ERROR_CODE_SINCE else ErrorCode.TOPIC_DELETION_DISABLED
        return Failure(code, ErrorCode.TOPIC_DELETION_DISABLED.message)
    if found is None:
        return UNKNOWN_ID
    if not may(Operation.DESCRIBE, ResourceType.TOPIC, found):
        return DENIED
    if found not in state.topics:
        return UNKNOWN_TOPIC if name is not None else UNKNOWN_ID
    return None if may(Operation.DELETE, ResourceType.TOPIC, found) else DENIED


def create_partitions(state: State, body: Body, may: Ask) -> tuple[State, Body]:
    """Add partitions to topics, unless the request is only to be validated."""
    repeated = duplicates(topic["name"] for topic in body["topics"])
    remaining, made, results = MAX_PARTITIONS_PER_REQUEST, state, []
    for wanted in {topic["name"]: topic for topic in body["topics"]}.values():
        name = wanted["name"]
        topic = state.topics.get(name)
        if name in repeated:
            failure: Failure | None = DUPLICATE
        elif not may(Operation.ALTER, ResourceType.TOPIC, name):
            failure = DENIED
        else:
            failure = UNKNOWN_TOPIC if topic is None else _refused_growth(state, topic, name, wanted, remaining)
        if failure is None and topic is not None:
            remaining -= wanted["count"] - topic.partitions
            made = made.with_topic(name, replace(topic, partitions=wanted["count"]))
        results.append({"name": name, **error_fields(failure)})
    return state if body["validate_only"] else made, {"results": results}


def _refused_growth(state: State, topic: TopicState, name: str, wanted: Body, remaining: int) -> Failure | None:
    count = wanted["count"]
    if count == topic.partitions:
        return Failure(ErrorCode.INVALID_PARTITIONS, f"Topic already has {count} partition(s).")
    if count < topic.partitions:
        message = f"The topic {name} currently has {topic.partitions} partition(s); {count} would not be an increase."
        return Failure(ErrorCode.INVALID_PARTITIONS, message)
    added = count - topic.partitions
    if added > remaining:
        return TOO_MANY_PARTITIONS
    if wanted["assignments"] is None:
        return None
    if len(wanted["assignments"]) != added:
        message = f"Attempted to add {added} additional partition(s), but only {len(wanted['assignments'])} assignment(s) were specified."
        return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return refused_replicas(state, [assignment["broker_ids"] for assignment in wanted["assignments"]])
