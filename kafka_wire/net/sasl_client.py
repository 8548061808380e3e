"""How a client says who it is: SaslHandshake, then the mechanism's messages in SaslAuthenticate (KIP-43, KIP-152, KIP-368).

Left out: sending (connection.py), and the mechanisms (kafka_wire.sasl).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from secrets import SystemRandom

from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.failures import ConnectionFailed
from kafka_wire.sasl.plain import PLAIN, start_plain_client
from kafka_wire.sasl.scram_client import start_scram_client
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

MECHANISMS = (PLAIN, *SCRAM_MECHANISMS)
MAX_ROUNDS = 4  # SCRAM needs two; a server that wants more plays for time

MAX_SHOWN = 300  # characters of what a peer says of an error
_NONCE_BITS = 130  # as ScramFormatter's own
_REAUTHENTICATE_AT = (0.85, 0.95)  # of the session's life, drawn between, as Kafka's clients do (KIP-368)
_RANDOM = SystemRandom()

Call = Callable[[ApiKey, Body], Awaitable[Body]]
"""Sends one request in the highest version shared, and gives its response's body."""


class AuthenticationFailed(ConnectionFailed):
    """The peer did not believe who we are, or we did not believe the peer. No secret is in the reason."""


@dataclass(frozen=True, slots=True)
class SaslCredentials:
    """Who this side is."""

    mechanism: str
    user: str
    password: str = field(repr=False)

    def __post_init__(self) -> None:
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"the SASL mechanism {self.mechanism} is none of {', '.join(MECHANISMS)}")


def draw_nonce() -> str:
    """Draw a nonce of printable ASCII without a comma."""
    return f"{_RANDOM.getrandbits(_NONCE_BITS):x}"


async def authenticate(call: Call, credentials: SaslCredentials, peer: str) -> int:
    """Say who we are; gives the session's life in ms, 0 for as long as the connection.

    Raises AuthenticationFailed, and what `call` raises.
    """
    mechanism = credentials.mechanism
    answer = await call(ApiKey.SASL_HANDSHAKE, {"mechanism": mechanism})
    if answer["error_code"] != ErrorCode.NONE:
        offered = ", ".join(answer["mechanisms"][:16])
        error = ErrorCode.of(answer["error_code"]).name
        raise AuthenticationFailed(f"{peer} refused {mechanism}: {error}; it offers {offered}", sent=False)
    try:
        step = _start(credentials)
        for _ in range(MAX_ROUNDS):
            answer = await call(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": step.reply})
            _check(answer)
            assert not isinstance(step.state, Authenticated)
            step = step.state.take(answer["auth_bytes"])
            if isinstance(step.state, Authenticated):
                lifetime_ms: int = answer["session_lifetime_ms"]
                return lifetime_ms
    except SaslFailed as why:
        reason = f"{credentials.user!r} is not authenticated with {peer} by {mechanism}: {why.reason}"
        raise AuthenticationFailed(reason, sent=False) from None
    raise AssertionError("every mechanism ends within the rounds")


def reauthenticate_after_s(lifetime_ms: int, random: Callable[[], float] = _RANDOM.random) -> float | None:
    """Tell when to authenticate again, in s from now; None: never."""
    if lifetime_ms <= 0:
        return None
    earliest, latest = _REAUTHENTICATE_AT
    return lifetime_ms / 1000 * (earliest + (latest - earliest) * random())


def _check(answer: Body) -> None:
    if answer["error_code"] != ErrorCode.NONE:
        words = (answer["error_message"] or "")[:MAX_SHOWN]
        raise SaslFailed(f"{ErrorCode.of(answer['error_code']).name}: {words}")


def _start(credentials: SaslCredentials) -> Step:
    if credentials.mechanism == PLAIN:
        return start_plain_client(credentials.user, credentials.password)
    mechanism = SCRAM_MECHANISMS[credentials.mechanism]
    return start_scram_client(mechanism, credentials.user, credentials.password, draw_nonce())
