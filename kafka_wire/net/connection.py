"""Client connection: one TCP or TLS connection to one node, with pipelined requests and responses in order.

node.py reconnects; pipeline.py handles the bytes.
"""

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable
from typing import Any, Self, TypeVar

from kafka_wire import codec
from kafka_wire.api import ApiKey, Body
from kafka_wire.codec import CodecError
from kafka_wire.errors import ErrorCode
from kafka_wire.failures import WireError
from kafka_wire.frames import MAX_FRAME_BYTES
from kafka_wire.net import negotiation
from kafka_wire.net.failures import ConnectionFailed, MalformedResponse, RequestTimedOut, UnsupportedVersion
from kafka_wire.net.negotiation import VersionRange
from kafka_wire.net.pipeline import CORRELATION_BYTES, Pipeline
from kafka_wire.net.sasl_client import Credentials, authenticate, reauthenticate_after_s

CONNECT_TIMEOUT_MS = 10_000
"""Kafka's socket.connection.setup.timeout.ms, TLS handshake included."""
REQUEST_TIMEOUT_MS = 30_000
"""Kafka's request.timeout.ms."""
CLOSE_TIMEOUT_MS = 1_000
"""Time for sending the last bytes when the connection is closed."""

_CORRELATION = slice(4, 8)
"""Correlation id of a request: after the 2-byte key and the 2-byte version."""

_T = TypeVar("_T")
BodyEncoder = Callable[[int], Awaitable[Body | bytes]]
"""Builds or encodes a request's body in the negotiated version; may yield to the event loop."""
BodyDecoder = Callable[[int, bytes], Awaitable[_T]]
"""Decodes a whole response frame in the version of its request. Raises WireError."""


