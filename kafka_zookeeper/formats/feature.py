"""`/feature`: finalized features of the cluster (KIP-584). The controller creates and changes it; brokers read it.

JSON version 1 (inter.broker.protocol.version below 3.3) has a lowest and a highest level for each feature, version 2 only the
highest. Source: FeatureZNode in kafka.zk.ZkData.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_zookeeper import paths
from kafka_zookeeper.formats import documents
from kafka_zookeeper.formats.documents import FormatError, quote

INT16_MAX = 2**15 - 1


class FeatureStatus(enum.IntEnum):
    """Whether features are enabled."""

    DISABLED = 0
    """inter.broker.protocol.version is below 2.7."""
    ENABLED = 1


@dataclass(frozen=True, slots=True)
class FinalizedFeatures:
    """Content of `/feature`."""

    status: FeatureStatus = FeatureStatus.ENABLED
    levels: Mapping[str, int] = field(default_factory=dict)
    """Highest version level of each feature, from 1."""
    version: int = 2


def encode_features(features: FinalizedFeatures) -> bytes:
    """Return the document of the JSON version in `features`, 1 or 2."""
    if features.version not in {1, 2}:
        raise ValueError(f"JSON version of {paths.FEATURE} must be 1 or 2, found {features.version}")
    lowest = ',"min_version_level":{0}' if features.version == 1 else ""
    entries = (
        f'{quote(name)}:{{"max_version_level":{level}{lowest.format(level)}}}'
        for name, level in features.levels.items()
    )
    return f'{{"features":{{{",".join(entries)}}},"version":{features.version},"status":{features.status:d}}}'.encode()


def decode_features(data: bytes | None) -> FinalizedFeatures:
    """Decode the finalized features of JSON version 1 or 2; any other is rejected, as in Kafka."""
    path = paths.FEATURE
    document = documents.read_object(path, data)
    version = documents.int_field(path, document, "version")
    if version not in {1, 2}:
        raise FormatError(path, f"version must be 1 or 2, found {version}")
    status = FeatureStatus(documents.int_field(path, document, "status", lowest=0, highest=1))
    levels = {}
    entries = documents.as_object(path, "'features'", documents.field(path, document, "features"))
    for name, entry in entries.items():
        feature = documents.as_object(path, f"the feature {documents.shown(name)}", entry)
        for label, value in feature.items():
            documents.as_int(path, f"{documents.shown(label)} of the feature {documents.shown(name)}", value)
        lowest = 1
        if version == 1:
            lowest = documents.int_field(path, feature, "min_version_level", lowest=1, highest=INT16_MAX)
        level = documents.int_field(path, feature, "max_version_level", lowest, INT16_MAX)
        levels[documents.as_text(path, "a feature's name", name)] = level
    return FinalizedFeatures(status, levels, version)
