"""Features that a controller of KRaft mode lists in ApiVersions and in its registration. Source: QuorumFeatures of Kafka."""

from controller_core.quorum.rules import ALL_VERSIONS
from controller_core.rules.feature_levels import FEATURES
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.metadata_versions import KRAFT_VERSION, LATEST_PRODUCTION, METADATA_VERSION, MINIMUM_VERSION
from kafka_node.versions import BrokerVersions, VersionRange

SUPPORTED: dict[str, VersionRange] = {
    METADATA_VERSION: (MINIMUM_VERSION, LATEST_PRODUCTION),
    **{name: (0, len(feature.since) - 1) for name, feature in FEATURES.items()},
    KRAFT_VERSION: (ALL_VERSIONS.minimum, ALL_VERSIONS.maximum),
}
"""Levels of features that this program has, both ends included."""


def listed_features(committed: MetadataLog, kraft_version: int) -> BrokerVersions:
    """Return the supported levels, and those in effect, which are of the epoch (offset) up to which the log is applied."""
    finalized = {name: record.feature_level for name, record in committed.image.features.items()}
    if kraft_version:
        finalized[KRAFT_VERSION] = kraft_version
    return BrokerVersions(
        {},
        SUPPORTED,
        finalized_features_epoch=committed.end_offset - 1 if finalized else -1,
        finalized_features={name: (level, level) for name, level in finalized.items()},
    )
