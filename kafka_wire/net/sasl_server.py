"""SASL authentication of a server: the requests that are allowed before and after authentication.

    handshake ──SaslHandshake──► token ──SaslAuthenticate, once or twice──► authenticated ──SaslHandshake (again)──► token …
        │ ApiVersions is allowed too                 │ failed                   │ session expired without a handshake
        └─────── any other request: closed ◄─────────┴──────────────────────────┘

Source: SaslServerAuthenticator (KIP-43, KIP-152, KIP-368). kafka_wire.sasl has the mechanisms; inbound.py limits the time of the
authentication.
"""

import asyncio
import enum
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kafka_wire import codec
from kafka_wire.api import ApiKey, Body
from kafka_wire.codec import CodecError, RequestHeader
from kafka_wire.encoded_body import Response
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.peer import Frame, FrameHandler, Peer
from kafka_wire.net.sasl_client import MECHANISMS, draw_nonce
from kafka_wire.sasl.plain import PLAIN, read_plain, verify_plain
from kafka_wire.sasl.scram_decoy import CredentialShape, decoy_credential
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, ScramCredential
from kafka_wire.sasl.scram_messages import read_client_first
from kafka_wire.sasl.scram_server import start_scram_server
from kafka_wire.sasl.steps import Authenticated, Exchange, SaslFailed, Step

log = logging.getLogger(__name__)

MAX_RECEIVE_BYTES = 524_288
"""Kafka's sasl.server.max.receive.size: limit of a frame before authentication."""
FAILURE_DELAY_MS = 100
"""Kafka's connection.failed.authentication.delay.ms: slows down guessing."""
HANDSHAKE_VERSIONS = (0, 1)
AUTHENTICATE_VERSIONS = (0, 2)
LOG_INTERVAL_S = 60.0
"""Interval between log lines about failed authentications of a host."""
MAX_LOGGED_HOSTS = 1_000
"""Hosts whose last log line is stored; the oldest is removed for a new one."""


