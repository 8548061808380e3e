"""SCRAM's client: client first ──► [server first] ──► client final ──► [server final] ──► the server is proven too.

Source: RFC 5802; ScramSaslClient of Kafka's clients. Left out: where the nonce comes from.
"""

import hmac
from dataclasses import dataclass

from kafka_wire.sasl import scram_messages as messages
from kafka_wire.sasl.scram_keys import MAX_ITERATIONS, MAX_SALT_BYTES, MIN_ITERATIONS, ScramMechanism
from kafka_wire.sasl.scram_messages import ClientFirst
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step


def start_scram_client(mechanism: ScramMechanism, user: str, password: str, nonce: str) -> Step:
    """Begin; `nonce` must be drawn anew for every exchange, of printable ASCII without commas."""
    if not user or not password:
        raise SaslFailed(f"a user's name and password for {mechanism.name} must not be empty")
    first = messages.client_first(user, nonce)
    return Step((first.gs2_header + first.bare).encode(), _AwaitServerFirst(mechanism, password, first))


@dataclass(frozen=True, slots=True)
class _AwaitServerFirst:
    mechanism: ScramMechanism
    password: str
    first: ClientFirst
    __repr__ = object.__repr__  # holds the password

    def take(self, message: bytes) -> Step:
        """Prove the password."""
        told = messages.read_server_first(message)
        if not told.nonce.startswith(self.first.nonce) or told.nonce == self.first.nonce:
            raise SaslFailed("the server's nonce does not continue ours: somebody repeats an old exchange")
        if not MIN_ITERATIONS <= told.iterations <= MAX_ITERATIONS:
            raise SaslFailed(
                f"the server asks for {told.iterations} iterations, {MIN_ITERATIONS} to {MAX_ITERATIONS} are allowed"
            )
        if len(told.salt) > MAX_SALT_BYTES:
            raise SaslFailed(f"the server's salt has {len(told.salt)} bytes, at most {MAX_SALT_BYTES} are allowed")
        salted = self.mechanism.salted_password(self.password, told.salt, told.iterations)
        final = messages.client_final(told.nonce)
        authenticated = f"{self.first.bare},{told.text},{final.bare}".encode()
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
        """See whether the server knows the credential too."""
        if not hmac.compare_digest(self.expected, messages.read_server_final(message)):
            raise SaslFailed("the server's signature is wrong: it does not know this user's credential")
        return Step(None, Authenticated(self.user))
