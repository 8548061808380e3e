"""Configuration requests to the controller as the broker that it is listed as.

A request whose resources all belong to single nodes (a broker by its id, a broker's loggers) is answered here: the controller's own
id by the controller, any other id as Kafka's brokers answer the id of another broker. Relayed, it would be answered with, or change,
the configuration of the broker that it happens to reach.

A request about anything else (topics, the default of all brokers) goes to a broker, which knows its defaults and validates keys
and values. Source: ConfigHelper.describeConfigs, ConfigAdminManager.preprocess, RuntimeLoggerManager.
"""

import re

from controller_core.shell.active import ActiveController
from controller_core.shell.admin.outcomes import Outcome, error_fields
from controller_core.shell.front.handler import RelayInstead
from kafka_node.context import RequestContext
from kafka_node.errors import Failure
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode

BROKER_RESOURCE = 4
"""ConfigResource.Type.BROKER."""
BROKER_LOGGER_RESOURCE = 8
"""ConfigResource.Type.BROKER_LOGGER: levels of log4j's loggers, of which this process has none (KIP-412)."""
STATIC_BROKER_CONFIG = 4
"""ConfigSource.STATIC_BROKER_CONFIG."""
DELETE = 1
"""AlterConfigOp.OpType.DELETE."""
STRING = 2
"""ConfigEntry.ConfigType.STRING."""

NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")
"""What Java's Integer.parseInt reads, in digits of ASCII."""

THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Settings that tools set on every broker of a move (KIP-73): accepted without effect, since no data is here."""


async def describe_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Describe nodes. Raises RelayInstead for a request about anything else."""
    _check_all_of_nodes(body["resources"])
    return {"results": [_described(active, resource) for resource in body["resources"]]}


async def incremental_alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Accept throttles, and the removal of anything; refuse to set the rest. Raises RelayInstead as above."""
    _check_all_of_nodes(body["resources"])
    responses = []
    for resource in body["resources"]:
        configs = resource["configs"]
        if resource["resource_type"] == BROKER_LOGGER_RESOURCE:
            failure = _other_node(active, resource) or _no_logger([config["name"] for config in configs])
        else:
            names = [config["name"] for config in configs if config["config_operation"] != DELETE]
            failure = _other_node(active, resource) or _not_a_throttle(names)
        responses.append(_of(resource, failure))
    return {"responses": responses}


async def alter_configs(active: ActiveController, _: RequestContext, body: Body) -> Body:
    """Do the same for AlterConfigs, which removes all that is not named (before KIP-339). Raises RelayInstead as above."""
    _check_all_of_nodes(body["resources"])
    responses = []
    for resource in body["resources"]:
        if resource["resource_type"] == BROKER_LOGGER_RESOURCE:
            failure: Outcome = Failure(ErrorCode.INVALID_REQUEST, f"Unknown resource type {BROKER_LOGGER_RESOURCE}")
        else:
            names = [config["name"] for config in resource["configs"]]
            failure = _other_node(active, resource) or _not_a_throttle(names)
        responses.append(_of(resource, failure))
    return {"responses": responses}


def relay_refused(*_: object) -> Body:
    """Leave the request to a broker: these are no controller's APIs that NOT_CONTROLLER would mean something for."""
    raise RelayInstead("no controller is needed for this")


def _check_all_of_nodes(resources: list[Body]) -> None:
    if not resources or not all(map(_is_of_a_node, resources)):
        raise RelayInstead("it is not about single nodes only")


def _is_of_a_node(resource: Body) -> bool:
    """Whether a resource belongs to one node; a broker resource without a name is the default of all brokers."""
    kind: int = resource["resource_type"]
    return kind == BROKER_LOGGER_RESOURCE or (kind == BROKER_RESOURCE and bool(resource["resource_name"]))


def _other_node(active: ActiveController, resource: Body) -> Outcome:
    """Refuse the name of a resource that is not this node's id, in Kafka's words."""
    own, name = active.cluster.controller_id, resource["resource_name"]
    if not name:
        return Failure(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if not NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != own:
        return Failure(ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {own}, but received {name}")
    return None


def _no_logger(names: list[str]) -> Outcome:
    """Refuse loggers: none exists here."""
    if not names:
        return None
    words = f"Logger {names[0]} does not exist! This node is a controller; its log level is an option of its command."
    return Failure(ErrorCode.INVALID_CONFIG, words)


def _not_a_throttle(names: list[str]) -> Outcome:
    """Refuse settings that this node cannot have."""
    refused = [name for name in names if name not in THROTTLES]
    if not refused:
        return None
    words = f"This node is a controller and holds no data: {', '.join(refused)} cannot be set on it."
    return Failure(ErrorCode.INVALID_CONFIG, words)


def _described(active: ActiveController, resource: Body) -> Body:
    failure = _other_node(active, resource)
    if failure is not None or resource["resource_type"] == BROKER_LOGGER_RESOURCE:
        return {**_of(resource, failure), "configs": []}
    endpoints = ",".join(f"{endpoint.listener}://{endpoint.host}:{endpoint.port}" for endpoint in active.advertised())
    known = {
        "broker.id": str(active.cluster.controller_id),
        # Tools that count brokers recognise a node without data by this (KIP-631).
        "process.roles": "controller",
        "advertised.listeners": endpoints,
    }
    wanted = resource["configuration_keys"] or known  # null and an empty list both mean all
    configs = [
        {
            "name": name,
            "value": value,
            "read_only": True,
            "config_source": STATIC_BROKER_CONFIG,
            "is_sensitive": False,
            "config_type": STRING,
        }
        for name, value in known.items()
        if name in wanted
    ]
    return {**_of(resource, None), "configs": configs}


def _of(resource: Body, outcome: Outcome) -> Body:
    return {
        **error_fields(outcome),
        "resource_type": resource["resource_type"],
        "resource_name": resource["resource_name"],
    }
