"""SCRAM client: client first ──► [server first] ──► client final ──► [server final] ──► the server is verified too.

Source: RFC 5802; ScramSaslClient of Kafka's clients.
"""

import hmac
from dataclasses import dataclass

from kafka_wire.sasl import scram_messages as messages
from kafka_wire.sasl.scram_keys import MAX_ITERATIONS, MAX_SALT_BYTES, MIN_ITERATIONS, ScramMechanism
from kafka_wire.sasl.scram_messages import ClientFirst
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step


def start_scram_client(mechanism: ScramMechanism, user: str, password: str, nonce: str) -> Step:
    """Start an exchange; `nonce` must be a new random value of printable ASCII without commas."""
    if not user or not password:
        raise SaslFailed(f"user name and password for {mechanism.name} must not be empty")
    first = messages.client_first(user, nonce)
    return Step((first.gs2_header + first.bare).encode(), _AwaitServerFirst(mechanism, password, first))


@dataclass(frozen=True, slots=True)
class _AwaitServerFirst:
    mechanism: ScramMechanism
    password: str
    first: ClientFirst
    __repr__ = object.__repr__  # holds the password

    def take(self, message: bytes) -> Step:
        """Return the proof of the password."""
        server = messages.read_server_first(message)
        if not server.nonce.startswith(self.first.nonce) or server.nonce == self.first.nonce:
            raise SaslFailed("the server's nonce does not extend the client's: possible replay of an old exchange")
        if not MIN_ITERATIONS <= server.iterations <= MAX_ITERATIONS:
            raise SaslFailed(
                f"the server requires {server.iterations} iterations, {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
            )
        if len(server.salt) > MAX_SALT_BYTES:
            raise SaslFailed(f"the server's salt has {len(server.salt)} bytes, at most {MAX_SALT_BYTES} are allowed")
        salted = self.mechanism.salted_password(self.password, server.salt, server.iterations)
        final = messages.client_final(server.nonce)
        authenticated = f"{self.first.bare},{server.text},{final.bare}".encode()
        client_key = self.mechanism.client_key(salted)
        signature = self.mechanism.hmac(self.mechanism.hash(client_key), authenticated)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        expected = self.mechanism.hmac(self.mechanism.server_key(salted), authenticated)
        return Step(messages.client_final_text(final.bare, proof), _AwaitServerFinal(self.first.user, expected))


@dataclass(frozen=True, slots=True)
class _AwaitServerFinal:
    user: str
    expected: bytes
    __repr__ = object.__repr__

    def take(self, message: bytes) -> Step:
        """Verify that the server knows the credential."""
        if not hmac.compare_digest(self.expected, messages.read_server_final(message)):
            raise SaslFailed("the server's signature is wrong: it does not know the user's credential")
        return Step(None, Authenticated(self.user))
