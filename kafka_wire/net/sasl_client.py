"""SASL authentication of a client: SaslHandshake, then the mechanism's messages in SaslAuthenticate (KIP-43, KIP-152, KIP-368).

kafka_wire.sasl has the mechanisms.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from secrets import SystemRandom

from kafka_wire.api import ApiKey, Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import ConnectionFailed
from kafka_wire.sasl.oauthbearer import OAUTHBEARER, start_oauthbearer_client
from kafka_wire.sasl.plain import PLAIN, start_plain_client
from kafka_wire.sasl.scram_client import start_scram_client
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)
MAX_ROUNDS = 4
"""SCRAM needs two; the limit stops a server that never completes the exchange."""

MAX_ERROR_CHARACTERS = 300
"""Characters of a peer's error message that are kept."""
_NONCE_BITS = 130
"""As in Kafka's ScramFormatter."""
_REAUTHENTICATE_AT = (0.85, 0.95)
"""Fraction of the session lifetime after which the client authenticates again: random within the range, as in Kafka's clients
(KIP-368)."""
_RANDOM = SystemRandom()

Call = Callable[[ApiKey, Body], Awaitable[Body]]
"""Sends one request in the highest common version, and returns its response's body."""


TokenSource = Callable[[], Awaitable[str]]
"""Returns a token for one authentication. Raises SaslFailed."""


class AuthenticationFailed(ConnectionFailed):
    """The peer rejected the credentials, or failed to prove its own identity. The reason contains no secret."""


class NoToken(AuthenticationFailed):
    """There is no token to authenticate with: nothing was sent to the peer."""


@dataclass(frozen=True, slots=True)
class SaslCredentials:
    """Credentials of a client."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"the SASL mechanism {self.mechanism} is not one of {', '.join(MECHANISMS)}")


@dataclass(frozen=True, slots=True)
class BearerCredentials:
    """Credentials of a client that authenticates with tokens (OAUTHBEARER)."""

    token: TokenSource = field(repr=False)

    @property
    def mechanism(self) -> str:
        """Name of the SASL mechanism."""
        return OAUTHBEARER


Credentials = SaslCredentials | BearerCredentials


def draw_nonce() -> str:
    """Return a random nonce of printable ASCII without a comma."""
    return f"{_RANDOM.getrandbits(_NONCE_BITS):x}"


async def authenticate(call: Call, credentials: Credentials, peer: str) -> int:
    """Authenticate; returns the session lifetime in ms, 0 if the session lasts as long as the connection.

    Raises AuthenticationFailed, and what `call` raises.
    """
    mechanism = credentials.mechanism
    who = "a token" if isinstance(credentials, BearerCredentials) else repr(credentials.user)
    failed = f"{mechanism} authentication of {who} with {peer} failed"
    token = await _token(credentials)
    response = await call(ApiKey.SASL_HANDSHAKE, {"mechanism": mechanism})
    if response["error_code"] != ErrorCode.NONE:
        offered = ", ".join(response["mechanisms"][:16])
        error = ErrorCode.of(response["error_code"]).name
        raise AuthenticationFailed(f"{peer} rejected {mechanism}: {error}; it offers {offered}", sent=False)
    try:
        step = _start(credentials, token)
        for _ in range(MAX_ROUNDS):
            response = await call(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": step.reply})
            _check(response)
            assert not isinstance(step.state, Authenticated)
            step = step.state.take(response["auth_bytes"])
            if isinstance(step.state, Authenticated):
                lifetime_ms: int = response["session_lifetime_ms"]
                return lifetime_ms
    except SaslFailed as failure:
        raise AuthenticationFailed(f"{failed}: {failure.reason}", sent=False) from None
    raise AssertionError(f"the {mechanism} exchange did not end within {MAX_ROUNDS} rounds")


def reauthenticate_after_s(lifetime_ms: int, random: Callable[[], float] = _RANDOM.random) -> float | None:
    """Return the delay in s before the next authentication; None if there is none."""
    if lifetime_ms <= 0:
        return None
    earliest, latest = _REAUTHENTICATE_AT
    return lifetime_ms / 1000 * (earliest + (latest - earliest) * random())


def _check(response: Body) -> None:
    if response["error_code"] != ErrorCode.NONE:
        message = (response["error_message"] or "")[:MAX_ERROR_CHARACTERS]
        raise SaslFailed(f"{ErrorCode.of(response['error_code']).name}: {message}")


async def _token(credentials: Credentials) -> str:
    """Return a token for OAUTHBEARER, before the server waits for it; empty for other mechanisms."""
    if isinstance(credentials, SaslCredentials):
        return ""
    try:
        return await credentials.token()
    except SaslFailed as failure:
        raise NoToken(failure.reason, sent=False) from None


def _start(credentials: Credentials, token: str) -> Step:
    if isinstance(credentials, BearerCredentials):
        return start_oauthbearer_client(token)
    if credentials.mechanism == PLAIN:
        return start_plain_client(credentials.user, credentials.password)
    mechanism = SCRAM_MECHANISMS[credentials.mechanism]
    return start_scram_client(mechanism, credentials.user, credentials.password, draw_nonce())
