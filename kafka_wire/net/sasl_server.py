"""The gate of a SASL listener: what comes through before a peer has said who it is, and what after.

    handshake ──SaslHandshake──► token ──SaslAuthenticate, once or twice──► open ──SaslHandshake (again)──► token …
        │ ApiVersions is answered too                │ failed                   │ session over, and no handshake
        └─────────────── anything else: closed ◄─────┴──────────────────────────┘

Source: SaslServerAuthenticator (KIP-43, KIP-152, KIP-368). Left out: the mechanisms (kafka_wire.sasl), where credentials come
from, the time that authentication may take (inbound.py).
"""

import asyncio
import enum
import logging
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kafka_wire import codec
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body, CodecError, RequestHeader
from kafka_wire.encoded_body import Response
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import CloseConnection, MalformedRequest
from kafka_wire.net.peer import Handler, Peer
from kafka_wire.net.sasl_client import MECHANISMS, draw_nonce
from kafka_wire.sasl.plain import PLAIN, judge_plain, read_plain
from kafka_wire.sasl.scram_decoy import CredentialShape, decoy_credential
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, ScramCredential
from kafka_wire.sasl.scram_messages import read_client_first
from kafka_wire.sasl.scram_server import start_scram_server
from kafka_wire.sasl.steps import Authenticated, Exchange, SaslFailed, Step

_log = logging.getLogger(__name__)

MAX_RECEIVE_BYTES = 524_288  # Kafka's sasl.server.max.receive.size: a frame before authentication
FAILURE_DELAY_MS = 100  # Kafka's connection.failed.authentication.delay.ms: guessing takes time
HANDSHAKE_VERSIONS = (0, 1)
AUTHENTICATE_VERSIONS = (0, 2)
LOG_AGAIN_S = 60.0  # one line a peer's host in this time, however often it fails
MAX_LOGGED_HOSTS = 1_000  # hosts whose last line is remembered; with more, the oldest is forgotten


class Credentials(Protocol):
    """Where a server looks users up. CloseConnection says that it cannot now; anything else is taken for a defect."""

    async def plain_password(self, user: str) -> str | None:
        """Give a user's password for PLAIN; None: there is no such user."""

    async def scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """Give what is kept of a user's password; None: nothing."""

    async def scram_shapes(self, mechanism: str) -> Mapping[CredentialShape, int]:
        """Tell what the users' credentials look like, and how many look so: unknown users are answered alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslServer:
    """What a listener demands of its peers. One value for one server."""

    mechanisms: tuple[str, ...]
    credentials: Credentials
    session_lifetime_ms: int = 0
    """Kafka's connections.max.reauth.ms: who authenticated must do so again in this time; 0: never."""
    failure_delay_ms: int = FAILURE_DELAY_MS
    new_nonce: Callable[[], str] = draw_nonce
    decoy_key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    logged: dict[str, float] = field(default_factory=dict, repr=False)
    """When a failure of a host was logged last (loop time in s)."""

    def __post_init__(self) -> None:
        unknown = [name for name in self.mechanisms if name not in MECHANISMS]
        if unknown or not self.mechanisms:
            raise ValueError(f"the SASL mechanisms {', '.join(self.mechanisms)} are not all of {', '.join(MECHANISMS)}")

    def may_log(self, host: str, now: float) -> bool:
        """Tell whether a failure of this host is to be logged now."""
        if now - self.logged.get(host, -LOG_AGAIN_S) < LOG_AGAIN_S:
            return False
        self.logged.pop(host, None)  # so that it stands last
        if len(self.logged) >= MAX_LOGGED_HOSTS:
            del self.logged[next(iter(self.logged))]
        self.logged[host] = now
        return True


class _State(enum.Enum):
    HANDSHAKE = enum.auto()
    FIRST_TOKEN = enum.auto()
    NEXT_TOKEN = enum.auto()
    BUSY = enum.auto()
    """A token is being looked at: another one meanwhile is against the protocol."""
    OPEN = enum.auto()


