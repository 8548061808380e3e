"""Changes of feature levels as records (KIP-584, KIP-778). Source: FeatureControlManager and ConfigurationControlManager of Kafka 4.3.1.

kraft.version is not metadata: the quorum changes it. Which nodes support its levels is checked here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from controller_core.metadata.record_decision import RecordDecision
from controller_core.model.settings import MIN_ISR
from controller_core.rules.feature_levels import refused_dependency, refused_step
from controller_core.rules.features import FeatureUpdate, UpgradeType
from kafka_metadata import metadata_versions
from kafka_metadata.image import MetadataImage
from kafka_metadata.records import ConfigRecord, FeatureLevelRecord, MetadataRecord, ResourceType, SupportedFeature
from kafka_wire import ErrorCode, Failure

Levels = tuple[int, int]
"""Lowest and highest level of a feature that a node supports."""

DISABLED: Levels = (0, 0)
"""Levels of a feature that a node does not list."""


@dataclass(frozen=True, slots=True)
class QuorumFeatures:
    """What the controllers of the quorum support."""

    node_id: int
    supported: Mapping[str, Levels]
    """Levels that this controller supports, which need not be registered."""
    voters: Sequence[int]
    min_insync_replicas: int
    """Static default of the brokers: with eligible leader replicas it becomes a config of the cluster (KIP-966)."""
    kraft_version: int = 0
    """Level of kraft.version in effect."""


def update_features(
    image: MetadataImage, quorum: QuorumFeatures, updates: Iterable[FeatureUpdate], *, validate_only: bool
) -> RecordDecision:
    """Set levels of features other than kraft.version, all or none. The reply is a Failure or None."""
    wanted = {update.feature: update for update in updates}
    metadata_version = image.metadata_version or metadata_versions.MINIMUM_VERSION
    if metadata_versions.METADATA_VERSION in wanted:
        metadata_version = wanted[metadata_versions.METADATA_VERSION].level
    for update in wanted.values():
        failure = _refused(image, quorum, update, metadata_version)
        if failure is not None:
            return RecordDecision((), failure)
    if validate_only:
        return RecordDecision((), None)
    records: list[MetadataRecord] = []
    if metadata_versions.ELR_VERSION in wanted and wanted[metadata_versions.ELR_VERSION].level > 0:
        records += _uniform_min_insync_replicas(image, quorum.min_insync_replicas)
    records += (FeatureLevelRecord(update.feature, update.level) for update in wanted.values())
    return RecordDecision(tuple(records), None)


def refused_kraft_version(image: MetadataImage, quorum: QuorumFeatures, update: FeatureUpdate) -> Failure | None:
    """Return why kraft.version may not change to a level, whatever the voters have reported; None if it may."""
    current, level = quorum.kraft_version, update.level
    reason = refused_step(
        current,
        level,
        update.upgrade_type,
        lambda: reason_not_supported(image, quorum, metadata_versions.KRAFT_VERSION, level),
    )
    if reason is None and level != current and update.upgrade_type is not UpgradeType.UPGRADE:
        reason = "Can't downgrade the version of this feature."
    return None if reason is None else invalid_level(metadata_versions.KRAFT_VERSION, level, reason)


def invalid_level(feature: str, level: int, reason: str) -> Failure:
    """Return the error of one feature in Kafka's form."""
    return Failure(ErrorCode.INVALID_UPDATE_VERSION, f"Invalid update version {level} for feature {feature}. {reason}")


def _refused(
    image: MetadataImage, quorum: QuorumFeatures, update: FeatureUpdate, metadata_version: int
) -> Failure | None:
    current = current_level(image, update.feature)
    reason = refused_step(
        current,
        update.level,
        update.upgrade_type,
        lambda: reason_not_supported(image, quorum, update.feature, update.level),
    )
    if reason is None and update.feature == metadata_versions.METADATA_VERSION:
        return _refused_downgrade(current, update)
    if reason is None:
        reason = refused_dependency(update.feature, update.level, metadata_version)
    return None if reason is None else invalid_level(update.feature, update.level, reason)


def current_level(image: MetadataImage, feature: str) -> int:
    """Return the finalized level of a feature; 0: it is not enabled."""
    record = image.features.get(feature)
    return 0 if record is None else record.feature_level


def reason_not_supported(image: MetadataImage, quorum: QuorumFeatures, feature: str, level: int) -> str | None:
    """Return which broker or controller does not support a level of a feature; None if all do."""
    own = quorum.supported.get(feature, DISABLED)
    if (reason := _reason(f"Local controller {quorum.node_id}", own, level)) is not None:
        return reason
    for broker in image.brokers.values():
        if (reason := _reason(f"Broker {broker.broker_id}", _levels(broker.features, feature), level)) is not None:
            return reason
    if (image.metadata_version or metadata_versions.MINIMUM_VERSION) < metadata_versions.CONTROLLERS_SINCE:
        return None
    others = {node: registration for node, registration in image.controllers.items() if node != quorum.node_id}
    for node, controller in others.items():
        if (reason := _reason(f"Controller {node}", _levels(controller.features, feature), level)) is not None:
            return reason
    for node in quorum.voters:
        if node != quorum.node_id and node not in others:
            return f"controller {node} has not registered, and may not support this feature"
    return None


def _reason(what: str, levels: Levels, level: int) -> str | None:
    """Return why a node does not support a level (QuorumFeatures.reasonNotSupported)."""
    lowest, highest = levels
    if lowest <= level <= highest:
        return None
    if highest == 0:
        return f"{what} does not support this feature."
    return f"{what} only supports versions {lowest if lowest == highest else f'{lowest}-{highest}'}"


def _levels(features: Iterable[SupportedFeature], name: str) -> Levels:
    levels = (
        (feature.min_supported_version, feature.max_supported_version) for feature in features if feature.name == name
    )
    return next(levels, DISABLED)


def _refused_downgrade(current: int, update: FeatureUpdate) -> Failure | None:
    """Refuse a lower metadata version that has other records; Kafka 4.3 does not support it as an unsafe downgrade either."""
    if update.level >= current or not metadata_versions.has_other_records(update.level, current):
        return None
    reason = "Refusing to perform the requested downgrade because it might delete metadata information."
    if update.upgrade_type is UpgradeType.UNSAFE_DOWNGRADE:
        reason = "Unsafe metadata downgrade is not supported in this version."
    message = f"Unsupported metadata.version downgrade from {current} to {update.level}. {reason}"
    return Failure(ErrorCode.INVALID_UPDATE_VERSION, message)


def _uniform_min_insync_replicas(image: MetadataImage, static_default: int) -> list[ConfigRecord]:
    """Return the config of all brokers that eligible leader replicas need, and the removal of those of single brokers (KIP-966)."""
    records = []
    if MIN_ISR not in image.config_values(ResourceType.BROKER, ""):
        records.append(ConfigRecord(ResourceType.BROKER, "", MIN_ISR, str(static_default)))
    for resource, values in image.configs.items():
        if resource.type == ResourceType.BROKER and resource.name and MIN_ISR in values:
            records.append(ConfigRecord(ResourceType.BROKER, resource.name, MIN_ISR, None))
    return records
