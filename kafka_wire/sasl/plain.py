"""PLAIN (RFC 4616): name and password in one message. It is only safe over TLS.

Source: PlainSaslServer and PlainServerCallbackHandler of Kafka's clients.
"""

import hmac
from dataclasses import dataclass

from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

PLAIN = "PLAIN"


@dataclass(frozen=True, slots=True)
class PlainClaim:
    """Content of a client's message, not yet verified."""

    authorization_id: str
    user: str
    password: bytes
    __repr__ = object.__repr__  # keeps the password out of logs


@dataclass(frozen=True, slots=True)
class PlainClientEnd:
    """A client that has sent its message. The server proves nothing, so its reply is empty."""

    user: str

    def take(self, message: bytes) -> Step:
        """Check the server's reply."""
        if message:
            raise SaslFailed(f"the server replied to PLAIN with {len(message)} bytes, expected none")
        return Step(None, Authenticated(self.user))


def start_plain_client(user: str, password: str) -> Step:
    """Start the exchange of a client."""
    if not user or not password or "\0" in user + password:
        raise SaslFailed("user name and password for PLAIN must not be empty and must not contain a NUL character")
    return Step(f"\0{user}\0{password}".encode(), PlainClientEnd(user))


def read_plain(message: bytes) -> PlainClaim:
    """Parse a client's message. Raises SaslFailed with Kafka's message for the client."""
    parts = message.split(b"\0")
    if len(parts) != 3:
        raise _failed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
    try:
        authorization_id, user = parts[0].decode(), parts[1].decode()
    except UnicodeDecodeError:
        raise _failed("Authentication failed: username not specified") from None
    if not user:
        raise _failed("Authentication failed: username not specified")
    if not parts[2]:
        raise _failed("Authentication failed: password not specified")
    return PlainClaim(authorization_id, user, parts[2])


def verify_plain(claim: PlainClaim, password: str | None) -> Step:
    """Verify a claim on the server; `password` is the user's, or None for an unknown user. Raises SaslFailed.

    The time is the same for unknown and known users.
    """
    equal = hmac.compare_digest(claim.password, claim.password[::-1] + b"\0" if password is None else password.encode())
    if password is None or not equal:
        raise _failed("Authentication failed: Invalid username or password")
    if claim.authorization_id not in {"", claim.user}:
        raise _failed("Authentication failed: Client requested an authorization id that is different from username")
    return Step(b"", Authenticated(claim.user))


def _failed(message: str) -> SaslFailed:
    return SaslFailed(message, peer_message=message)
