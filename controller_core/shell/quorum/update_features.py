"""UpdateFeatures on the quorum's listeners: the upgrade of kraft.version, which needs no metadata. Other features are refused.

Source: FeatureControlManager.updateFeature and QuorumController.updateFeatures of Kafka.
"""

import asyncio
from collections.abc import Iterable

from controller_core.quorum.rules import ALL_VERSIONS
from controller_core.quorum.states import Leader
from controller_core.rules.features import UpgradeType
from controller_core.shell.quorum.driver import Driver
from kafka_metadata.metadata_versions import KRAFT_VERSION
from kafka_node.context import RequestContext
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode, Failure
from kafka_wire.net.failures import CloseConnection

RESULTS_UNTIL = 1
"""Last version whose response has a result for each feature."""

_NOT_LEADER = Failure(ErrorCode.NOT_CONTROLLER, "This node does not lead the quorum.")
_TIMED_OUT = Failure(ErrorCode.REQUEST_TIMED_OUT, "The upgrade was not committed in time.")


async def update_features(driver: Driver, context: RequestContext, body: Body) -> Body:
    """Answer once the upgrade is committed."""
    updates = {each["feature"]: (each["max_version_level"], each["upgrade_type"]) for each in body["feature_updates"]}
    try:
        async with asyncio.timeout(max(0, body["timeout_ms"]) / 1000):
            failure = await _update(driver, updates, validate_only=body["validate_only"])
    except TimeoutError:
        failure = _TIMED_OUT
    if failure is not None:
        text = failure.message
        if failure.code is ErrorCode.INVALID_UPDATE_VERSION:
            text = f"The update failed for all features since the following feature had an error: {text}"
        return {"error_code": failure.code, "error_message": text, "results": []}
    listed: Iterable[str] = updates if context.api_version <= RESULTS_UNTIL else ()
    results = [{"feature": feature, "error_code": ErrorCode.NONE, "error_message": None} for feature in listed]
    return {"error_code": ErrorCode.NONE, "error_message": None, "results": results}


async def _update(driver: Driver, updates: dict[str, tuple[int, int]], *, validate_only: bool) -> Failure | None:
    node = driver.node
    if node is None:
        raise CloseConnection("the node of the quorum does not run")
    if not isinstance(node.state, Leader):
        return _NOT_LEADER
    present = node.history.kraft_version
    for feature, (level, upgrade_type) in updates.items():
        reason = refusal(feature, present, level, upgrade_type)
        if reason is not None:
            return invalid(feature, level, reason)
    for feature, (level, upgrade_type) in updates.items():
        if upgrade_type == UpgradeType.UPGRADE:
            failure = await _upgrade(driver, node.epoch, level, validate_only=validate_only)
            if failure is not None:
                is_invalid = failure.code is ErrorCode.INVALID_UPDATE_VERSION
                return invalid(feature, level, failure.message) if is_invalid else failure
    return None


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


def refusal(feature: str, present: int, level: int, upgrade_type: int) -> str | None:
    """Return why a level of a feature is refused before the voters are considered; None if it is not.

    >>> refusal("kraft.version", 1, 0, UpgradeType.SAFE_DOWNGRADE)
    "Can't downgrade the version of this feature."
    >>> refusal("kraft.version", 0, 1, UpgradeType.UPGRADE)
    """
    if upgrade_type not in {UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE}:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if feature != KRAFT_VERSION:
        return "This controller applies no metadata and does not support this feature."
    if level not in ALL_VERSIONS:
        return f"This controller only supports versions {ALL_VERSIONS.minimum}-{ALL_VERSIONS.maximum}."
    if level < present and upgrade_type == UpgradeType.UPGRADE:
        return "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
    if level > present and upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    if level != present and upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade the version of this feature."
    return None


def invalid(feature: str, level: int, reason: str) -> Failure:
    """Return the error of one feature in Kafka's form."""
    return Failure(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {feature}. {reason}")
