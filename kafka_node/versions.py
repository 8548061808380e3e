"""Responses to ApiVersions: a process's own versions, and where it relays requests, those that every live broker supports.

A relayed request may reach any live broker, so it is offered only in versions that all of them support: this is safe during
a rolling upgrade. Pure.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka_wire import ApiKey, Body, ErrorCode

_Key = TypeVar("_Key", int, str)

VersionRange = tuple[int, int]
"""Lowest and highest version, both included."""

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")  # KIP-511: names of client software
_SOFTWARE_FROM = 3  # the version from which a client names its software
_ZERO_FEATURES_FROM = 4  # the version whose readers take a feature level of 0 (KAFKA-17011)


@dataclass(frozen=True, slots=True)
class BrokerVersions:
    """Versions and features of one broker."""

    ranges: Mapping[int, VersionRange]
    """By API key, including keys that are unknown to this process."""
    supported_features: Mapping[str, VersionRange] = field(default_factory=dict)
    finalized_features_epoch: int = -1
    finalized_features: Mapping[str, VersionRange] = field(default_factory=dict)


NO_BROKER = BrokerVersions({})

BETWEEN_SERVERS = frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
"""Requests between controllers, brokers and coordinators. They are neither relayed nor offered: an unauthorized request
would reach brokers from the controller's address, which they trust."""


def read_versions(body: Body) -> BrokerVersions:
    """Read a broker's response to ApiVersions."""
    return BrokerVersions(
        ranges={api["api_key"]: (api["min_version"], api["max_version"]) for api in body["api_keys"]},
        supported_features={
            feature["name"]: (feature["min_version"], feature["max_version"]) for feature in body["supported_features"]
        },
        finalized_features_epoch=body["finalized_features_epoch"],
        finalized_features={
            feature["name"]: (feature["min_version_level"], feature["max_version_level"])
            for feature in body["finalized_features"]
        },
    )


def shared(brokers: Sequence[BrokerVersions]) -> BrokerVersions:
    """Return what all brokers have in common; finalized features belong to the cluster, so those of the newest epoch count.

    >>> shared([BrokerVersions({1: (0, 12), 2: (0, 5)}), BrokerVersions({1: (4, 17)})]).ranges
    {1: (4, 12)}
    """
    if not brokers:
        return NO_BROKER
    newest = max(brokers, key=lambda broker: broker.finalized_features_epoch)
    return BrokerVersions(
        ranges=_intersection([broker.ranges for broker in brokers]),
        supported_features=_intersection([broker.supported_features for broker in brokers]),
        finalized_features_epoch=newest.finalized_features_epoch,
        finalized_features=newest.finalized_features,
    )


def api_versions_body(own: Mapping[ApiKey, VersionRange], brokers: BrokerVersions, version: int) -> Body:
    """Build the response's body in `version`, from a process's own versions and what the brokers share."""
    ranges: dict[int, VersionRange] = {key: at for key, at in brokers.ranges.items() if key not in BETWEEN_SERVERS}
    ranges.update({int(key): at for key, at in own.items()})
    least_level = 0 if version >= _ZERO_FEATURES_FROM else 1
    return {
        "error_code": ErrorCode.NONE,
        "api_keys": _entries(sorted(ranges.items())),
        "supported_features": [
            {"name": name, "min_version": lowest, "max_version": highest}
            for name, (lowest, highest) in sorted(brokers.supported_features.items())
            if lowest >= least_level
        ],
        "finalized_features_epoch": brokers.finalized_features_epoch,
        "finalized_features": [
            {"name": name, "min_version_level": lowest, "max_version_level": highest}
            for name, (lowest, highest) in sorted(brokers.finalized_features.items())
        ],
    }


def unsupported_version_body(own: VersionRange) -> Body:
    """Build the response to an ApiVersions request of an unknown version, to be sent as version 0 (KIP-511).

    It contains only the key of ApiVersions, so that the client can retry with a known version.
    """
    return {"error_code": ErrorCode.UNSUPPORTED_VERSION, "api_keys": _entries([(ApiKey.API_VERSIONS, own)])}


def names_its_software_well(body: Body, version: int) -> bool:
    """Return whether the request names its client software by KIP-511's rule; else the response is INVALID_REQUEST."""
    named = (body["client_software_name"], body["client_software_version"])
    return version < _SOFTWARE_FROM or all(_SOFTWARE.fullmatch(name) for name in named)


def _entries(ranges: Iterable[tuple[int, VersionRange]]) -> list[dict[str, Any]]:
    return [{"api_key": key, "min_version": lowest, "max_version": highest} for key, (lowest, highest) in ranges]


def _intersection(every: Sequence[Mapping[_Key, VersionRange]]) -> dict[_Key, VersionRange]:
    """Return the keys that all have, with the versions that all have."""
    common: set[_Key] = set(every[0]).intersection(*every[1:])
    limits = {
        key: (max(ranges[key][0] for ranges in every), min(ranges[key][1] for ranges in every))
        for key in sorted(common)
    }
    return {key: (lowest, highest) for key, (lowest, highest) in limits.items() if lowest <= highest}
