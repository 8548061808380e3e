"""PLAIN (RFC 4616): the name and the password, in one message. Only over TLS is it any protection.

Source: PlainSaslServer and PlainServerCallbackHandler of Kafka's clients.
"""

import hmac
from dataclasses import dataclass

from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

PLAIN = "PLAIN"


@dataclass(frozen=True, slots=True)
class PlainClaim:
    """What a client's message says, not yet believed."""

    authorization_id: str
    user: str
    password: bytes
    __repr__ = object.__repr__  # the password is no text for a log


@dataclass(frozen=True, slots=True)
class PlainClientEnd:
    """A client that has sent its message: the server has nothing to prove, so its answer is empty."""

    user: str

    def take(self, message: bytes) -> Step:
        """Take the server's answer."""
        if message:
            raise SaslFailed(f"the server answered PLAIN with {len(message)} bytes, where none are due")
        return Step(None, Authenticated(self.user))


def start_plain_client(user: str, password: str) -> Step:
    """Begin as a client."""
    if not user or not password or "\0" in user + password:
        raise SaslFailed("a user's name and password for PLAIN must not be empty, nor hold a zero character")
    return Step(f"\0{user}\0{password}".encode(), PlainClientEnd(user))


def read_plain(message: bytes) -> PlainClaim:
    """Read a client's message. Raises SaslFailed, with Kafka's own words for the client."""
    parts = message.split(b"\0")
    if len(parts) != 3:
        raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}")
    try:
        authorization_id, user = parts[0].decode(), parts[1].decode()
    except UnicodeDecodeError:
        raise _refused("Authentication failed: username not specified") from None
    if not user:
        raise _refused("Authentication failed: username not specified")
    if not parts[2]:
        raise _refused("Authentication failed: password not specified")
    return PlainClaim(authorization_id, user, parts[2])


def judge_plain(claim: PlainClaim, password: str | None) -> Step:
    """Answer a claim as a server; `password` is the user's, None: there is no such user. Raises SaslFailed.

    An unknown user takes the time of a known one.
    """
    equal = hmac.compare_digest(claim.password, claim.password[::-1] + b"\0" if password is None else password.encode())
    if password is None or not equal:
        raise _refused("Authentication failed: Invalid username or password")
    if claim.authorization_id not in {"", claim.user}:
        raise _refused("Authentication failed: Client requested an authorization id that is different from username")
    return Step(b"", Authenticated(claim.user))


def _refused(words: str) -> SaslFailed:
    return SaslFailed(words, told=words)