class Credentials(Protocol):
    """Source of user credentials. Its methods raise CloseConnection if it is unavailable."""

    async def plain_password(self, user: str) -> str | None:
        """Return a user's password for PLAIN; None for an unknown user."""

    async def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Return a user's SCRAM credential; None if there is none."""

    async def scram_shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Return the shapes of the users' credentials with their counts, for the decoys of unknown users."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslServer:
    """SASL settings of one server."""

    mechanisms: tuple[str, ...]
    credentials: Credentials
    session_lifetime_ms: int = 0
    """Kafka's connections.max.reauth.ms: time within which a peer must authenticate again; 0 disables it."""
    failure_delay_ms: int = FAILURE_DELAY_MS
    new_nonce: Callable[[], str] = draw_nonce
    decoy_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    logged: dict[str, float] = field(default_factory=dict, repr=False)
    """Time of the last log line about a failed authentication, by host; loop time in s."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown or not self.mechanisms:
            found = ", ".join(self.mechanisms) or "none"
            raise ValueError(f"the SASL mechanisms must be one or more of {', '.join(MECHANISMS)}, found {found}")

    def may_log(self, host: str, now: float) -> bool:
        """Return whether to log a failure of this host now."""
        if now - self.logged.get(host, -LOG_INTERVAL_S) < LOG_INTERVAL_S:
            return False
        self.logged.pop(host, None)  # keeps the dict in the order of the times
        if len(self.logged) >= MAX_LOGGED_HOSTS:
            del self.logged[next(iter(self.logged))]
        self.logged[host] = now
        return True


class _State(enum.Enum):
    HANDSHAKE = enum.auto()
    FIRST_TOKEN = enum.auto()
    NEXT_TOKEN = enum.auto()
    BUSY = enum.auto()
    """A token is being checked: a second token violates the protocol."""
    AUTHENTICATED = enum.auto()


class SaslAuthenticator:
    """Authentication of one connection, between the connection and the server's handler.

    `on_authenticated` is called when the peer has authenticated, `drain` to close the connection after its running requests.
    """

    def __init__(
        self,
        server: SaslServer,
        handler: FrameHandler,
        peer: Peer,
        *,
        on_authenticated: Callable[[], None],
        drain: Callable[[], None],
    ) -> None:
        self._server = server
        self._handler = handler
        self._peer = peer
        self._on_authenticated = on_authenticated
        self._drain = drain
        self._state = _State.HANDSHAKE
        self._mechanism: str | None = None
        self._exchange: Exchange | None = None
        self._user: str | None = None
        """User of the last authentication."""
        self._bare_tokens = False
        """After a handshake of version 0: tokens have no Kafka headers."""
        self._expires_at: float | None = None
        """End of the session; loop time in s."""

    @property
    def has_authenticated(self) -> bool:
        """Whether the peer has authenticated at least once."""
        return self._user is not None

    async def handle(self, peer: Peer, frame: Frame) -> Response | None:
        """Handle one frame of the authentication, or pass it to the handler."""
        if self._bare_tokens and self._state is not _State.AUTHENTICATED:
            if self._state is _State.BUSY:
                raise CloseConnection("the peer sent a SASL token before the response to the previous one")
            try:
                return (await self._take(bytes(frame))).reply
            except SaslFailed as failure:
                await self._fail(failure)
                raise CloseConnection("the authentication failed") from None
        try:
            header = codec.peek_header(frame)
            if header.api_key == ApiKey.SASL_HANDSHAKE:
                return await self._handshake(header, frame)
            if header.api_key == ApiKey.SASL_AUTHENTICATE:
                return await self._authenticate(header, frame)
        except CodecError as error:
            raise MalformedRequest(str(error)) from error
        if self._state is _State.AUTHENTICATED:
            if self._expires_at is not None and asyncio.get_running_loop().time() > self._expires_at:
                raise CloseConnection("the SASL session expired without a new authentication")
        elif not (self._state is _State.HANDSHAKE and header.api_key == ApiKey.API_VERSIONS):
            raise CloseConnection(f"the peer sent API key {header.api_key} before authentication")
        return await self._handler(peer, frame)

    async def _handshake(self, header: RequestHeader, frame: Frame) -> bytes:
        _check_version(header, HANDSHAKE_VERSIONS)
        mechanism = codec.decode_request(frame)[1]["mechanism"]
        if self._state not in {_State.HANDSHAKE, _State.AUTHENTICATED}:
            raise CloseConnection("the peer sent a second SaslHandshake during its authentication")
        body: Body = {"error_code": ErrorCode.NONE, "mechanisms": list(self._server.mechanisms)}
        if mechanism not in self._server.mechanisms or self._mechanism not in {None, mechanism}:
            body["error_code"] = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            previous = "" if self._mechanism is None else f"; the peer authenticated with {self._mechanism} before"
            await self._fail(SaslFailed(f"the mechanism {mechanism[:40]!r} is not enabled{previous}"))
        else:
            self._mechanism = mechanism
            self._bare_tokens = header.api_version == 0
            self._state = _State.FIRST_TOKEN
        return codec.encode_response(ApiKey.SASL_HANDSHAKE, header.api_version, header.correlation_id, body)

    async def _authenticate(self, header: RequestHeader, frame: Frame) -> bytes:
        _check_version(header, AUTHENTICATE_VERSIONS)
        token = bytes(codec.decode_request(frame)[1]["auth_bytes"])
        body: Body
        if self._state not in {_State.FIRST_TOKEN, _State.NEXT_TOKEN}:
            message = "SaslAuthenticate request received without a SaslHandshake before it"
            body = {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": message}
            await self._fail(SaslFailed(message))
        else:
            try:
                step = await self._take(token)
                lifetime_ms = self._server.session_lifetime_ms if isinstance(step.state, Authenticated) else 0
                body = {"error_code": ErrorCode.NONE, "auth_bytes": step.reply, "session_lifetime_ms": lifetime_ms}
            except SaslFailed as failure:
                message = failure.peer_message or (
                    "Authentication failed during authentication due to invalid credentials "
                    f"with SASL mechanism {self._mechanism}"
                )
                body = {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": message}
                await self._fail(failure)
        return codec.encode_response(ApiKey.SASL_AUTHENTICATE, header.api_version, header.correlation_id, body)

    async def _take(self, token: bytes) -> Step:
        """Process a token of the mechanism. Raises SaslFailed."""
        is_first, self._state = self._state is _State.FIRST_TOKEN, _State.BUSY
        if is_first:
            step = await self._start(token)
        else:
            assert self._exchange is not None
            step = self._exchange.take(token)
        if isinstance(step.state, Authenticated):
            self._authenticated(step.state.user)
        else:
            self._exchange, self._state = step.state, _State.NEXT_TOKEN
        return step

    async def _start(self, token: bytes) -> Step:
        assert self._mechanism is not None
        server = self._server
        if self._mechanism == PLAIN:
            claim = read_plain(token)
            return verify_plain(claim, await server.credentials.plain_password(claim.user))
        first = read_client_first(token)
        credential = await server.credentials.scram_credential(self._mechanism, first.user)
        # Also for users that exist: a difference in time would reveal which users exist.
        shapes = await server.credentials.scram_shapes(self._mechanism)
        mechanism = SCRAM_MECHANISMS[self._mechanism]
        decoy = decoy_credential(mechanism, first.user, server.decoy_key, shapes)
        return start_scram_server(mechanism, first, credential, server.new_nonce(), decoy)

    def _authenticated(self, user: str) -> None:
        if self._user not in {None, user}:
            message = f"Cannot change principals during re-authentication from {self._user} to {user}"
            raise SaslFailed(message, peer_message=message)
        if self._server.session_lifetime_ms:
            self._expires_at = asyncio.get_running_loop().time() + self._server.session_lifetime_ms / 1000
        self._user, self._exchange, self._state = user, None, _State.AUTHENTICATED
        self._peer.principal = f"User:{user}"
        self._on_authenticated()

    async def _fail(self, failure: SaslFailed) -> None:
        """Log the failure, delay the response, and accept no further requests."""
        self._state, self._exchange = _State.BUSY, None
        if self._server.may_log(self._peer.host, asyncio.get_running_loop().time()):
            log.warning("Authentication failed", extra={"peer": str(self._peer), "error": failure.reason})
        await asyncio.sleep(self._server.failure_delay_ms / 1000)
        self._drain()


def _check_version(header: RequestHeader, versions: tuple[int, int]) -> None:
    if not versions[0] <= header.api_version <= versions[1]:
        raise CloseConnection(f"version {header.api_version} of API key {header.api_key} is not supported")
