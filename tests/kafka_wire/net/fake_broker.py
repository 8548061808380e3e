"""Broker with ApiVersions and DescribeCluster, for tests of the version negotiation."""

from typing import Any

from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.net.server import Peer


class FakeBroker:
    """A handler that supports `ranges` and DescribeCluster, and records the headers of its requests."""

    def __init__(self, ranges: dict[ApiKey, tuple[int, int]], error: ErrorCode = ErrorCode.NONE) -> None:
        self.ranges = ranges
        self.error = error
        self.seen: list[tuple[ApiKey, int]] = []

    async def __call__(self, _peer: Peer, frame: bytes) -> bytes:
        header = codec.peek_header(frame)
        key, version = ApiKey(header.api_key), header.api_version
        self.seen.append((key, version))
        if key is not ApiKey.API_VERSIONS:
            body: dict[str, Any] = {"cluster_id": f"version {version}", "controller_id": 3}
            return codec.encode_response(key, version, header.correlation_id, body)
        lowest, highest = self.ranges[key]
        error = self.error
        if not lowest <= version <= highest:
            version, error = 0, ErrorCode.UNSUPPORTED_VERSION
        named = {key: self.ranges[key]} if error is ErrorCode.UNSUPPORTED_VERSION else self.ranges
        api_keys = [{"api_key": int(k), "min_version": low, "max_version": high} for k, (low, high) in named.items()]
        return codec.encode_response(key, version, header.correlation_id, {"error_code": error, "api_keys": api_keys})


def broker_with(api_versions: tuple[int, int] = (0, 4), describe_cluster: tuple[int, int] = (0, 1)) -> FakeBroker:
    """Return a broker that supports only these versions."""
    return FakeBroker({ApiKey.API_VERSIONS: api_versions, ApiKey.DESCRIBE_CLUSTER: describe_cluster})
