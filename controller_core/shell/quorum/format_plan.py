"""Content of a formatted controller: the records of a new cluster, and the voters of a new quorum.

Pure: ids and salts are drawn by the caller. Source: StorageTool.runFormatCommand and Formatter of Kafka.
"""

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from controller_core.rules import feature_levels
from controller_core.shell.quorum.endpoints import (
    BOOTSTRAP_SERVERS,
    VOTERS,
    InitialController,
    parse_initial_controllers,
)
from controller_core.shell.quorum.format_scram import ScramArgumentError, parse_scram
from controller_core.shell.quorum.settings import QuorumSettings
from kafka_metadata import metadata_versions, record_codec
from kafka_node.configs.setting_rules import SettingError
from kafka_node.security.endpoints import Address

THIS_MACHINE = "localhost"
"""Address of a controller whose listener is on all interfaces and that advertises none, as in Kafka."""


class FormatError(ValueError):
    """The arguments or the directories cannot be used; the message is a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """The arguments of a format command, as text."""

    cluster_id: str
    is_standalone: bool = False
    """This controller is the only voter of a new quorum."""
    initial_controllers: str | None = None
    """The voters of a new quorum: ID@HOST:PORT:DIRECTORY_ID, separated by commas."""
    has_no_initial_controllers: bool = False
    """This controller joins a quorum that exists."""
    features: tuple[str, ...] = ()
    release_version: str | None = None
    scram: tuple[str, ...] = ()
    ignore_formatted: bool = False


@dataclass(frozen=True, slots=True)
class FormatPlan:
    """What the directories get."""

    cluster_id: str
    node_id: int
    levels: Mapping[str, int]
    """Levels of all features, with metadata.version and kraft.version."""
    records: tuple[bytes, ...]
    """The first metadata records of the cluster, encoded."""
    voters: tuple[InitialController, ...]
    """The voters of a new quorum; empty: static voters, or a controller that joins a quorum."""
    listener: str
    """Name of the listener at which voters are reached."""

    @property
    def metadata_version(self) -> str:
        """The name of the metadata version."""
        return metadata_versions.VERSION_NAMES[self.levels[metadata_versions.METADATA_VERSION]]

    @property
    def own_directory_id(self) -> uuid.UUID | None:
        """The id of the metadata directory when this node is an initial voter."""
        return next((voter.directory_id for voter in self.voters if voter.node_id == self.node_id), None)


def plan_format(
    settings: QuorumSettings,
    options: FormatOptions,
    *,
    draw_id: Callable[[], uuid.UUID],
    draw_salt: Callable[[], bytes],
) -> FormatPlan:
    """Check the arguments and return the content of the directories. Raises FormatError."""
    if not options.cluster_id:
        raise FormatError("You must specify the cluster id.")
    if not options.cluster_id.isascii():
        raise FormatError(
            "The cluster id must be ASCII: Kafka reads meta.properties in another encoding than it writes."
        )
    try:
        levels = _levels(settings, options)
        voters = _voters(settings, options, draw_id)
        scram = [parse_scram(argument, draw_salt) for argument in options.scram]
    except (feature_levels.FeatureError, ScramArgumentError, SettingError) as error:
        raise FormatError(str(error)) from error
    if scram and levels[metadata_versions.METADATA_VERSION] < metadata_versions.SCRAM_SINCE:
        raise FormatError(
            f"SCRAM is only supported in {metadata_versions.METADATA_VERSION} {metadata_versions.VERSION_NAMES[metadata_versions.SCRAM_SINCE]} or later."
        )
    records = [record_codec.record_frame("FeatureLevelRecord", 0, body) for body in _feature_records(levels)]
    records += [record_codec.record_frame("UserScramCredentialRecord", 0, body) for body in scram]
    return FormatPlan(
        options.cluster_id, settings.node_id, levels, tuple(records), voters, settings.controller_listener_names[0]
    )


def _levels(settings: QuorumSettings, options: FormatOptions) -> dict[str, int]:
    allows_unstable = settings.unstable_feature_versions_enable
    release = None
    if options.release_version is not None:
        release = feature_levels.parse_release(options.release_version, allows_unstable=allows_unstable)
    return feature_levels.new_cluster_levels(
        dict(map(feature_levels.parse_level, options.features)),
        release=release,
        has_static_voters=bool(settings.voters),
        allows_unstable=allows_unstable,
    )


def _voters(
    settings: QuorumSettings, options: FormatOptions, draw_id: Callable[[], uuid.UUID]
) -> tuple[InitialController, ...]:
    dynamic = (options.is_standalone, options.initial_controllers is not None, options.has_no_initial_controllers)
    if sum(dynamic) > 1:
        raise FormatError("Use only one of --standalone, --initial-controllers and --no-initial-controllers.")
    if settings.voters:
        if options.is_standalone or options.initial_controllers is not None:
            raise FormatError(
                f"You cannot set {VOTERS} and format with --standalone or --initial-controllers. For voters that can change, "
                f"remove {VOTERS} and set {BOOTSTRAP_SERVERS}."
            )
        return ()
    if not any(dynamic):
        raise FormatError(
            f"Because {VOTERS} is not set on this controller, use one of --standalone (a new quorum of this controller), "
            "--initial-controllers (a new quorum of several) or --no-initial-controllers (to join a quorum)."
        )
    if options.is_standalone:
        endpoint = settings.advertised_listeners[0]
        address = Address(endpoint.host or THIS_MACHINE, endpoint.port)
        return (InitialController(settings.node_id, address, draw_id()),)
    return () if options.initial_controllers is None else parse_initial_controllers(options.initial_controllers)


def _feature_records(levels: Mapping[str, int]) -> list[dict[str, object]]:
    """Return the bodies of the records: metadata.version first, then the others by name; level 0 and kraft.version have none."""
    others = sorted(
        name
        for name, level in levels.items()
        if level and name not in {metadata_versions.METADATA_VERSION, metadata_versions.KRAFT_VERSION}
    )
    return [{"name": name, "feature_level": levels[name]} for name in (metadata_versions.METADATA_VERSION, *others)]