class SaslGate:
    """The gate of one connection, before the server's handler.

    `opened` is called when the peer is authenticated, `drain` when it is to be closed after the answers under way.
    """

    def __init__(
        self, server: SaslServer, handler: Handler, peer: Peer, *, opened: Callable[[], None], drain: Callable[[], None]
    ) -> None:
        self._server = server
        self._handler = handler
        self._peer = peer
        self._opened = opened
        self._drain = drain
        self._state = _State.HANDSHAKE
        self._mechanism: str | None = None
        self._exchange: Exchange | None = None
        self._user: str | None = None  # who authenticated last
        self._bare_tokens = False  # a handshake of version 0: tokens come without Kafka's headers
        self._expires_at: float | None = None  # loop time in s

    @property
    def was_opened(self) -> bool:
        """Whether the peer has been authenticated once."""
        return self._user is not None

    async def handle(self, peer: Peer, frame: bytes) -> Response | None:
        """Answer one frame, or have the handler answer it (a server's Handler)."""
        if self._bare_tokens and self._state is not _State.OPEN:
            if self._state is _State.BUSY:
                raise CloseConnection("it sent a token before the last one was answered")
            try:
                return (await self._take(frame)).reply
            except SaslFailed as why:
                await self._fail(why)
                raise CloseConnection("it could not be authenticated") from None
        try:
            header = codec.peek_header(frame)
            if header.api_key == ApiKey.SASL_HANDSHAKE:
                return await self._handshake(header, frame)
            if header.api_key == ApiKey.SASL_AUTHENTICATE:
                return await self._authenticate(header, frame)
        except CodecError as why:
            raise MalformedRequest(str(why)) from why
        if self._state is _State.OPEN:
            if self._expires_at is not None and asyncio.get_running_loop().time() > self._expires_at:
                raise CloseConnection("its session is over, and it did not authenticate again")
        elif not (self._state is _State.HANDSHAKE and header.api_key == ApiKey.API_VERSIONS):
            raise CloseConnection(f"it sent api key {header.api_key} before it was authenticated")
        return await self._handler(peer, frame)

    async def _handshake(self, header: RequestHeader, frame: bytes) -> bytes:
        _check_version(header, HANDSHAKE_VERSIONS)
        mechanism = codec.decode_request(frame)[1]["mechanism"]
        if self._state not in {_State.HANDSHAKE, _State.OPEN}:
            raise CloseConnection("it sent a second SaslHandshake within one authentication")
        body: Body = {"error_code": ErrorCode.NONE, "mechanisms": list(self._server.mechanisms)}
        if mechanism not in self._server.mechanisms or self._mechanism not in {None, mechanism}:
            body["error_code"] = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            again = "" if self._mechanism is None else f"; it authenticated with {self._mechanism} before"
            await self._fail(SaslFailed(f"the mechanism {mechanism[:40]!r} is not offered here{again}"))
        else:
            self._mechanism = mechanism
            self._bare_tokens = header.api_version == 0
            self._state = _State.FIRST_TOKEN
        return codec.encode_response(ApiKey.SASL_HANDSHAKE, header.api_version, header.correlation_id, body)

    async def _authenticate(self, header: RequestHeader, frame: bytes) -> bytes:
        _check_version(header, AUTHENTICATE_VERSIONS)
        token = bytes(codec.decode_request(frame)[1]["auth_bytes"])
        body: Body
        if self._state not in {_State.FIRST_TOKEN, _State.NEXT_TOKEN}:
            words = "SaslAuthenticate request received without a SaslHandshake before it"
            body = {"error_code": ErrorCode.ILLEGAL_SASL_STATE, "error_message": words}
            await self._fail(SaslFailed(words))
        else:
            try:
                step = await self._take(token)
                lifetime_ms = self._server.session_lifetime_ms if isinstance(step.state, Authenticated) else 0
                body = {"error_code": ErrorCode.NONE, "auth_bytes": step.reply, "session_lifetime_ms": lifetime_ms}
            except SaslFailed as why:
                told = why.told or (
                    "Authentication failed during authentication due to invalid credentials "
                    f"with SASL mechanism {self._mechanism}"
                )
                body = {"error_code": ErrorCode.SASL_AUTHENTICATION_FAILED, "error_message": told}
                await self._fail(why)
        return codec.encode_response(ApiKey.SASL_AUTHENTICATE, header.api_version, header.correlation_id, body)

    async def _take(self, token: bytes) -> Step:
        """Take a token of the mechanism. Raises SaslFailed."""
        is_first, self._state = self._state is _State.FIRST_TOKEN, _State.BUSY
        if is_first:
            step = await self._start(token)
        else:
            assert self._exchange is not None
            step = self._exchange.take(token)
        if isinstance(step.state, Authenticated):
            self._open(step.state.user)
        else:
            self._exchange, self._state = step.state, _State.NEXT_TOKEN
        return step

    async def _start(self, token: bytes) -> Step:
        assert self._mechanism is not None
        server = self._server
        if self._mechanism == PLAIN:
            claim = read_plain(token)
            return judge_plain(claim, await server.credentials.plain_password(claim.user))
        first = read_client_first(token)
        credential = await server.credentials.scram_credential(self._mechanism, first.user)
        # Also for users that exist: what takes longer for the others would tell them apart.
        shapes = await server.credentials.scram_shapes(self._mechanism)
        mechanism = SCRAM_MECHANISMS[self._mechanism]
        decoy = decoy_credential(mechanism, first.user, server.decoy_key, shapes)
        return start_scram_server(mechanism, first, credential, server.new_nonce(), decoy)

    def _open(self, user: str) -> None:
        if self._user not in {None, user}:
            words = f"Cannot change principals during re-authentication from {self._user} to {user}"
            raise SaslFailed(words, told=words)
        if self._server.session_lifetime_ms:
            self._expires_at = asyncio.get_running_loop().time() + self._server.session_lifetime_ms / 1000
        self._user, self._exchange, self._state = user, None, _State.OPEN
        self._peer.principal = f"User:{user}"
        self._opened()

    async def _fail(self, why: SaslFailed) -> None:
        """Take nothing more of this peer, write it down, and let it wait for its answer."""
        self._state, self._exchange = _State.BUSY, None
        if self._server.may_log(self._peer.host, asyncio.get_running_loop().time()):
            extra = {"peer": str(self._peer), "reason": why.reason}
            _log.warning("Authentication of %s failed: %s", self._peer, why.reason, extra=extra)
        await asyncio.sleep(self._server.failure_delay_ms / 1000)
        self._drain()


def _check_version(header: RequestHeader, versions: tuple[int, int]) -> None:
    if not versions[0] <= header.api_version <= versions[1]:
        raise CloseConnection(f"version {header.api_version} of api key {header.api_key} is not supported here")
