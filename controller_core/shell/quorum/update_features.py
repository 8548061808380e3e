"""UpdateFeatures on the quorum's listeners: the upgrade of kraft.version, which needs no metadata.

A process that applies no metadata refuses all other features; `shell.kraft.admin.features` changes them.

Source: FeatureControlManager.updateFeature and QuorumController.updateFeatures of Kafka.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Protocol

from controller_core.metadata.feature_changes import invalid_level
from controller_core.quorum import rules, states
from controller_core.quorum.node import Node
from controller_core.rules import feature_levels, features
from controller_core.shell.quorum.driver import Driver
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_node.context import RequestContext
from kafka_wire import Body, ErrorCode, Failure
from kafka_wire.net.failures import CloseConnection

RESULTS_UNTIL = 1
"""Last version whose response has a result for each feature."""

_NOT_LEADER = Failure(ErrorCode.NOT_CONTROLLER, "This node does not lead the quorum.")
_TIMED_OUT = Failure(ErrorCode.REQUEST_TIMED_OUT, "The upgrade was not committed in time.")


Levels = Mapping[str, tuple[int, int]]
"""Requested level and upgrade type by feature."""


class Update(Protocol):
    """Changes features, all or none; returns why not."""

    async def __call__(self, updates: Levels, *, validate_only: bool) -> Failure | None:
        """Return once the changes are committed."""


async def update_features(driver: Driver, context: RequestContext, body: Body) -> Body:
    """Answer once the upgrade is committed."""
    return await answer_update(partial(_update, driver), context, body)


async def answer_update(update: Update, context: RequestContext, body: Body) -> Body:
    """Change features within the time of the request, and answer in the form of its version."""
    updates = {
        update["feature"]: (update["max_version_level"], update["upgrade_type"]) for update in body["feature_updates"]
    }
    try:
        async with asyncio.timeout(max(0, body["timeout_ms"]) / 1000):
            failure = await update(updates, validate_only=body["validate_only"])
    except TimeoutError:
        failure = _TIMED_OUT
    if failure is not None:
        return update_refused(context, body, failure)
    listed: Iterable[str] = updates if context.api_version <= RESULTS_UNTIL else ()
    results = [{"feature": feature, "error_code": ErrorCode.NONE, "error_message": None} for feature in listed]
    return {"error_code": ErrorCode.NONE, "error_message": None, "results": results}


def update_refused(_context: RequestContext, _body: Body, failure: Failure) -> Body:
    """Answer with an error, which is that of all features."""
    text = failure.message
    if failure.code is ErrorCode.INVALID_UPDATE_VERSION:
        text = f"The update failed for all features since the following feature had an error: {text}"
    return {"error_code": failure.code, "error_message": text, "results": []}


async def _update(driver: Driver, updates: Levels, *, validate_only: bool) -> Failure | None:
    if not isinstance(_running(driver).state, states.Leader):
        return _NOT_LEADER
    for feature, (level, _) in updates.items():
        if feature != KRAFT_VERSION:
            return invalid_level(
                feature, level, "This controller applies no metadata and does not support this feature."
            )
    for level, upgrade_type in updates.values():
        return await update_kraft_version(driver, level, upgrade_type, validate_only=validate_only)
    return None


async def update_kraft_version(driver: Driver, level: int, upgrade_type: int, *, validate_only: bool) -> Failure | None:
    """Raise kraft.version; return why not, else None once the upgrade is committed."""
    node = _running(driver)
    if not isinstance(node.state, states.Leader):
        return _NOT_LEADER
    reason = refusal(node.history.kraft_version, level, upgrade_type)
    if reason is not None:
        return invalid_level(KRAFT_VERSION, level, reason)
    if upgrade_type != features.UpgradeType.UPGRADE:
        return None
    failure = await _upgrade(driver, node.epoch, level, validate_only=validate_only)
    if failure is not None and failure.code is ErrorCode.INVALID_UPDATE_VERSION:
        return invalid_level(KRAFT_VERSION, level, failure.message)
    return failure


def _running(driver: Driver) -> Node:
    if driver.node is None:
        raise CloseConnection("the node of the quorum does not run")
    return driver.node


async def _upgrade(driver: Driver, epoch: int, level: int, *, validate_only: bool) -> Failure | None:
    result = await driver.upgrade_kraft_version(epoch, level, validate_only=validate_only)
    if result.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return _NOT_LEADER
    if result.error is not ErrorCode.NONE:
        return Failure(result.error, result.message or result.error.name)
    node = driver.node
    offset = None if node is None else node.history.voters_offset
    if not validate_only and offset is not None and not await driver.committed(offset):
        return _NOT_LEADER
    return None


def refusal(current: int, level: int, upgrade_type: int) -> str | None:
    """Return why a level of kraft.version is refused before the voters are considered; None if it is not.

    >>> refusal(1, 0, features.UpgradeType.SAFE_DOWNGRADE)
    "Can't downgrade the version of this feature."
    >>> refusal(0, 1, features.UpgradeType.UPGRADE)
    """
    versions = f"{rules.ALL_VERSIONS.minimum}-{rules.ALL_VERSIONS.maximum}"
    unsupported = None if level in rules.ALL_VERSIONS else f"This controller only supports versions {versions}."
    reason = feature_levels.refused_step(current, level, upgrade_type, lambda: unsupported)
    if reason is None and level != current and upgrade_type != features.UpgradeType.UPGRADE:
        return "Can't downgrade the version of this feature."
    return reason
