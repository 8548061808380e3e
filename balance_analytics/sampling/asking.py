"""One broker, asked: in the highest version that both sides know, within the look's time, and with a reason when it fails.

Answers come as whole frames, so that they can be read into columns. Leaves out what is asked (offsets, log_dirs, committed) and
which brokers there are (cluster_link).
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from balance_analytics.sampling.left_out import Reason
from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.failures import WireError
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, RequestTimedOut, UnsupportedVersion
from kafka_wire.net.negotiation import VersionRange, api_versions_request, choose_version

ATTEMPTS = 2
"""Everything asked here may be asked twice: a connection that the broker let go of meanwhile costs no look."""
MAX_DECODED_BYTES = 2 * 1024 * 1024
"""Of an answer that is read into dicts, which take a hundred times as much: 100,000 committed offsets, or 50,000 groups."""

_T = TypeVar("_T")
BodyOf = Callable[[int], Body | bytes]
"""Makes a request's body in the version that is chosen; bytes are encoded already."""


class AskFailed(Exception):  # noqa: N818 -- named for what happened, as the wire's own failures
    """A broker gave no usable answer: `reason` for counting, the text for people."""

    def __init__(self, reason: Reason, words: str) -> None:
        super().__init__(words)
        self.reason = reason


class AskedBroker:
    """A broker at an address, over one connection."""

    def __init__(self, host: str, port: int, settings: NodeSettings) -> None:
        self.name = f"{host}:{port}"
        self._settings = settings
        self._node = Node(host, port, settings)
        self._versions: Mapping[int, VersionRange] | None = None

    async def ask(
        self,
        key: ApiKey,
        body: BodyOf,
        decode: Callable[[int, bytes], _T],
        *,
        deadline: float,
        lowest: int = 0,
        highest: int | None = None,
    ) -> _T:
        """Ask and decode the answer; `deadline` is loop time. Raises AskFailed."""
        try:
            version = await self._version(key, lowest, highest, deadline)
            frame = codec.encode_request(key, version, 0, self._settings.client_id, body(version))
            return decode(version, await self._call(frame, deadline))
        except RequestTimedOut as why:
            raise AskFailed(Reason.TIMED_OUT, why.reason) from why
        except ConnectionFailed as why:
            self._versions = None  # another release may be started there next
            raise AskFailed(Reason.CONNECTION, why.reason) from why
        except UnsupportedVersion as why:
            raise AskFailed(Reason.UNSUPPORTED, str(why)) from why
        except WireError as why:
            raise AskFailed(Reason.MALFORMED, f"{self.name}: {why}") from why

    async def close(self) -> None:
        """Close the connection."""
        await self._node.close()

    async def _version(self, key: ApiKey, lowest: int, highest: int | None, deadline: float) -> int:
        if self._versions is None:
            left_ms = self._left_ms(deadline)
            answer = await self._node.call(
                ApiKey.API_VERSIONS, api_versions_request(), timeout_ms=left_ms, attempts=ATTEMPTS
            )
            self._versions = {one["api_key"]: (one["min_version"], one["max_version"]) for one in answer["api_keys"]}
        known = codec.versions(f"{key.message}Request")
        ours = max(known[0], lowest), known[1] if highest is None else min(known[1], highest)
        return choose_version(key, ours, self._versions, self.name)

    async def _call(self, frame: bytes, deadline: float) -> bytes:
        return await self._node.call_raw(frame, timeout_ms=self._left_ms(deadline), attempts=ATTEMPTS)

    def _left_ms(self, deadline: float) -> int:
        left_ms = int((deadline - asyncio.get_running_loop().time()) * 1000)
        if left_ms <= 0:
            raise AskFailed(Reason.TIMED_OUT, f"{self.name} was not asked any more: the look's time was up")
        return min(left_ms, self._settings.request_timeout_ms)


def decoded(key: ApiKey, max_bytes: int = MAX_DECODED_BYTES) -> Callable[[int, bytes], Body]:
    """Return a decoder into a plain body, for answers that are small; a larger one is a WireError."""

    def decode(version: int, frame: bytes) -> Body:
        if len(frame) > max_bytes:
            raise WireError(f"an answer of {len(frame)} bytes to {key.name}; at most {max_bytes} are read")
        return codec.decode_response(key, version, frame)[1]

    return decode
