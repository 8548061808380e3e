"""Version negotiation by ApiVersions, as values; connection.py sends the requests.

The response to an unknown ApiVersions version is UNSUPPORTED_VERSION in the format of version 0, which since KIP-511 contains the
peer's supported versions of ApiVersions.
"""

import struct
from collections.abc import Mapping
from functools import cache
from importlib import metadata

from kafka_wire import codec
from kafka_wire.api import ApiKey, Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import UnsupportedVersion

SOFTWARE_NAME = "kafka-steward"
"""Sent to brokers for their metrics: letters, digits, '-' and '.' (KIP-511)."""

_ERROR_CODE = struct.Struct(">h")
_ERROR_OFFSET = 4
"""Header version 0 is only the correlation id, and the body starts with the error code in every version."""

VersionRange = tuple[int, int]
"""Lowest and highest version, both included."""


def api_versions_request() -> Body:
    """Return the body of an ApiVersions request of any version."""
    return {"client_software_name": SOFTWARE_NAME, "client_software_version": _software_version()}


@cache
def _software_version() -> str:
    """Return the version of the installed package, which is read from a file."""
    try:
        return metadata.version("kafka-steward")
    except metadata.PackageNotFoundError:  # the source tree is not installed
        return "0"


def highest_api_versions() -> int:
    """Return the highest ApiVersions version that this process supports."""
    return codec.versions("ApiVersionsRequest")[1]


def read_response(version: int, frame: bytes) -> tuple[ErrorCode, dict[int, VersionRange]]:
    """Decode the response to ApiVersions of `version`: its error, and the supported versions by API key.

    Raises CodecError if the frame is not such a response.
    """
    if len(frame) >= _ERROR_OFFSET + _ERROR_CODE.size:
        (error_code,) = _ERROR_CODE.unpack_from(frame, _ERROR_OFFSET)
        if error_code == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
    _, body = codec.decode_response(ApiKey.API_VERSIONS, version, frame)
    ranges = {entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in body["api_keys"]}
    return ErrorCode(body["error_code"]), ranges


def retry_version(rejected: int, ranges: Mapping[int, VersionRange]) -> int:
    """Return the version for the second ApiVersions request: the peer's highest, else 0, always below `rejected`."""
    _, highest = ranges.get(ApiKey.API_VERSIONS, (0, 0))
    return max(0, min(highest, rejected - 1))


def choose_version(key: ApiKey, own: VersionRange, peer_versions: Mapping[int, VersionRange], peer: str) -> int:
    """Return the highest version of `key` that both sides support; raises UnsupportedVersion if there is none."""
    if key not in peer_versions:
        raise UnsupportedVersion(f"{peer} does not support {key.name}")
    lowest, highest = max(own[0], peer_versions[key][0]), min(own[1], peer_versions[key][1])
    if lowest > highest:
        supported = f"{peer_versions[key][0]} to {peer_versions[key][1]}"
        raise UnsupportedVersion(f"{peer} supports {key.name} {supported}, this process {own[0]} to {own[1]}")
    return highest
