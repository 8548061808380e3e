"""OAUTHBEARER (RFC 7628, KIP-255): a token in one message. It is only safe over TLS.

Source: OAuthBearerClientInitialResponse and OAuthBearerSaslClient of Kafka's clients. Extensions (KIP-342) are not sent.
"""

import re
from dataclasses import dataclass

from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

OAUTHBEARER = "OAUTHBEARER"
MAX_TOKEN_CHARACTERS = 64 * 1024
"""Brokers limit a message of a login to 512 kB (sasl.server.max.receive.size); tokens have some thousand characters."""
MAX_ERROR_CHARACTERS = 300
"""Characters of the server's error that are kept."""

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""The b64token of RFC 6750: a JWT, or an opaque token."""


@dataclass(frozen=True, slots=True)
class TokenSent:
    """A client that has sent its token. The server proves nothing: its reply is empty, or has the error as JSON."""

    def take(self, message: bytes) -> Step:
        """Check the server's reply; after an error the server waits for a message of one byte (RFC 7628, section 3.2.3)."""
        if not message:
            return Step(None, Authenticated(""))
        return Step(b"\x01", TokenRejected(message.decode("utf-8", "replace")[:MAX_ERROR_CHARACTERS]))


@dataclass(frozen=True, slots=True)
class TokenRejected:
    """A client whose token was rejected; the exchange cannot succeed any more."""

    error: str

    def take(self, message: bytes) -> Step:
        """Fail, whatever the server replies."""
        del message
        raise SaslFailed(f"the server rejected the token: {self.error}")


def start_oauthbearer_client(token: str) -> Step:
    """Start the exchange of a client. Raises SaslFailed for text that is no token, without quoting it."""
    if len(token) > MAX_TOKEN_CHARACTERS or not _TOKEN.fullmatch(token):
        raise SaslFailed(
            f"the token of {len(token)} characters is not valid: it may have {MAX_TOKEN_CHARACTERS}, which are letters, digits and ._~+/-="
        )
    return Step(f"n,,\x01auth=Bearer {token}\x01\x01".encode(), TokenSent())
