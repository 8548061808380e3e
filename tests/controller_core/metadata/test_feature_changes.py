"""Changes of feature levels. Source: FeatureControlManager and ConfigurationControlManager of Kafka."""

from dataclasses import replace
from uuid import UUID

import pytest

from controller_core.metadata.feature_changes import QuorumFeatures, refused_kraft_version, update_features
from controller_core.rules.features import FeatureUpdate, UpgradeType
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from kafka_metadata.records import (
    ConfigRecord,
    FeatureLevelRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    ResourceType,
    SupportedFeature,
)
from kafka_metadata.replay import replay
from kafka_wire import ErrorCode

UPGRADE, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE
SUPPORTED = {METADATA_VERSION: (7, 30), ELR_VERSION: (0, 1), "transaction.version": (0, 2)}
QUORUM = QuorumFeatures(101, SUPPORTED, (101,), 2)
FEATURES = tuple(SupportedFeature(name, *levels) for name, levels in SUPPORTED.items())


def image(metadata_version: int = 27, **levels: int) -> MetadataImage:
    """Return an image with a broker that supports all features."""
    broker = RegisterBrokerRecord(1, UUID(int=1), 5, (), FEATURES)
    named = {METADATA_VERSION: metadata_version, **{name.replace("_", "."): level for name, level in levels.items()}}
    return replay(MetadataImage(), [broker, *(FeatureLevelRecord(*feature) for feature in named.items())])


def refused(state: MetadataImage, *updates: FeatureUpdate, quorum: QuorumFeatures = QUORUM) -> str:
    """Return the message of a refusal."""
    made = update_features(state, quorum, updates, validate_only=False)
    assert made.records == ()
    assert made.reply.code is ErrorCode.INVALID_UPDATE_VERSION
    return str(made.reply.message)


def test_an_upgrade_writes_a_level() -> None:
    """FeatureLevelRecord; a dry run writes nothing."""
    update = FeatureUpdate(METADATA_VERSION, 30, UPGRADE)

    assert update_features(image(), QUORUM, [update], validate_only=False).records == (
        FeatureLevelRecord(METADATA_VERSION, 30),
    )
    dry = update_features(image(), QUORUM, [update], validate_only=True)
    assert (dry.records, dry.reply) == ((), None)


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (FeatureUpdate(METADATA_VERSION, 30, UpgradeType.UNKNOWN), "does not support the given upgrade type"),
        (FeatureUpdate("transaction.version", -1, SAFE), "A feature version cannot be less than 0."),
        (FeatureUpdate("foo.version", 1, UPGRADE), "Local controller 101 does not support this feature."),
        (FeatureUpdate("foo.version", 0, UPGRADE), "Feature foo.version not found."),
        (FeatureUpdate("foo.version", 0, SAFE), "Feature foo.version not found."),
        (FeatureUpdate(METADATA_VERSION, 31, UPGRADE), "Local controller 101 only supports versions 7-30"),
        (FeatureUpdate("transaction.version", 0, UPGRADE), "without setting the upgrade type"),
        (FeatureUpdate("transaction.version", 2, SAFE), "Can't downgrade to a newer version."),
    ],
)
def test_a_level_is_refused(update: FeatureUpdate, reason: str) -> None:
    """FeatureControlManager.updateFeature."""
    message = refused(image(transaction_version=1), update)

    assert message.startswith(f"Invalid update version {update.level} for feature {update.feature}. ")
    assert reason in message


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type", "reason"),
    [
        (29, 23, SAFE, None),
        (29, 22, SAFE, "Refusing to perform the requested downgrade because it might delete metadata information."),
        (29, 22, UNSAFE, "Unsafe metadata downgrade is not supported in this version."),
        (30, 29, SAFE, "Refusing to perform the requested downgrade because it might delete metadata information."),
    ],
)
def test_a_downgrade_of_the_metadata_is_allowed_where_no_record_differs(
    current: int, level: int, upgrade_type: UpgradeType, reason: str | None
) -> None:
    """MetadataVersion.checkIfMetadataChanged."""
    update = FeatureUpdate(METADATA_VERSION, level, upgrade_type)

    if reason is None:
        assert update_features(image(current), QUORUM, [update], validate_only=False).reply is None
    else:
        message = f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
        assert refused(image(current), update) == message


