"""Client of one node, with a connection that is opened on demand and reopened after it has ended.

Requests are sent in the order of the calls, also across reconnects. A request is sent again only if the caller allows it.
"""

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from secrets import SystemRandom
from typing import TypeVar

from kafka_wire.api import ApiKey, Body
from kafka_wire.frames import MAX_FRAME_BYTES
from kafka_wire.net.backoff import KAFKA_BACKOFF, Backoff
from kafka_wire.net.connection import (
    CONNECT_TIMEOUT_MS,
    REQUEST_TIMEOUT_MS,
    BodyDecoder,
    BodyEncoder,
    Connection,
    body_decoder,
)
from kafka_wire.net.failures import ConnectionFailed, MalformedResponse, RequestTimedOut
from kafka_wire.net.negotiation import VersionRange
from kafka_wire.net.sasl_client import AuthenticationFailed, Credentials

_T = TypeVar("_T")
_Send = Callable[[Connection, int], Awaitable[_T]]

_RANDOM = SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings:
    """Connection settings of a node."""

    client_id: str | None = None
    ssl: tls.SSLContext | None = None
    """Enables TLS. The context decides what is verified (ssl.create_default_context verifies everything)."""
    sasl: Credentials | None = None
    """Credentials for SASL listeners."""
    connect_timeout_ms: int = CONNECT_TIMEOUT_MS
    request_timeout_ms: int = REQUEST_TIMEOUT_MS
    max_frame_bytes: int = MAX_FRAME_BYTES
    backoff: Backoff = KAFKA_BACKOFF


DEFAULT_SETTINGS = NodeSettings()


