"""Levels of this process's loggers, as Kafka's tools read and change them: `kafka-configs --entity-type broker-loggers` (KIP-412).

Loggers are named by module, `root` is above all. A change lasts until the process ends. Source: RuntimeLoggerManager, LoggingController and
LogLevelConfig of Kafka 4.3.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType

from kafka_node.configs.alterations import AlterOperation
from kafka_node.configs.resource_types import NODE_ID, ConfigResourceType
from kafka_node.outcomes import error_fields
from kafka_wire import Body, ErrorCode, Failure

log = logging.getLogger(__name__)

ROOT = "root"
TRACE = logging.DEBUG - 5
"""Python has no such level. Modules that are not Steward's may log below DEBUG."""

LEVELS: Mapping[str, int] = MappingProxyType(
    {
        "DEBUG": logging.DEBUG,
        "ERROR": logging.ERROR,
        "FATAL": logging.CRITICAL,
        "INFO": logging.INFO,
        "TRACE": TRACE,
        "WARN": logging.WARNING,
    }
)
"""Kafka's names, in the order of its message."""


def logger_levels() -> dict[str, str]:
    """Return the level of each logger; one without a level of its own has that of the first above it that has one."""
    names = sorted(logging.root.manager.loggerDict)
    return {ROOT: _level_name(logging.root), **{name: _level_name(logging.getLogger(name)) for name in names}}


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return max((number, name) for name, number in LEVELS.items() if number <= max(level, TRACE))[1]


async def alter_with_loggers(
    node_id: int, body: Body, may_change: Callable[[], bool], alter: Callable[[Body], Awaitable[Body]]
) -> Body:
    """Answer IncrementalAlterConfigs: all other resources by `alter`, then the loggers of this process.

    `may_change` returns whether the caller may change loggers.
    """
    loggers = [
        resource for resource in body["resources"] if resource["resource_type"] == ConfigResourceType.BROKER_LOGGER
    ]
    if not loggers:
        return await alter(body)
    others = [
        resource for resource in body["resources"] if resource["resource_type"] != ConfigResourceType.BROKER_LOGGER
    ]
    answer = await alter({**body, "resources": others}) if others else {"responses": []}
    is_allowed = may_change()
    changed = [
        _altered(node_id, logger, is_allowed=is_allowed, validate_only=body["validate_only"]) for logger in loggers
    ]
    return {**answer, "responses": [*answer["responses"], *changed]}


def _altered(node_id: int, resource: Body, *, is_allowed: bool, validate_only: bool) -> Body:
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    outcome = Failure(denied, denied.message)
    return {
        **error_fields(alter_logger_levels(node_id, resource, validate_only=validate_only) if is_allowed else outcome),
        "resource_type": resource["resource_type"],
        "resource_name": resource["resource_name"],
    }


def alter_logger_levels(node_id: int, resource: Body, *, validate_only: bool) -> Failure | None:
    """Change the levels that a resource of IncrementalAlterConfigs names: all of them, or none and the first error."""
    failure = _node_failure(node_id, resource["resource_name"]) or _first_failure(resource["configs"])
    if failure is None and not validate_only:
        for config in resource["configs"]:
            _change(config["name"], None if config["config_operation"] == AlterOperation.DELETE else config["value"])
    return failure


def _node_failure(node_id: int, name: str) -> Failure | None:
    if not NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        return Failure(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {int(name)}")
    return None


def _first_failure(configs: Sequence[Body]) -> Failure | None:
    return next((failure for config in configs if (failure := _failure(config)) is not None), None)


def _failure(config: Body) -> Failure | None:
    name, operation, value = config["name"], config["config_operation"], config["value"]
    if operation not in set(AlterOperation):
        message = f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    if operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        message = f"{AlterOperation(operation).name} operation is not allowed for the BROKER_LOGGER resource"
        return Failure(ErrorCode.INVALID_REQUEST, message)
    if name != ROOT and name not in logging.root.manager.loggerDict:
        return Failure(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.DELETE:
        message = f"Removing the log level of the {ROOT} logger is not allowed"
        return Failure(ErrorCode.INVALID_REQUEST, message) if name == ROOT else None
    if value not in LEVELS:
        message = (
            f"Cannot set the log level of {name} to {value} as it is not a supported log level. Valid log levels are"
        )
        return Failure(ErrorCode.INVALID_CONFIG, f"{message} {', '.join(LEVELS)}")
    return None


def _change(name: str, level: str | None) -> None:
    """Set the level of a logger; None: it has none of its own any more."""
    logging.getLogger(None if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])
    log.warning("Log level changed", extra={"name_of_logger": name, "log_level": level or "that of the logger above"})
