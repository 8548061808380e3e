"""Rules of UpdateFeatures for the cluster's finalized features (KIP-584).

Brokers in ZooKeeper mode register no supported feature, so in practice every update is refused, except the removal of a feature that
was written manually. The rules are complete nevertheless, and use the supported features of registrations.

Source: KafkaController.validateFeatureUpdate, newFinalizedVersionOrIncompatibilityError. Kafka's controller checks the features of its
own broker; this controller, which is no broker, checks those of all live brokers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from kafka_wire import ErrorCode, Failure

Levels = Mapping[str, int]
"""Version levels by feature, from 1."""
Supported = Mapping[str, tuple[int, int]]
"""Lowest and highest version that one broker supports, by feature."""


class UpgradeType(IntEnum):
    """Whether an update may lower a level (FeatureUpdate.UpgradeType)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """Requested level of a feature; a level below 1 removes the feature."""

    feature: str
    level: int
    upgrade_type: UpgradeType

    @property
    def removes(self) -> bool:
        """Whether the update removes the feature."""
        return self.level < 1 and self.upgrade_type is not UpgradeType.UPGRADE


def update_features(
    updates: Iterable[FeatureUpdate], existing: Levels, brokers: Sequence[Supported]
) -> tuple[Levels, Mapping[str, Failure | None]]:
    """Decide each update independently; return the levels to write and the result of each update.

    >>> update_features([FeatureUpdate("f", 2, UpgradeType.UPGRADE)], {"f": 1}, [{"f": (1, 3)}])
    ({'f': 2}, {'f': None})
    """
    levels = dict(existing)
    outcomes: dict[str, Failure | None] = {}
    for update in updates:
        refused = _refused(update, existing.get(update.feature), brokers)
        outcomes[update.feature] = None if refused is None else Failure(ErrorCode.INVALID_REQUEST, refused)
        if refused is None and update.removes:
            del levels[update.feature]
        elif refused is None:
            levels[update.feature] = update.level
    return levels, outcomes


def _refused(update: FeatureUpdate, existing: int | None, brokers: Sequence[Supported]) -> str | None:
    if not update.feature:
        return "Feature name can not be empty."
    if update.upgrade_type is UpgradeType.UNKNOWN:
        return "Received unknown upgrade type."
    if update.removes:
        return "Can not delete non-existing finalized feature." if existing is None else None
    if update.level < 1:
        return (
            f"Can not provide versionLevel: {update.level} less than 1 without setting the SAFE downgradeType "
            "in the request."
        )
    refused = None if existing is None else _refused_step(update, existing)
    return refused or _unsupported(update, brokers)


def _refused_step(update: FeatureUpdate, existing: int) -> str | None:
    if update.level == existing:
        direction = "downgrade" if update.upgrade_type is UpgradeType.SAFE_DOWNGRADE else "upgrade"
        return f"Can not {direction} a finalized feature from existing versionLevel:{existing} to the same value."
    if update.level < existing and update.upgrade_type is not UpgradeType.SAFE_DOWNGRADE:
        return (
            f"Can not downgrade finalized feature from existing versionLevel:{existing} to provided "
            f"versionLevel:{update.level} without setting the downgradeType to SAFE in the request."
        )
    if update.level > existing and update.upgrade_type is not UpgradeType.UPGRADE:
        return (
            f"When the downgradeType is set to SAFE in the request, the provided versionLevel:{update.level} "
            f"can not be greater than existing versionLevel:{existing}."
        )
    return None


def _unsupported(update: FeatureUpdate, brokers: Sequence[Supported]) -> str | None:
    ranges = [supported.get(update.feature) for supported in brokers]
    known = [supported for supported in ranges if supported is not None]
    if not known:
        return "Could not apply finalized feature update because the provided feature is not supported."
    if update.level < (lowest := max(supported[0] for supported in known)):
        return (
            f"Could not apply finalized feature update because the provided versionLevel:{update.level} is lower "
            f"than the supported minVersion:{lowest}."
        )
    if len(known) < len(ranges) or update.level > min(supported[1] for supported in known):
        return (
            "Could not apply finalized feature update because brokers were found to have incompatible versions "
            "for the feature."
        )
    return None
