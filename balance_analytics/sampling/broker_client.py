"""Client of one broker: sends requests in the highest version that both sides support, before a deadline; failures have a reason.

Responses are passed on as whole frames, so that they can be decoded into columns. Leaves out the requests themselves (`offsets`,
`log_dirs`, `committed_offsets`) and the list of brokers (`cluster_client`).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from balance_analytics.sampling.missing_data import Reason
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.failures import WireError
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, RequestTimedOut, UnsupportedVersion
from kafka_wire.net.negotiation import VersionRange, api_versions_request, choose_version

ATTEMPTS = 2
"""Requests here are idempotent. A second attempt opens a new connection if the broker has closed the old one."""
MAX_DECODED_BYTES = 2 * 1024 * 1024
"""Limit of a response that is decoded into dicts, which take a hundred times its size: 100,000 committed offsets, or 50,000 groups."""

_T = TypeVar("_T")
BodyOf = Callable[[int], Body | bytes]
"""Builds a request's body for the chosen version; bytes are already encoded."""


class RequestFailed(Exception):  # noqa: N818 -- named like the failures of kafka_wire
    """A request to a broker failed: `reason` for metrics, the message for the log."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class BrokerClient:
    """A connection to one broker, opened when needed."""

    def __init__(self, host: str, port: int, settings: NodeSettings) -> None:
        self.name = f"{host}:{port}"
        self._settings = settings
        self._node = Node(host, port, settings)
        self._versions: Mapping[int, VersionRange] | None = None

    async def request(
        self,
        key: ApiKey,
        body: BodyOf,
        decode: Callable[[int, bytes], _T],
        *,
        deadline: float,
        lowest: int = 0,
        highest: int | None = None,
    ) -> _T:
        """Send a request and decode the response; `deadline` is loop time. Raises RequestFailed."""
        try:
            version = await self._version(key, lowest, highest, deadline)
            frame = codec.encode_request(key, version, 0, self._settings.client_id, body(version))
            return decode(version, await self._call(frame, deadline))
        except RequestTimedOut as error:
            raise RequestFailed(Reason.TIMED_OUT, error.reason) from error
        except ConnectionFailed as error:
            self._versions = None  # the broker may be restarted with another version
            raise RequestFailed(Reason.CONNECTION, error.reason) from error
        except UnsupportedVersion as error:
            raise RequestFailed(Reason.UNSUPPORTED, str(error)) from error
        except WireError as error:
            raise RequestFailed(Reason.MALFORMED, f"{self.name}: {error}") from error

    async def close(self) -> None:
        """Close the connection."""
        await self._node.close()

    async def _version(self, key: ApiKey, lowest: int, highest: int | None, deadline: float) -> int:
        if self._versions is None:
            left_ms = self._left_ms(deadline)
            response = await self._node.call(
                ApiKey.API_VERSIONS, api_versions_request(), timeout_ms=left_ms, attempts=ATTEMPTS
            )
            self._versions = {one["api_key"]: (one["min_version"], one["max_version"]) for one in response["api_keys"]}
        known = codec.versions(f"{key.message}Request")
        supported = max(known[0], lowest), known[1] if highest is None else min(known[1], highest)
        return choose_version(key, supported, self._versions, self.name)

    async def _call(self, frame: bytes, deadline: float) -> bytes:
        return await self._node.call_raw(frame, timeout_ms=self._left_ms(deadline), attempts=ATTEMPTS)

    def _left_ms(self, deadline: float) -> int:
        left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
        if left_ms <= 0:
            raise RequestFailed(Reason.TIMED_OUT, f"{self.name}: no time left before the end of the sample")
        return min(left_ms, self._settings.request_timeout_ms)


def decoded(key: ApiKey, max_bytes: int = MAX_DECODED_BYTES) -> Callable[[int, bytes], Body]:
    """Return a decoder into dicts, for small responses. Raises WireError for one over `max_bytes`."""

    def decode(version: int, frame: bytes) -> Body:
        if len(frame) > max_bytes:
            raise WireError(f"the {key.name} response has {len(frame)} bytes; the limit is {max_bytes}")
        return codec.decode_response(key, version, frame)[1]

    return decode
