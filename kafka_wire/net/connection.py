"""One TCP or TLS connection to one node: calls in Kafka's protocol, pipelined, answered in order.

Left out: what to do when it ends (node.py reconnects) and the handling of bytes (pipeline.py).
"""

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable
from typing import Self

from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body, CodecError
from kafka_wire.errors import ErrorCode
from kafka_wire.frames import MAX_FRAME_BYTES
from kafka_wire.net import negotiation
from kafka_wire.net.failures import ConnectionFailed, RequestTimedOut, UnsupportedVersion
from kafka_wire.net.negotiation import VersionRange
from kafka_wire.net.pipeline import CORRELATION_BYTES, Pipeline
from kafka_wire.net.sasl_client import SaslCredentials, authenticate, reauthenticate_after_s

CONNECT_TIMEOUT_MS = 10_000  # Kafka's socket.connection.setup.timeout.ms, TLS handshake included
REQUEST_TIMEOUT_MS = 30_000  # Kafka's request.timeout.ms
CLOSE_TIMEOUT_MS = 1_000  # what was written last may still go out; a peer that does not read is not waited for

_CORRELATION = slice(4, 8)  # of a request: behind the 2-byte key and the 2-byte version


BodyOf = Callable[[int], Awaitable[bytes]]
"""Encodes a request's body in the version that is negotiated; may let the event loop run in between."""
BodyFrom = Callable[[int, bytes], Awaitable[Body]]
"""Decodes a whole response frame in the version of its request. Raises CodecError."""


