"""SCRAM server: [client first] ──► credential lookup ──► server first ──► [client final] ──► server final.

The exchange of an unknown user uses the salt and iterations of a decoy, and fails at the end like a wrong password. Kafka fails it
at once, which reveals to unauthenticated clients which users exist (RFC 5802, section 9).

Source: RFC 5802; ScramSaslServer of Kafka's clients.
"""

import hmac
from dataclasses import dataclass

from kafka_wire.sasl import scram_messages as messages
from kafka_wire.sasl.scram_keys import MIN_ITERATIONS, ScramCredential, ScramMechanism
from kafka_wire.sasl.scram_messages import ClientFirst, ServerFirst
from kafka_wire.sasl.steps import Authenticated, SaslFailed, Step

OTHER_AUTHORIZATION_ID = "Authentication failed: Client requested an authorization id that is different from username"


def start_scram_server(
    mechanism: ScramMechanism,
    first: ClientFirst,
    credential: ScramCredential | None,
    nonce: str,
    decoy: ScramCredential,
) -> Step:
    """Handle a client's first message; `credential` is the user's, or None if there is none. Raises SaslFailed.

    `nonce` must be a new random value; `decoy` replaces a missing or invalid credential.
    """
    if first.authorization_id not in {"", first.user}:
        raise SaslFailed(OTHER_AUTHORIZATION_ID, peer_message=OTHER_AUTHORIZATION_ID)
    refusal = None
    if credential is None or first.token_authenticated:
        refusal = f"the user {first.user!r} does not exist, or its password is wrong"
    elif credential.iterations < MIN_ITERATIONS:
        refusal = f"the credential of {first.user!r} has {credential.iterations} iterations, at least {MIN_ITERATIONS} are required"
    used = decoy if credential is None or refusal is not None else credential
    server_first = messages.server_first(first.nonce + nonce, used.salt, used.iterations)
    return Step(server_first.text.encode(), _AwaitClientFinal(mechanism, first, server_first, used, refusal))


@dataclass(frozen=True, slots=True)
class _AwaitClientFinal:
    mechanism: ScramMechanism
    first: ClientFirst
    server_first: ServerFirst
    credential: ScramCredential
    refusal: str | None
    """Reason for a failure with any proof; None if the proof decides."""

    def take(self, message: bytes) -> Step:
        """Verify the client's proof, and return the proof that the server knows the credential."""
        final = messages.read_client_final(message)
        if final.channel_binding != self.first.gs2_header.encode():
            raise SaslFailed("the client's channel binding differs from its first message")
        if not hmac.compare_digest(final.nonce.encode(), self.server_first.nonce.encode()):
            raise SaslFailed("the client's nonce is not that of this exchange")
        authenticated = f"{self.first.bare},{self.server_first.text},{final.bare}".encode()
        signature = self.mechanism.hmac(self.credential.stored_key, authenticated)
        if len(final.proof) != len(signature):
            raise SaslFailed(f"the client's proof has {len(final.proof)} bytes, expected {len(signature)}")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        equal = hmac.compare_digest(self.mechanism.hash(client_key), self.credential.stored_key)
        if not equal or self.refusal is not None:
            raise SaslFailed(self.refusal or f"the user {self.first.user!r} does not exist, or its password is wrong")
        proof = self.mechanism.hmac(self.credential.server_key, authenticated)
        return Step(messages.server_final_text(proof), Authenticated(self.first.user))
