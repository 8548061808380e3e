"""SCRAM keys (RFC 5802, section 3) and the credential that a server stores.

    SaltedPassword = Hi(password, salt, i)      ClientKey = HMAC(SaltedPassword, "Client Key")     StoredKey = H(ClientKey)
                                                ServerKey = HMAC(SaltedPassword, "Server Key")

Source: ScramFormatter, ScramMechanism and ScramCredentialUtils of Kafka's clients.
"""

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass

MIN_ITERATIONS = 4_096
"""With fewer iterations the password of a stolen credential is easy to guess; Kafka rejects them on both sides."""
MAX_ITERATIONS = 16_384
"""More would let one side cause long computations on the other; Kafka's AlterUserScramCredentials rejects them."""
MAX_SALT_BYTES = 1_024
"""Limit of Steward for a salt that is hashed; Kafka's salts have 26 bytes."""


@dataclass(frozen=True, slots=True)
class ScramMechanism:
    """One of Kafka's SCRAM mechanisms."""

    name: str
    hash_name: str
    """Name in hashlib."""
    type_id: int
    """Number in AlterUserScramCredentials."""

    def hash(self, data: bytes) -> bytes:
        """Return H(data)."""
        return hashlib.new(self.hash_name, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        """Return HMAC(key, data)."""
        return hmac.digest(key, data, self.hash_name)

    def salted_password(self, password: str, salt: bytes, iterations: int) -> bytes:
        """Return Hi(password, salt, iterations), which takes some milliseconds."""
        return hashlib.pbkdf2_hmac(self.hash_name, password.encode(), salt, iterations)

    def client_key(self, salted_password: bytes) -> bytes:
        """Return the key that a client proves to know."""
        return self.hmac(salted_password, b"Client Key")

    def server_key(self, salted_password: bytes) -> bytes:
        """Return the key that a server proves to know."""
        return self.hmac(salted_password, b"Server Key")


SCRAM_SHA_256 = ScramMechanism("SCRAM-SHA-256", "sha256", 1)
SCRAM_SHA_512 = ScramMechanism("SCRAM-SHA-512", "sha512", 2)
SCRAM_MECHANISMS = {mechanism.name: mechanism for mechanism in (SCRAM_SHA_256, SCRAM_SHA_512)}


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """Credential of one user for one mechanism, as a server stores it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int
    __repr__ = object.__repr__  # the server key would allow impersonation of the server


def make_credential(mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """Create a credential, as ScramFormatter.generateCredential."""
    stored_key = mechanism.hash(mechanism.client_key(salted_password))
    return ScramCredential(salt, stored_key, mechanism.server_key(salted_password), iterations)


def encode_credential(credential: ScramCredential) -> str:
    """Return the text of a credential in /config/users, byte for byte as Kafka writes it."""
    keys = {"salt": credential.salt, "stored_key": credential.stored_key, "server_key": credential.server_key}
    encoded = ",".join(f"{name}={base64.b64encode(value).decode()}" for name, value in keys.items())
    return f"{encoded},iterations={credential.iterations}"


def decode_credential(text: str) -> ScramCredential:
    """Parse a credential as Kafka does. Raises ValueError, which does not contain the text."""
    fields = dict[str, str]()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise ValueError("a SCRAM credential has a part that is not NAME=VALUE")
        fields[name] = value
    if fields.keys() != {"salt", "stored_key", "server_key", "iterations"}:
        raise ValueError("a SCRAM credential must have salt, stored_key, server_key and iterations, and nothing else")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in ("salt", "stored_key", "server_key")
        )
        iterations = int(fields["iterations"])
    except (binascii.Error, ValueError):
        raise ValueError("a SCRAM credential's keys must be base64, and its iterations a number") from None
    return ScramCredential(salt, stored_key, server_key, iterations)