class Connection:
    """An open connection. Made by `open`; ends by `close`, or by the first failure, with a reason for every waiter.

    Requests are written in the order of the calls. Cancelling a call leaves the connection in order: the answer is
    dropped when it comes.
    """

    def __init__(
        self,
        name: str,
        pipeline: Pipeline,
        *,
        client_id: str | None,
        request_timeout_ms: int,
        sasl: SaslCredentials | None = None,
    ) -> None:
        self._name = name
        self._pipeline = pipeline
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._sasl = sasl
        self._authenticate_at: float | None = None  # again, before the session ends; loop time in s
        self._versions: dict[int, VersionRange] | None = None
        self._turn = asyncio.Lock()  # fair: callers get their turn in the order they came

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None,
        ssl: tls.SSLContext | None = None,
        sasl: SaslCredentials | None = None,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_held: Callable[[int], None] | None = None,
    ) -> Self:
        """Connect to `host`:`port`, by TLS when a context is given (its settings decide what is verified).

        With `sasl` it says who it is before anything else, in as much time as connecting had, and again before a session ends.

        `on_held` hears how the bytes held of an incomplete response change, for who keeps an account of them.
        Raises ConnectionFailed, with `sent` False, when the peer cannot be reached in time; AuthenticationFailed, a kind
        of it, when one side does not believe the other.
        """
        name = f"{host}:{port}"
        try:
            async with asyncio.timeout(connect_timeout_ms / 1000):
                _, pipeline = await asyncio.get_running_loop().create_connection(
                    lambda: Pipeline(name, max_frame_bytes=max_frame_bytes, on_held=on_held), host, port, ssl=ssl
                )
        except TimeoutError:
            raise ConnectionFailed(f"{name} did not accept within {connect_timeout_ms} ms", sent=False) from None
        except OSError as why:
            raise ConnectionFailed(f"{name} cannot be reached: {why}", sent=False) from why
        connection = cls(name, pipeline, client_id=client_id, request_timeout_ms=request_timeout_ms, sasl=sasl)
        if sasl is not None:
            async with connection._turn:
                await connection._authenticate(sasl, asyncio.get_running_loop().time() + connect_timeout_ms / 1000)
        return connection

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, for whatever reason."""
        return self._pipeline.failure is not None

    async def call(
        self,
        key: ApiKey,
        body: Body | BodyOf,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
        decode: BodyFrom | None = None,
    ) -> Body:
        """Send one request and give the body of its response.

        Without a version the highest that both sides know is taken; the peer's are asked once per connection. A body that
        depends on the version is made when that is known. `decode` is for a response that is too large for the codec. Raises
        ConnectionFailed, UnsupportedVersion, or CodecError when `body` does not fit the version.
        """
        return await (await self.start_call(key, body, version=version, timeout_ms=timeout_ms, decode=decode))

    async def start_call(
        self,
        key: ApiKey,
        body: Body | BodyOf,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
        decode: BodyFrom | None = None,
    ) -> Awaitable[Body]:
        """Send one request, and give its response's body to come. Calls started one after the other go out so."""
        deadline = self._deadline(timeout_ms)
        async with self._turn:
            await self._authenticate_again(deadline)
            return await self._start(key, body, version, deadline, decode)

    async def call_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> bytes:
        """Send a whole request frame (header and body, no size) and give the whole response frame.

        Its correlation id is replaced on the way out and put back on the way in; nothing else is read or changed.
        """
        return await (await self.start_raw(frame, timeout_ms=timeout_ms))

    async def start_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> Awaitable[bytes]:
        """Send a whole request frame, and give its response frame to come."""
        deadline = self._deadline(timeout_ms)
        async with self._turn:
            await self._authenticate_again(deadline)
            await self._wait_for_room(deadline)
            response = self._pipeline.send(frame, deadline)
        return _with_correlation(frame[_CORRELATION], response)

    async def send_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> None:
        """Send a whole request frame that has no response (Produce with acks=0)."""
        deadline = self._deadline(timeout_ms)
        async with self._turn:
            await self._authenticate_again(deadline)
            await self._wait_for_room(deadline)
            self._pipeline.send_one_way(frame)

    async def api_versions(self, *, timeout_ms: int | None = None) -> dict[int, VersionRange]:
        """Give what the peer serves, by API key; asked once per connection."""
        async with self._turn:
            return dict(await self._peer_versions(self._deadline(timeout_ms)))

    def on_end(self, callback: Callable[[], None]) -> None:
        """Have `callback` called once when the connection ends, or now when it has ended."""
        self._pipeline.on_end(callback)

    def abort(self, reason: str) -> None:
        """End the connection at once; every waiter gets ConnectionFailed with the reason."""
        self._pipeline.fail(ConnectionFailed(f"{self._name}: {reason}", sent=True))

    async def close(self) -> None:
        """End the connection after what was written, and wait until its socket is gone. May be called twice."""
        self._pipeline.fail(ConnectionFailed(f"the connection to {self._name} was closed here", sent=True), flush=True)
        await self._pipeline.wait_lost(CLOSE_TIMEOUT_MS / 1000)

    async def _start(
        self, key: ApiKey, body: Body | BodyOf, version: int | None, deadline: float, decode: BodyFrom | None = None
    ) -> Awaitable[Body]:
        """Send one request; the caller has the turn."""
        if version is None:
            ours = codec.versions(f"{key.message}Request")
            version = negotiation.choose_version(key, ours, await self._peer_versions(deadline), self._name)
        told = await body(version) if callable(body) else body
        frame = codec.encode_request(key, version, 0, self._client_id, told)
        await self._wait_for_room(deadline)
        return self._decoded(key, version, self._pipeline.send(frame, deadline), decode)

    async def _authenticate_again(self, deadline: float) -> None:
        """Authenticate once more if it is time to; the peer takes nothing else meanwhile, and the caller has the turn."""
        if self._authenticate_at is not None and asyncio.get_running_loop().time() >= self._authenticate_at:
            assert self._sasl is not None
            await self._authenticate(self._sasl, deadline)

    async def _authenticate(self, sasl: SaslCredentials, deadline: float) -> None:
        """Say who we are; the caller has the turn. Whatever goes wrong ends the connection."""

        async def call(key: ApiKey, body: Body) -> Body:
            return await (await self._start(key, body, None, deadline))

        try:
            lifetime_ms = await authenticate(call, sasl, self._name)
        except (ConnectionFailed, UnsupportedVersion) as why:
            reason = why.reason if isinstance(why, ConnectionFailed) else str(why)
            kind = type(why) if isinstance(why, ConnectionFailed) else ConnectionFailed
            self._pipeline.fail(ConnectionFailed(reason, sent=True))
            raise kind(reason, sent=False) from why
        except BaseException:  # cancelled: half an authentication is none
            self.abort("authenticating was broken off")
            raise
        after_s = reauthenticate_after_s(lifetime_ms)
        self._authenticate_at = None if after_s is None else asyncio.get_running_loop().time() + after_s

    async def _decoded(
        self, key: ApiKey, version: int, response: "asyncio.Future[bytes]", decode: BodyFrom | None
    ) -> Body:
        frame = await response
        try:
            if decode is not None:
                return await decode(version, frame)
            _, body = codec.decode_response(key, version, frame)
        except CodecError as why:
            raise self._malformed(key, why) from why
        return body

    def _deadline(self, timeout_ms: int | None) -> float:
        timeout_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        return asyncio.get_running_loop().time() + timeout_ms / 1000

    async def _wait_for_room(self, deadline: float) -> None:
        if self._pipeline.has_room():
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._pipeline.wait_for_room()
        except TimeoutError:
            failure = RequestTimedOut(f"{self._name} stopped reading requests", sent=False)
            self._pipeline.fail(failure)
            raise failure from None

    async def _peer_versions(self, deadline: float) -> dict[int, VersionRange]:
        """Ask ApiVersions, with the highest version first. The caller holds the turn, so it goes before his request."""
        if self._versions is not None:
            return self._versions
        version = negotiation.highest_api_versions()
        error, ranges = await self._ask_versions(version, deadline)
        if error is ErrorCode.UNSUPPORTED_VERSION and version > 0:
            version = negotiation.second_try(version, ranges)
            error, ranges = await self._ask_versions(version, deadline)
        if error is not ErrorCode.NONE:
            failure = ConnectionFailed(f"{self._name} refused ApiVersions {version}: {error.name}", sent=False)
            self._pipeline.fail(failure)
            raise failure
        self._versions = ranges
        return ranges

    async def _ask_versions(self, version: int, deadline: float) -> tuple[ErrorCode, dict[int, VersionRange]]:
        body = negotiation.api_versions_request()
        request = codec.encode_request(ApiKey.API_VERSIONS, version, 0, self._client_id, body)
        await self._wait_for_room(deadline)
        try:
            frame = await self._pipeline.send(request, deadline)
        except ConnectionFailed as why:  # the caller's own request was not even written
            raise type(why)(why.reason, sent=False) from why
        try:
            return negotiation.read_answer(version, frame)
        except (CodecError, ValueError) as why:
            raise self._malformed(ApiKey.API_VERSIONS, why) from why

    def _malformed(self, key: ApiKey, why: Exception) -> ConnectionFailed:
        failure = ConnectionFailed(f"{self._name} sent a malformed response to {key.name}: {why}", sent=True)
        self._pipeline.fail(failure)
        return failure


async def _with_correlation(correlation: bytes, response: "asyncio.Future[bytes]") -> bytes:
    return correlation + (await response)[CORRELATION_BYTES:]