def test_every_broker_must_support_a_level() -> None:
    """Also a fenced one: it may come back (ClusterControlManager.brokerSupportedFeatures)."""
    old = RegisterBrokerRecord(2, UUID(int=2), 6, (), (SupportedFeature(METADATA_VERSION, 7, 28),))
    state = replay(image(), [old])

    assert "Broker 2 only supports versions 7-28" in refused(state, FeatureUpdate(METADATA_VERSION, 30, UPGRADE))
    assert "Broker 2 does not support this feature." in refused(state, FeatureUpdate("transaction.version", 2, UPGRADE))


def test_every_controller_must_be_registered_and_support_a_level() -> None:
    """KIP-919; before 3.7-IV0 controllers do not register."""
    three = replace(QUORUM, voters=(101, 102, 103))
    old = RegisterControllerRecord(102, UUID(int=102), False, (), (SupportedFeature(METADATA_VERSION, 7, 28),))
    new, update = replace(old, features=FEATURES), FeatureUpdate(METADATA_VERSION, 30, UPGRADE)

    assert "Controller 102 only supports versions 7-28" in refused(replay(image(), [old]), update, quorum=three)
    assert "controller 103 has not registered" in refused(replay(image(), [new]), update, quorum=three)
    assert update_features(image(14), three, [update], validate_only=False).reply is None


def test_a_level_depends_on_the_metadata_version_of_the_same_request() -> None:
    """Feature.validateVersion with the proposed versions."""
    elr = FeatureUpdate(ELR_VERSION, 1, UPGRADE)

    assert "depends on metadata.version level 23" in refused(image(22), elr)
    both = update_features(image(22), QUORUM, [elr, FeatureUpdate(METADATA_VERSION, 23, UPGRADE)], validate_only=False)
    assert both.reply is None


@pytest.mark.parametrize(
    ("current", "level", "upgrade_type", "reason"),
    [
        (0, 1, UPGRADE, None),
        (1, 1, SAFE, None),
        (1, 0, SAFE, "Can't downgrade the version of this feature."),
        (1, 0, UNSAFE, "Can't downgrade the version of this feature."),
        (0, 2, UPGRADE, "Local controller 101 only supports versions 0-1"),
        (0, 1, UpgradeType.UNKNOWN, "The controller does not support the given upgrade type."),
    ],
)
def test_kraft_version_is_refused_as_any_feature_and_never_lowered(
    current: int, level: int, upgrade_type: UpgradeType, reason: str | None
) -> None:
    """FeatureControlManager.updateFeature: what nodes support comes before the voters' reports."""
    quorum = replace(QUORUM, supported={**SUPPORTED, KRAFT_VERSION: (0, 1)}, kraft_version=current)
    broker = RegisterBrokerRecord(1, UUID(int=1), 5, (), (*FEATURES, SupportedFeature(KRAFT_VERSION, 0, 1)))

    failure = refused_kraft_version(
        replay(image(), [broker]), quorum, FeatureUpdate(KRAFT_VERSION, level, upgrade_type)
    )

    message = f"Invalid update version {level} for feature kraft.version. {reason}"
    assert (failure and failure.message) == (None if reason is None else message)


def test_one_refused_feature_refuses_all() -> None:
    """FeatureControlManager.updateFeatures is atomic."""
    updates = FeatureUpdate(METADATA_VERSION, 30, UPGRADE), FeatureUpdate("foo.version", 1, UPGRADE)

    assert "foo.version" in refused(image(), *updates)


def test_eligible_leader_replicas_need_one_min_insync_replicas() -> None:
    """ConfigurationControlManager.maybeGenerateElrSafetyRecords (KIP-966)."""
    own = ConfigRecord(ResourceType.BROKER, "1", "min.insync.replicas", "3")
    state = replay(image(), [own])

    made = update_features(state, QUORUM, [FeatureUpdate(ELR_VERSION, 1, UPGRADE)], validate_only=False)

    assert made.records == (
        ConfigRecord(ResourceType.BROKER, "", "min.insync.replicas", "2"),
        ConfigRecord(ResourceType.BROKER, "1", "min.insync.replicas", None),
        FeatureLevelRecord(ELR_VERSION, 1),
    )
