"""SCRAM's server: [client first] ──► look the credential up ──► server first ──► [client final] ──► server final.

A user that does not exist is answered like one that does, with a decoy's salt and iterations, and fails at the end as a wrong
password does: Kafka fails at once there, which tells everybody who asks which users there are (RFC 5802, section 9).

Source: RFC 5802; ScramSaslServer of Kafka's clients. Left out: where credentials and nonces come from.
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
    """Answer a client's first message; `credential` is the named user's, None: it has none. Raises SaslFailed.

    `nonce` must be drawn anew for every exchange; `decoy` is shown where there is no credential
    that may be used.
    """
    if first.authorization_id not in {"", first.user}:
        raise SaslFailed(OTHER_AUTHORIZATION_ID, told=OTHER_AUTHORIZATION_ID)
    refusal = None
    if credential is None or first.token_authenticated:
        refusal = f"the user {first.user!r} does not exist, or its password is wrong"
    elif credential.iterations < MIN_ITERATIONS:
        refusal = f"the credential of {first.user!r} has {credential.iterations} iterations, at least {MIN_ITERATIONS} are needed"
    shown = decoy if credential is None or refusal is not None else credential
    told = messages.server_first(first.nonce + nonce, shown.salt, shown.iterations)
    return Step(told.text.encode(), _AwaitClientFinal(mechanism, first, told, shown, refusal))


@dataclass(frozen=True, slots=True)
class _AwaitClientFinal:
    mechanism: ScramMechanism
    first: ClientFirst
    told: ServerFirst
    credential: ScramCredential
    refusal: str | None
    """Why nobody is let in, whatever the proof; None: the proof decides."""

    def take(self, message: bytes) -> Step:
        """Check the client's proof, and prove that this side knows the credential too."""
        final = messages.read_client_final(message)
        if final.channel_binding != self.first.gs2_header.encode():
            raise SaslFailed("the client's channel binding is not the one that it began with")
        if not hmac.compare_digest(final.nonce.encode(), self.told.nonce.encode()):
            raise SaslFailed("the client's nonce is not the one of this exchange")
        authenticated = f"{self.first.bare},{self.told.text},{final.bare}".encode()
        signature = self.mechanism.hmac(self.credential.stored_key, authenticated)
        if len(final.proof) != len(signature):
            raise SaslFailed(f"the client's proof has {len(final.proof)} bytes, not {len(signature)}")
        client_key = bytes(a ^ b for a, b in zip(final.proof, signature, strict=True))
        equal = hmac.compare_digest(self.mechanism.hash(client_key), self.credential.stored_key)
        if not equal or self.refusal is not None:
            raise SaslFailed(self.refusal or f"the user {self.first.user!r} does not exist, or its password is wrong")
        proof = self.mechanism.hmac(self.credential.server_key, authenticated)
        return Step(messages.server_final_text(proof), Authenticated(self.first.user))
