"""The cluster's finalized features in `/feature`: read and changed, fenced like every other write of an active term.

Source: KafkaController.processFeatureUpdates, FeatureZNode.
"""

from collections.abc import Callable, Iterable

from controller_core.rules.features import FeatureUpdate, Levels, Supported, update_features
from controller_core.shell.store import FeatureOutcomes
from controller_core.shell.zookeeper.optimistic import Attempt, optimistic_update
from kafka_wire import ErrorCode, Failure
from kafka_zookeeper import formats, paths, writes
from kafka_zookeeper.session import Node, ZooKeeperError, ZooKeeperSession

DISABLED = Failure(ErrorCode.INVALID_REQUEST, "Feature versioning system is disabled.")
NOT_CONTROLLER = Failure(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
FAILED = Failure(ErrorCode.FEATURE_UPDATE_FAILED, ErrorCode.FEATURE_UPDATE_FAILED.message)

FENCE = 0
"""Index of the fence in the transaction."""


class Features:
    """Implements `store.FeatureStore`; `session` returns the current session with ZooKeeper, if there is one."""

    def __init__(self, session: Callable[[], ZooKeeperSession | None]) -> None:
        self._session = session

    async def update(
        self,
        updates: Iterable[FeatureUpdate],
        *,
        controller_epoch: int,
        brokers: Iterable[int],
        validate_only: bool,
    ) -> FeatureOutcomes | Failure:
        """Update features under a controller epoch, to levels that these brokers support; returns the result for each feature."""
        session = self._session()
        if session is None:
            return NOT_CONTROLLER
        try:
            return await _update(session, list(updates), controller_epoch, list(brokers), validate_only=validate_only)
        except ZooKeeperError as error:
            return Failure(ErrorCode.FEATURE_UPDATE_FAILED, f"unknown whether the features were updated: {error}")
        except formats.FormatError:
            return Failure(ErrorCode.FEATURE_UPDATE_FAILED, "the stored features or broker registrations are malformed")


async def _update(
    session: ZooKeeperSession,
    updates: list[FeatureUpdate],
    controller_epoch: int,
    brokers: list[int],
    *,
    validate_only: bool,
) -> FeatureOutcomes | Failure:
    where = [paths.CONTROLLER_EPOCH, paths.FEATURE, *map(paths.broker, brokers)]

    async def attempt() -> Attempt[FeatureOutcomes | Failure]:
        epoch, feature, *registrations = await session.multi_get(where)
        if epoch is None or formats.decode_controller_epoch(epoch.data) != controller_epoch:
            return Attempt([], NOT_CONTROLLER)
        # The first controller of Kafka 2.7 or later creates the znode, without features.
        current = formats.FinalizedFeatures() if feature is None else formats.decode_features(feature.data)
        if current.status is formats.FeatureStatus.DISABLED:
            return Attempt([], DISABLED)
        supported = [_supported(broker, node) for broker, node in zip(brokers, registrations, strict=True)]
        levels, outcomes = update_features(updates, current.levels, supported)
        if validate_only or levels == current.levels:
            return Attempt([], outcomes)
        fence = writes.Check(paths.CONTROLLER_EPOCH, epoch.version)
        return Attempt([fence, _write(feature, current, levels)], outcomes)

    outcomes, ended = await optimistic_update(session, attempt, _is_retried)
    if isinstance(ended, writes.Committed):
        return outcomes
    if isinstance(ended, writes.Refused):
        return NOT_CONTROLLER if ended.index == FENCE else FAILED
    return (
        outcomes if isinstance(outcomes, Failure) else {name: outcome or FAILED for name, outcome in outcomes.items()}
    )


async def _is_retried(ended: writes.MultiResult) -> bool:
    """Return whether another process was faster; only a refusal by the fence is final."""
    return isinstance(ended, writes.Refused) and ended.index != FENCE


def _write(feature: Node | None, current: formats.FinalizedFeatures, levels: Levels) -> writes.Operation:
    data = formats.encode_features(formats.FinalizedFeatures(formats.FeatureStatus.ENABLED, levels, current.version))
    if feature is None:
        return writes.Create(paths.FEATURE, data)
    return writes.SetData(paths.FEATURE, data, feature.version)


def _supported(broker_id: int, registration: Node | None) -> Supported:
    """Return the features that a broker supports; one that is no longer registered restricts nothing."""
    if registration is None:
        return {}
    features = formats.decode_broker(broker_id, registration.data).features
    return {name: (versions.lowest, versions.highest) for name, versions in features.items()}
