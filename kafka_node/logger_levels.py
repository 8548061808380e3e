"""Levels of this process's loggers, as Kafka's tools read and change them: `kafka-configs --entity-type broker-loggers` (KIP-412).

Loggers are named by module, `root` is above all. A change lasts until the process ends. Source: RuntimeLoggerManager, LoggingController and
LogLevelConfig of Kafka 4.3.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kafka_node.configs.alterations import AlterOperation
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.outcomes import error_fields
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure

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

_NODE_ID = re.compile(r"[+-]?[0-9]{1,10}")
"""As Java reads an int."""


def logger_levels() -> dict[str, str]:
    """Return the level of each logger; one without a level of its own has that of the first above it that has one."""
    names = sorted(logging.root.manager.loggerDict)
    return {ROOT: _level_name(logging.root), **{name: _level_name(logging.getLogger(name)) for name in names}}


def _level_name(logger: logging.Logger) -> str:
    level = logger.getEffectiveLevel()
    return max((number, name) for name, number in LEVELS.items() if number <= max(level, TRACE))[1]


def split_loggers(body: Body) -> tuple[Body, list[Body]]:
    """Return a request of IncrementalAlterConfigs without its loggers, and these."""
    loggers = [each for each in body["resources"] if each["resource_type"] == ConfigResourceType.BROKER_LOGGER]
    others = [each for each in body["resources"] if each["resource_type"] != ConfigResourceType.BROKER_LOGGER]
    return {**body, "resources": others}, loggers


def logger_responses(node_id: int, resources: Sequence[Body], *, may_change: bool, validate_only: bool) -> list[Body]:
    """Return the answers of IncrementalAlterConfigs about loggers; `may_change` is whether the caller has the right."""
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    return [
        {
            **error_fields(
                alter_logger_levels(node_id, each, validate_only=validate_only)
                if may_change
                else Failure(denied, denied.message)
            ),
            "resource_type": each["resource_type"],
            "resource_name": each["resource_name"],
        }
        for each in resources
    ]


def alter_logger_levels(node_id: int, resource: Body, *, validate_only: bool) -> Failure | None:
    """Change the levels that a resource of IncrementalAlterConfigs names: all of them, or none and the first error."""
    failure = _node_failure(node_id, resource["resource_name"]) or _first_failure(resource["configs"])
    if failure is None and not validate_only:
        for config in resource["configs"]:
            _change(config["name"], None if config["config_operation"] == AlterOperation.DELETE else config["value"])
    return failure


def _node_failure(node_id: int, name: str) -> Failure | None:
    if not _NODE_ID.fullmatch(name):
        return Failure(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if int(name) != node_id:
        return Failure(ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {int(name)}")
    return None


def _first_failure(configs: Sequence[Body]) -> Failure | None:
    return next((failure for config in configs if (failure := _failure(config)) is not None), None)


def _failure(config: Body) -> Failure | None:
    name, operation, value = config["name"], config["config_operation"], config["value"]
    if operation not in set(AlterOperation):
        words = f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        return Failure(ErrorCode.INVALID_REQUEST, words)
    if operation in (AlterOperation.APPEND, AlterOperation.SUBTRACT):
        words = f"{AlterOperation(operation).name} operation is not allowed for the BROKER_LOGGER resource"
        return Failure(ErrorCode.INVALID_REQUEST, words)
    if name != ROOT and name not in logging.root.manager.loggerDict:
        return Failure(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == AlterOperation.DELETE:
        words = f"Removing the log level of the {ROOT} logger is not allowed"
        return Failure(ErrorCode.INVALID_REQUEST, words) if name == ROOT else None
    if value not in LEVELS:
        words = (
            f"Cannot set the log level of {name} to {value} as it is not a supported log level. Valid log levels are"
        )
        return Failure(ErrorCode.INVALID_CONFIG, f"{words} {', '.join(LEVELS)}")
    return None


def _change(name: str, level: str | None) -> None:
    """Set the level of a logger; None: it has none of its own any more."""
    logging.getLogger(None if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])
    log.warning("Log level changed", extra={"name_of_logger": name, "log_level": level or "that of the logger above"})