class Node:
    """One broker or controller at `host`:`port`.

    `random` returns numbers in [0, 1) for the jitter. A call during the backoff waits for its end, or fails at once if its own timeout
    ends earlier. A response resets the backoff; an accepted connection does not.
    """

    def __init__(
        self,
        host: str,
        port: int,
        settings: NodeSettings = DEFAULT_SETTINGS,
        *,
        random: Callable[[], float] = _RANDOM.random,
    ) -> None:
        self._host = host
        self._port = port
        self._settings = settings
        self._random = random
        self._connection: Connection | None = None
        self._answered = False
        """Whether this connection has received a response."""
        self._send_lock = asyncio.Lock()
        """Fair: requests are sent in the order of the calls."""
        self._failures = 0
        """Consecutive failures."""
        self._failed_opens = 0
        """All failed attempts to connect."""
        self._last_failure = ConnectionFailed("no connection was attempted", sent=False)
        self._retry_at = 0.0
        """End of the backoff; loop time in s."""
        self._closed = False

    @property
    def name(self) -> str:
        """HOST:PORT."""
        return f"{self._host}:{self._port}"

    @property
    def connected(self) -> bool:
        """Whether a connection is open now."""
        return self._connection is not None and not self._connection.closed

    async def call(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        *,
        version: int | None = None,
        timeout_ms: int | None = None,
        attempts: int = 1,
    ) -> Body:
        """Send one request and return the body of its response, as Connection.call does; `attempts` as of `request`."""
        versions = None if version is None else (version, version)
        return await self.request(
            key, body, body_decoder(key), versions=versions, timeout_ms=timeout_ms, attempts=attempts
        )

    async def request(
        self,
        key: ApiKey,
        body: Body | BodyEncoder,
        decode: BodyDecoder[_T],
        *,
        versions: VersionRange | None = None,
        timeout_ms: int | None = None,
        deadline: float | None = None,
        attempts: int = 1,
    ) -> _T:
        """Send one request and return its decoded response, as Connection.start_call does.

        `deadline` (loop time in s) limits the timeout. With `attempts` above 1, the request is sent again on a new connection after a
        connection failure, all within its timeout: for idempotent requests. A rejected login and a malformed response are final. Raises
        the last ConnectionFailed.
        """

        async def send(connection: Connection, left_ms: int) -> Awaitable[_T]:
            return await connection.start_call(key, body, decode, versions=versions, timeout_ms=left_ms)

        if deadline is not None:
            timeout_ms = min(self._left_ms(deadline), timeout_ms or self._settings.request_timeout_ms)
            if timeout_ms <= 0:
                raise RequestTimedOut(f"{self.name}: no time left before the deadline", sent=False)
        return await self._attempt(send, timeout_ms, attempts)

    async def call_raw(self, frame: bytes, *, timeout_ms: int | None = None, attempts: int = 1) -> bytes:
        """Send a whole request frame and return the whole response frame, as Connection.call_raw does."""

        async def send(connection: Connection, left_ms: int) -> Awaitable[bytes]:
            return await connection.start_raw(frame, timeout_ms=left_ms)

        return await self._attempt(send, timeout_ms, attempts)

    async def send_raw(self, frame: bytes, *, timeout_ms: int | None = None) -> None:
        """Send a whole request frame that has no response (Produce with acks=0)."""
        await self._start(
            lambda connection, left_ms: connection.send_raw(frame, timeout_ms=left_ms), self._deadline(timeout_ms)
        )

    async def close(self) -> None:
        """Close the connection if there is one; running and later calls fail. May be called twice."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close()

    async def _attempt(self, send: _Send[Awaitable[_T]], timeout_ms: int | None, attempts: int) -> _T:
        """Send a request and wait for its response, at most `attempts` times, all within one timeout."""
        deadline = self._deadline(timeout_ms)
        while True:
            attempts -= 1
            try:
                response = await (await self._start(send, deadline))
            except (AuthenticationFailed, MalformedResponse):
                raise
            except ConnectionFailed:
                if attempts <= 0 or self._closed or self._left_ms(deadline) <= 0:
                    raise
            else:
                self._answered = True
                self._failures = 0
                return response

    async def _start(self, send: _Send[_T], deadline: float) -> _T:
        """Wait for the lock and a connection, and send. Calls that waited for a failed attempt to connect fail with it."""
        failed_opens = self._failed_opens
        await self._lock(deadline)
        try:
            if failed_opens != self._failed_opens:
                raise self._last_failure.of_request(sent=False)
            connection = await self._connected(deadline)
            return await send(connection, max(1, self._left_ms(deadline)))
        finally:
            self._send_lock.release()

    async def _lock(self, deadline: float) -> None:
        if self.connected and not self._send_lock.locked():  # fast path: acquiring the lock does not wait
            await self._send_lock.acquire()
            return
        try:
            async with asyncio.timeout_at(deadline):
                await self._send_lock.acquire()
        except TimeoutError:
            raise RequestTimedOut(f"{self.name} could not be reached in time", sent=False) from None

    async def _connected(self, deadline: float) -> Connection:
        """Return the open connection, or open one after the backoff; the caller holds the lock."""
        if self._connection is not None:
            if not self._connection.closed:
                return self._connection
            if not self._answered:
                self._count_failure()
            self._connection = None
        await self._wait_for_backoff(deadline)
        settings = self._settings
        try:
            connection = await Connection.open(
                self._host,
                self._port,
                client_id=settings.client_id,
                ssl=settings.ssl,
                sasl=settings.sasl,
                connect_timeout_ms=max(1, min(settings.connect_timeout_ms, self._left_ms(deadline))),
                request_timeout_ms=settings.request_timeout_ms,
                max_frame_bytes=settings.max_frame_bytes,
            )
        except ConnectionFailed as error:
            self._count_failure()
            self._failed_opens += 1
            self._last_failure = error
            raise
        if self._closed:
            await connection.close()
            raise self._closed_error()
        self._answered = False
        self._connection = connection
        return connection

    async def _wait_for_backoff(self, deadline: float) -> None:
        if self._retry_at >= deadline:
            raise type(self._last_failure)(
                f"{self.name} failed {self._failures} times, and the next attempt is "
                f"{self._retry_at - deadline:.3f} s after this request's timeout: {self._last_failure.reason}",
                sent=False,
            ) from self._last_failure.__cause__
        await asyncio.sleep(max(0.0, self._retry_at - asyncio.get_running_loop().time()))
        if self._closed:
            raise self._closed_error()

    def _count_failure(self) -> None:
        self._failures += 1
        delay_ms = self._settings.backoff.delay_ms(self._failures, self._random())
        self._retry_at = asyncio.get_running_loop().time() + delay_ms / 1000

    def _closed_error(self) -> ConnectionFailed:
        return ConnectionFailed(f"the client of {self.name} was closed locally", sent=False)

    def _deadline(self, timeout_ms: int | None) -> float:
        timeout_ms = self._settings.request_timeout_ms if timeout_ms is None else timeout_ms
        return asyncio.get_running_loop().time() + timeout_ms / 1000

    def _left_ms(self, deadline: float) -> int:
        return int((deadline - asyncio.get_running_loop().time()) * 1000)
