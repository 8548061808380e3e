"""Levels of loggers by Kafka's requests (KIP-412; RuntimeLoggerManager of Kafka 4.3)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_node.configs.alterations import AlterOperation
from kafka_node.logger_levels import LEVELS, ROOT, alter_logger_levels, logger_levels
from kafka_wire import Body, ErrorCode, Failure

NODE_ID = 101
VALID = "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
ABOVE, LOGGER = "levels", "levels.of.a.test"


@pytest.fixture(autouse=True)
def loggers() -> Iterator[None]:
    """A logger below another one; the levels of both and of root are as before at the end."""
    found = [logging.root, logging.getLogger(ABOVE), logging.getLogger(LOGGER)]
    before = [logger.level for logger in found]
    yield
    for logger, level in zip(found, before, strict=True):
        logger.setLevel(level)


def change(name: str = LOGGER, value: str | None = "DEBUG", operation: int = AlterOperation.SET) -> Body:
    """Return one change."""
    return {"name": name, "config_operation": operation, "value": value}


def alter(*changes: Body, name: str = str(NODE_ID), **options: Any) -> Failure | None:
    """Change levels at the node."""
    return alter_logger_levels(
        NODE_ID, {"resource_name": name, "configs": list(changes)}, **{"validate_only": False, **options}
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_level_that_is_set_is_listed_and_in_force(level: str) -> None:
    """Names of Kafka's levels; TRACE is below all of Python's."""
    assert alter(change(value=level)) is None

    assert logger_levels()[LOGGER] == level
    assert logging.getLogger(LOGGER).isEnabledFor(LEVELS[level])
    assert not logging.getLogger(LOGGER).isEnabledFor(LEVELS[level] - 1)


def test_a_logger_without_a_level_has_that_of_the_logger_above() -> None:
    """Method LoggingController.loggers; the levels of root and of all loggers are listed."""
    alter(change(ABOVE, "ERROR"))
    assert logger_levels()[LOGGER] == "ERROR"

    alter(change(ABOVE, None, AlterOperation.DELETE))
    alter(change(ROOT, "FATAL"))
    assert (logger_levels()[ROOT], logger_levels()[ABOVE], logger_levels()[LOGGER]) == ("FATAL",) * 3


@pytest.mark.parametrize(
    ("changes", "code", "message"),
    [
        ([change("no.such")], ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        (
            [change(value="LOUD")],
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {LOGGER} to LOUD as it is not a supported log level. {VALID}",
        ),
        (
            [change(ROOT, None, AlterOperation.DELETE)],
            ErrorCode.INVALID_REQUEST,
            "Removing the log level of the root logger is not allowed",
        ),
        (
            [change(operation=AlterOperation.APPEND)],
            ErrorCode.INVALID_REQUEST,
            "APPEND operation is not allowed for the BROKER_LOGGER resource",
        ),
        (
            [change(operation=7)],
            ErrorCode.INVALID_REQUEST,
            "Unknown operation type 7 is not allowed for the BROKER_LOGGER resource",
        ),
    ],
)
def test_an_invalid_change_is_refused_with_kafkas_message_and_nothing_changes(
    changes: list[Body], code: ErrorCode, message: str
) -> None:
    """Method RuntimeLoggerManager.validateLogLevelConfigs."""
    before = logger_levels()

    assert alter(change(ABOVE, "TRACE"), *changes) == Failure(code, message)
    assert logger_levels() == before


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("7", "Unexpected node id. Expected 101, but received 7"),
        ("", "Node id must be an integer, but it is: "),
        ("a", "Node id must be an integer, but it is: a"),
    ],
)
def test_a_node_changes_only_its_own_loggers(name: str, message: str) -> None:
    """Method RuntimeLoggerManager.validateResourceNameIsNodeId."""
    assert alter(change(), name=name) == Failure(ErrorCode.INVALID_REQUEST, message)


def test_a_request_that_only_validates_changes_nothing() -> None:
    """Field ValidateOnly of IncrementalAlterConfigs."""
    before = logger_levels()

    assert alter(change(value="TRACE"), validate_only=True) is None
    assert logger_levels() == before
