"""Finalized features (KIP-584): errors of KafkaController.validateFeatureUpdate, with its messages."""

import pytest

from controller_core.rules.features import FeatureUpdate, Supported, UpgradeType, update_features
from kafka_wire import ErrorCode, Failure

UP, SAFE, UNSAFE, UNKNOWN = (
    UpgradeType.UPGRADE,
    UpgradeType.SAFE_DOWNGRADE,
    UpgradeType.UNSAFE_DOWNGRADE,
    UpgradeType.UNKNOWN,
)
EXISTING = {"f": 3}
BOTH: list[Supported] = [{"f": (2, 9), "g": (1, 9)}, {"f": (1, 5)}]


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "message"),
    [
        ("", 1, UP, "Feature name can not be empty."),
        ("f", 4, UNKNOWN, "Received unknown upgrade type."),
        ("g", 0, SAFE, "Can not delete non-existing finalized feature."),
        ("f", 0, UP, "Can not provide versionLevel: 0 less than 1 without setting the SAFE downgradeType in the request."),
        ("f", 3, UP, "Can not upgrade a finalized feature from existing versionLevel:3 to the same value."),
        ("f", 3, SAFE, "Can not downgrade a finalized feature from existing versionLevel:3 to the same value."),
        ("f", 2, UP, "Can not downgrade finalized feature from existing versionLevel:3 to provided versionLevel:2 without setting the downgradeType to SAFE in the request."),
        ("f", 2, UNSAFE, "Can not downgrade finalized feature from existing versionLevel:3 to provided versionLevel:2 without setting the downgradeType to SAFE in the request."),
        ("f", 4, SAFE, "When the downgradeType is set to SAFE in the request, the provided versionLevel:4 can not be greater than existing versionLevel:3."),
        ("h", 1, UP, "Could not apply finalized feature update because the provided feature is not supported."),
        ("f", 1, SAFE, "Could not apply finalized feature update because the provided versionLevel:1 is lower than the supported minVersion:2."),
        ("f", 6, UP, "Could not apply finalized feature update because brokers were found to have incompatible versions for the feature."),
        ("g", 1, UP, "Could not apply finalized feature update because brokers were found to have incompatible versions for the feature."),
    ],
)  # fmt: skip
def test_an_invalid_update_is_refused(feature: str, level: int, upgrade_type: UpgradeType, message: str) -> None:
    """The existing level stays."""
    update = FeatureUpdate(feature, level, upgrade_type)

    assert update_features([update], EXISTING, BOTH) == (
        EXISTING,
        {feature: Failure(ErrorCode.INVALID_REQUEST, message)},
    )


def test_updates_are_independent() -> None:
    """A refused update does not affect the others (KIP-584)."""
    updates = [
        FeatureUpdate("f", 5, UP),
        FeatureUpdate("h", 1, UP),
        FeatureUpdate("old", 0, SAFE),
        FeatureUpdate("high", 1, SAFE),
    ]
    supported: list[Supported] = [{"f": (1, 5), "high": (1, 4)}]

    levels, outcomes = update_features(updates, {"f": 3, "old": 1, "high": 4, "other": 2}, supported)
    assert levels == {"f": 5, "high": 1, "other": 2}
    assert {name: outcome is None for name, outcome in outcomes.items()} == {
        "f": True,
        "h": False,
        "old": True,
        "high": True,
    }