class Connection:
    """An open connection. `open` creates it; `close` or the first failure ends it, and all waiting calls fail with the reason.

    Requests are written in the order of the calls. A call may be cancelled: its response is dropped when it arrives.
    """

    def __init__(
        self,
        name: str,
        pipeline: Pipeline,
        *,
        client_id: str | None,
        request_timeout_ms: int,
        sasl: Credentials | None = None,
    ) -> None:
        self._name = name
        self._pipeline = pipeline
        self._client_id = client_id
        self._request_timeout_ms = request_timeout_ms
        self._sasl = sasl
        self._authenticate_at: float | None = None
        """Time to authenticate again, before the session expires; loop time in s."""
        self._versions: dict[int, VersionRange] | None = None
        self._send_lock = asyncio.Lock()
        """Fair: requests are sent in the order of the calls."""

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        *,
        client_id: str | None,
        ssl: tls.SSLContext | None = None,
        sasl: Credentials | None = None,
        connect_timeout_ms: int = CONNECT_TIMEOUT_MS,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_held: Callable[[int], None] | None = None,
    ) -> Self:
        """Connect to `host`:`port`, with TLS if a context is given (its settings decide what is verified).

        With `sasl`, the connection authenticates before the first request, within the connect timeout, and again before the session
        expires.

        `on_held` is called with each change in the bytes held for incomplete responses.
        Raises ConnectionFailed, with `sent` False, if the peer cannot be reached in time, and its subclass AuthenticationFailed
        if either side rejects the other.
        """
        name = f"{host}:{port}"
        try:
            async with asyncio.timeout(connect_timeout_ms / 1000):
                _, pipeline = await asyncio.get_running_loop().create_connection(
                    lambda: Pipeline(name, max_frame_bytes=max_frame_bytes, on_held=on_held), host, port, ssl=ssl
                )
        except TimeoutError:
            reason = f"{name} did not accept the connection within {connect_timeout_ms} ms"
            raise ConnectionFailed(reason, sent=False) from None
        except OSError as error:
            raise ConnectionFailed(f"{name} cannot be reached: {error}", sent=False) from error
        connection = cls(name, pipeline, client_id=client_id, request_timeout_ms=request_timeout_ms, sasl=sasl)
        if sasl is not None:
            async with connection._send_lock:
                await connection._authenticate(sasl, asyncio.get_running_loop().time() + connect_timeout_ms / 1000)
        return connection

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, for any reason."""
        return self._pipeline.failure is not None

    async def call(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> Body:
        """Send one request and return the body of its response.

        Without `version`, the highest version that both sides support is used; the peer's versions are requested once per connection.
        A BodyEncoder is called with the negotiated version. Raises ConnectionFailed, UnsupportedVersion, or CodecError if `body` does
        not match the version.
        """
        versions = None if version is None else (version, version)
        return await (await self.start_call(key, body, body_decoder(key), versions=versions, timeout_ms=timeout_ms))

    async def start_call(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        decode: BodyDecoder[_T],
        *,
        versions: VersionRange | None = None,
        timeout_ms: int | None = None,
    ) -> Awaitable[_T]:
        """Send one request, and return an awaitable of its decoded response. Requests are sent in the order of these calls.

        `versions` limits the negotiated version; with a single one, nothing is negotiated.
        """
        deadline = self._deadline(timeout_ms)
        async with self._send_lock:
            await self._authenticate_again(deadline)
            return await self._start(key, body, decode, versions, deadline)

    async def call_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> bytes:
        """Send a whole request frame (header and body, no size) and return the whole response frame.

        The correlation id is replaced in the request and restored in the response; nothing else is read or changed.
        """
        return await (await self.start_raw(frame, timeout_ms=timeout_ms))

    async def start_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> Awaitable[bytes]:
        """Send a whole request frame, and return an awaitable of its response frame."""
        deadline = self._deadline(timeout_ms)
        async with self._send_lock:
            await self._authenticate_again(deadline)
            await self._wait_until_writable(deadline)
            response = self._pipeline.send(frame, deadline)
        return _with_correlation(frame[_CORRELATION], response)

    async def send_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> None:
        """Send a whole request frame that has no response (Produce with acks=0)."""
        deadline = self._deadline(timeout_ms)
        async with self._send_lock:
            await self._authenticate_again(deadline)
            await self._wait_until_writable(deadline)
            self._pipeline.send_one_way(frame)

    async def api_versions(self, *, timeout_ms: int | None = None) -> dict[int, VersionRange]:
        """Return the peer's supported versions by API key; requested once per connection."""
        async with self._send_lock:
            return dict(await self._peer_versions(self._deadline(timeout_ms)))

    def on_end(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when the connection ends, or now if it has ended."""
        self._pipeline.on_end(callback)

    def abort(self, reason: str) -> None:
        """Close the connection now; all waiting calls raise ConnectionFailed with the reason."""
        self._pipeline.fail(ConnectionFailed(f"{self._name}: {reason}", sent=True))

    async def close(self) -> None:
        """Close the connection after sending written requests, and wait until its socket is closed. May be called twice."""
        self._pipeline.fail(
            ConnectionFailed(f"the connection to {self._name} was closed locally", sent=True), flush=True
        )
        await self._pipeline.wait_lost(CLOSE_TIMEOUT_MS / 1000)

    async def _start(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        decode: BodyDecoder[_T],
        versions: VersionRange | None,
        deadline: float,
    ) -> Awaitable[_T]:
        """Send one request; the caller holds the lock."""
        if versions is not None and versions[0] == versions[1]:
            version = versions[0]
        else:
            supported = codec.versions(f"{key.message}Request")
            if versions is not None:
                supported = max(supported[0], versions[0]), min(supported[1], versions[1])
            version = negotiation.choose_version(key, supported, await self._peer_versions(deadline), self._name)
        content = await body(version) if callable(body) else body
        frame = codec.encode_request(key, version, 0, self._client_id, content)
        await self._wait_until_writable(deadline)
        takes_view = isinstance(decode, ViewDecoder)
        return self._decoded(key, version, self._pipeline.send(frame, deadline, takes_view=takes_view), decode)

    async def _authenticate_again(self, deadline: float) -> None:
        """Authenticate again if it is time to. The caller holds the lock: the peer accepts no other request during authentication."""
        if self._authenticate_at is not None and asyncio.get_running_loop().time() >= self._authenticate_at:
            assert self._sasl is not None
            await self._authenticate(self._sasl, deadline)

    async def _authenticate(self, sasl: Credentials, deadline: float) -> None:
        """Authenticate; the caller holds the lock. Any failure closes the connection."""

        async def call(key: ApiKey, body: Body) -> Body:
            return await (await self._start(key, body, body_decoder(key), None, deadline))

        try:
            lifetime_ms = await authenticate(call, sasl, self._name)
        except (ConnectionFailed, UnsupportedVersion) as error:
            failure = error if isinstance(error, ConnectionFailed) else ConnectionFailed(error.reason, sent=False)
            self._pipeline.fail(ConnectionFailed(error.reason, sent=True))
            raise failure.of_request(sent=False) from failure.__cause__
        except BaseException:  # cancelled: the authentication is incomplete
            self.abort("the authentication was cancelled")
            raise
        after_s = reauthenticate_after_s(lifetime_ms)
        self._authenticate_at = None if after_s is None else asyncio.get_running_loop().time() + after_s

    async def _decoded(self, key: ApiKey, version: int, response: "asyncio.Future[Any]", decode: BodyDecoder[_T]) -> _T:
        frame = await response
        try:
            return await decode(version, frame)
        except WireError as error:
            raise self._malformed(key, error) from error

    def _deadline(self, timeout_ms: int | None) -> float:
        timeout_ms = self._request_timeout_ms if timeout_ms is None else timeout_ms
        return asyncio.get_running_loop().time() + timeout_ms / 1000

    async def _wait_until_writable(self, deadline: float) -> None:
        if self._pipeline.is_writable():
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._pipeline.wait_until_writable()
        except TimeoutError:
            failure = RequestTimedOut(f"{self._name} stopped reading requests", sent=False)
            self._pipeline.fail(failure)
            raise failure from None

    async def _peer_versions(self, deadline: float) -> dict[int, VersionRange]:
        """Request ApiVersions, with the highest version first. The caller holds the lock, so it precedes the caller's request."""
        if self._versions is not None:
            return self._versions
        version = negotiation.highest_api_versions()
        error, ranges = await self._request_versions(version, deadline)
        if error is ErrorCode.UNSUPPORTED_VERSION and version > 0:
            version = negotiation.retry_version(version, ranges)
            error, ranges = await self._request_versions(version, deadline)
        if error is not ErrorCode.NONE:
            failure = ConnectionFailed(f"{self._name} rejected ApiVersions {version}: {error.name}", sent=False)
            self._pipeline.fail(failure)
            raise failure
        self._versions = ranges
        return ranges

    async def _request_versions(self, version: int, deadline: float) -> tuple[ErrorCode, dict[int, VersionRange]]:
        body = negotiation.api_versions_request()
        request = codec.encode_request(ApiKey.API_VERSIONS, version, 0, self._client_id, body)
        await self._wait_until_writable(deadline)
        try:
            frame = await self._pipeline.send(request, deadline)
        except ConnectionFailed as error:  # the caller's request was not written yet
            raise error.of_request(sent=False) from error.__cause__
        try:
            return negotiation.read_response(version, frame)
        except (CodecError, ValueError) as error:
            raise self._malformed(ApiKey.API_VERSIONS, error) from error

    def _malformed(self, key: ApiKey, error: Exception) -> MalformedResponse:
        failure = MalformedResponse(f"{self._name} sent a malformed response to {key.name}: {error}", sent=True)
        self._pipeline.fail(failure)
        return failure


def body_decoder(key: ApiKey, max_bytes: int = MAX_FRAME_BYTES) -> BodyDecoder[Body]:
    """Return the decoder of a response's body by the codec, up to `max_bytes`: a dict takes a hundred times its size."""

    async def decode(version: int, frame: bytes) -> Body:
        if len(frame) > max_bytes:
            raise WireError(f"the response has {len(frame)} bytes; the limit is {max_bytes}")
        return codec.decode_response(key, version, frame)[1]

    return decode


class ViewDecoder:
    """Decoder of responses with long byte fields, such as records, which are views of the frame: nothing of it is copied.

    A small frame is decoded as by `body_decoder`. `units` limit the elements of a large one (source_decoder.element_units).
    """

    def __init__(self, key: ApiKey, units: int) -> None:
        self._key = key
        self._units = units

    async def __call__(self, version: int, frame: bytes | memoryview) -> Body:
        """Decode the body of a response."""
        if isinstance(frame, memoryview):
            return codec.decode_viewed_response(self._key, version, frame, self._units)
        return codec.decode_response(self._key, version, frame)[1]


def plain(decode: Callable[[int, bytes], _T]) -> BodyDecoder[_T]:
    """Return a decoder that does not yield to the event loop: for responses that are small, or decoded into columns."""

    async def decode_now(version: int, frame: bytes) -> _T:
        return decode(version, frame)

    return decode_now


async def _with_correlation(correlation: bytes, response: "asyncio.Future[bytes]") -> bytes:
    return correlation + (await response)[CORRELATION_BYTES:]
