"""Levels of a KRaft cluster's features: releases, defaults of a new cluster, dependencies, and steps to another level.

Source: Feature and the FeatureVersion classes of Kafka 4.3.1, and Formatter for the levels of a new cluster.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller_core.rules.features import UpgradeType
from kafka_metadata import metadata_versions

INT16_MIN, INT16_MAX = -(1 << 15), (1 << 15) - 1
_UPGRADE_TYPES = frozenset({UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE})


class FeatureError(ValueError):
    """A level that a cluster cannot have; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature other than metadata.version. `since` has the first metadata version of each level of it, from level 0."""

    since: tuple[int, ...]
    needs_metadata_version: Mapping[int, int] = field(default_factory=dict)
    """The lowest metadata version by level, where a level has one of its own."""

    def default_level(self, metadata_version: int) -> int:
        """Return the level in a new cluster of a metadata version."""
        return max(level for level, since in enumerate(self.since) if level == 0 or since <= metadata_version)


FEATURES = {
    metadata_versions.ELR_VERSION: Feature((metadata_versions.MINIMUM_VERSION, 26), {1: metadata_versions.ELR_SINCE}),
    "group.version": Feature((metadata_versions.MINIMUM_VERSION, 22)),
    metadata_versions.KRAFT_VERSION: Feature((metadata_versions.MINIMUM_VERSION, 21)),
    "share.version": Feature((metadata_versions.MINIMUM_VERSION, 28)),
    "streams.version": Feature((metadata_versions.MINIMUM_VERSION, 29)),
    "transaction.version": Feature((metadata_versions.MINIMUM_VERSION, 24, 24)),
}


def parse_release(text: str, *, allows_unstable: bool) -> int:
    """Return the metadata version of a release such as 4.3, 4.3.1 or 4.3-IV0; what follows the second number is ignored.

    Raises FeatureError.

    >>> parse_release("4.0.2", allows_unstable=False)
    25
    """
    highest = metadata_versions.LATEST_UNSTABLE if allows_unstable else metadata_versions.LATEST_PRODUCTION
    by_name = {name: level for level, name in metadata_versions.VERSION_NAMES.items() if level <= highest}
    # A release alone has its last released version, so those that are not released have no short name.
    by_name |= {
        name.partition("-")[0]: level
        for level, name in metadata_versions.VERSION_NAMES.items()
        if level <= metadata_versions.LATEST_PRODUCTION
    }
    segments = text.rstrip(".").split(".")
    key = text if len(segments) <= 2 else ".".join(segments[:2])
    if key not in by_name:
        names = ", ".join(name for level, name in metadata_versions.VERSION_NAMES.items() if level <= highest)
        raise FeatureError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}")
    return by_name[key]


def parse_level(text: str) -> tuple[str, int]:
    """Return the name and the level of FEATURE=LEVEL. Raises FeatureError."""
    name, equals, level = text.partition("=")
    if not equals:
        raise FeatureError(f"Can't parse feature=level string {text}: equals sign not found.")
    number = level.strip()
    if not re.fullmatch(r"[+-]?[0-9]+", number) or not INT16_MIN <= int(number) <= INT16_MAX:
        raise FeatureError(f"Can't parse feature=level string {text}: unable to parse {number} as a short.")
    return name.strip(), int(number)


def new_cluster_levels(
    requested: Mapping[str, int], *, release: int | None, has_static_voters: bool, allows_unstable: bool
) -> dict[str, int]:
    """Return the level of every feature of a new cluster, with those of metadata.version and kraft.version.

    `release` is the requested metadata version, if any. Raises FeatureError.
    """
    metadata_version = _metadata_version(requested, release, allows_unstable=allows_unstable)
    for name in requested:
        if name != metadata_versions.METADATA_VERSION and name not in FEATURES:
            raise FeatureError(f"Unsupported feature: {name}. Supported features are: {', '.join(FEATURES)}")
    kraft_version = _kraft_version(requested.get(metadata_versions.KRAFT_VERSION), has_static_voters=has_static_voters)
    defaults = {name: feature.default_level(metadata_version) for name, feature in FEATURES.items()}
    levels = {
        **defaults,
        **requested,
        metadata_versions.KRAFT_VERSION: kraft_version,
        metadata_versions.METADATA_VERSION: metadata_version,
    }
    for name, feature in FEATURES.items():
        _check_level(name, feature, levels[name], metadata_version)
    return levels


def refused_step(
    current: int, level: int, upgrade_type: int, reason_not_supported: Callable[[], str | None]
) -> str | None:
    """Return why a feature may not go from its current level to another one; None if it may (FeatureControlManager.updateFeature).

    >>> refused_step(2, 1, UpgradeType.SAFE_DOWNGRADE, lambda: None)
    >>> refused_step(1, 2, UpgradeType.SAFE_DOWNGRADE, lambda: None)
    "Can't downgrade to a newer version."
    """
    if upgrade_type not in _UPGRADE_TYPES:
        return "The controller does not support the given upgrade type."
    if level < 0:
        return "A feature version cannot be less than 0."
    if (reason := reason_not_supported()) is not None:
        return reason
    if level < current and upgrade_type == UpgradeType.UPGRADE:
        return "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe downgrade."
    if level > current and upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def refused_dependency(name: str, level: int, metadata_version: int) -> str | None:
    """Return why a level of a feature does not fit a metadata version; None if it does (Feature.validateVersion).

    >>> refused_dependency("eligible.leader.replicas.version", 1, 22)
    'eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level 23'
    >>> refused_dependency("foo.version", 0, 22)
    'Feature foo.version not found.'
    """
    if name not in FEATURES:
        # Level 0 is the only one that gets here: all nodes support it for any name.
        return f"Feature {name} not found."
    needed = FEATURES[name].needs_metadata_version.get(level, metadata_versions.MINIMUM_VERSION)
    if metadata_version >= needed:
        return None
    return (
        f"{name} could not be set to {level} because it depends on {metadata_versions.METADATA_VERSION} level {needed}"
    )


def _metadata_version(requested: Mapping[str, int], release: int | None, *, allows_unstable: bool) -> int:
    if metadata_versions.METADATA_VERSION in requested:
        if release is not None:
            raise FeatureError(
                f"Use --release-version instead of --feature {metadata_versions.METADATA_VERSION}=X to avoid ambiguity."
            )
        release = requested[metadata_versions.METADATA_VERSION]
        if release not in metadata_versions.VERSION_NAMES:
            raise FeatureError(
                f"No MetadataVersion with feature level {release}. Valid feature levels are from {metadata_versions.MINIMUM_VERSION} to "
                f"{metadata_versions.LATEST_UNSTABLE}."
            )
    if release is None:
        return metadata_versions.LATEST_UNSTABLE if allows_unstable else metadata_versions.LATEST_PRODUCTION
    if release > metadata_versions.LATEST_PRODUCTION and not allows_unstable:
        raise FeatureError(
            f"{metadata_versions.METADATA_VERSION} {metadata_versions.VERSION_NAMES[release]} is not yet stable."
        )
    return release


def _kraft_version(requested: int | None, *, has_static_voters: bool) -> int:
    default = 0 if has_static_voters else 1
    if requested is None:
        return default
    if requested == 0 and not has_static_voters:
        raise FeatureError(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty. For static voters set "
            "controller.quorum.voters; for dynamic ones remove --feature kraft.version."
        )
    if requested != 0 and has_static_voters:
        raise FeatureError(
            f"Cannot set kraft.version to {requested} unless controller.quorum.voters is empty. Remove it, and use --standalone, "
            "--initial-controllers or --no-initial-controllers."
        )
    return requested


def _check_level(name: str, feature: Feature, level: int, metadata_version: int) -> None:
    if not 0 <= level < len(feature.since):
        raise FeatureError(f"No feature:{name} with feature level {level}")
    if (reason := refused_dependency(name, level, metadata_version)) is not None:
        raise FeatureError(reason)
