"""Which version of a request two sides share: the ApiVersions conversation, as values.

A newer request than the peer knows is answered with UNSUPPORTED_VERSION in the shape of version 0, which since
KIP-511 names the versions of ApiVersions that the peer does know.

Left out: sending anything (connection.py).
"""

import struct
from collections.abc import Mapping
from importlib import metadata

from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import UnsupportedVersion

SOFTWARE_NAME = "kafka-steward"  # KIP-511: letters, digits, '-' and '.', told to brokers for their metrics

_ERROR_CODE = struct.Struct(">h")
_ERROR_OFFSET = 4  # header version 0 is the correlation id alone, and every version's body starts with the error code

VersionRange = tuple[int, int]
"""Lowest and highest version, both included."""


def api_versions_request() -> Body:
    """Build the body of ApiVersions, any version."""
    try:
        version = metadata.version("kafka-steward")
    except metadata.PackageNotFoundError:  # run from a source tree that was never installed
        version = "0"
    return {"client_software_name": SOFTWARE_NAME, "client_software_version": version}


def highest_api_versions() -> int:
    """Give the highest ApiVersions version that this process speaks."""
    return codec.versions("ApiVersionsRequest")[1]


def read_answer(version: int, frame: bytes) -> tuple[ErrorCode, dict[int, VersionRange]]:
    """Read the response to ApiVersions of `version`: its error, and what it says of each API key.

    Raises CodecError when the frame is not such a response.
    """
    if len(frame) >= _ERROR_OFFSET + _ERROR_CODE.size:
        (error_code,) = _ERROR_CODE.unpack_from(frame, _ERROR_OFFSET)
        if error_code == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
    _, body = codec.decode_response(ApiKey.API_VERSIONS, version, frame)
    ranges = {entry["api_key"]: (entry["min_version"], entry["max_version"]) for entry in body["api_keys"]}
    return ErrorCode(body["error_code"]), ranges


def second_try(refused: int, ranges: Mapping[int, VersionRange]) -> int:
    """Choose the version to ask with after `refused` was unsupported: what the peer named, else 0, always below."""
    _, highest = ranges.get(ApiKey.API_VERSIONS, (0, 0))
    return max(0, min(highest, refused - 1))


def choose_version(key: ApiKey, ours: VersionRange, theirs: Mapping[int, VersionRange], peer: str) -> int:
    """Choose the highest version of `key` that both sides know; raises UnsupportedVersion when there is none."""
    if key not in theirs:
        raise UnsupportedVersion(f"{peer} does not serve {key.name}")
    lowest, highest = max(ours[0], theirs[key][0]), min(ours[1], theirs[key][1])
    if lowest > highest:
        raise UnsupportedVersion(
            f"{peer} serves {key.name} {theirs[key][0]} to {theirs[key][1]}, this process {ours[0]} to {ours[1]}"
        )
    return highest
