"""Decoy credentials: what a SCRAM server shows for a user that does not exist.

The first answer of a server holds the user's salt and iteration count. For an unknown user both must look like a known user's,
and stay the same from one attempt to the next; otherwise the answer tells whether the user exists (RFC 5802, section 9).
"""

import math
import string
from collections.abc import Mapping
from dataclasses import dataclass

from kafka_wire.sasl.scram_keys import MIN_ITERATIONS, ScramCredential, ScramMechanism

KAFKA_SALT_BITS = 130
"""Kafka writes a random number of so many bits in base 36 (ScramFormatter.secureRandomString)."""
_DIGITS = string.digits + string.ascii_lowercase
_BASE = len(_DIGITS)


@dataclass(frozen=True, slots=True)
class CredentialShape:
    """What an unauthenticated peer sees of a credential, apart from the salt's value."""

    iterations: int
    salt_bytes: int
    salt_is_number: bool
    """Whether the salt is a number in base 36, as Kafka's own tools and AdminClient make it."""


KAFKA_DEFAULT = CredentialShape(MIN_ITERATIONS, 26, salt_is_number=True)
"""What Kafka's tools make when nothing is chosen."""


def shape_of(credential: ScramCredential) -> CredentialShape:
    """Tell the shape of a credential."""
    return CredentialShape(credential.iterations, len(credential.salt), _is_number(credential.salt))


def decoy_credential(
    mechanism: ScramMechanism, user: str, key: bytes, shapes: Mapping[CredentialShape, int]
) -> ScramCredential:
    """Make a credential for a user that does not exist: always the same one, and no password fits it.

    Its shape is one of the known users', each as probable as it is frequent. `key` is a secret.
    """
    name = user.encode()
    shape = _choose(mechanism, name, key, shapes or {KAFKA_DEFAULT: 1})
    secret = mechanism.hmac(key, b"key " + name)
    return ScramCredential(_salt(mechanism, name, key, shape), secret, secret, shape.iterations)


def _choose(
    mechanism: ScramMechanism, name: bytes, key: bytes, shapes: Mapping[CredentialShape, int]
) -> CredentialShape:
    """Choose by weighted rendezvous hashing: when known users come and go, few unknown ones change their shape."""

    def distance(shape: CredentialShape) -> float:
        label = f"shape {shape.iterations} {shape.salt_bytes} {shape.salt_is_number} ".encode()
        drawn = int.from_bytes(mechanism.hmac(key, label + name)[:6])
        return -math.log((drawn + 1) / (2**48 + 1)) / shapes[shape]

    return min(shapes, key=distance)


def _salt(mechanism: ScramMechanism, name: bytes, key: bytes, shape: CredentialShape) -> bytes:
    drawn, block = b"", 0
    while len(drawn) < max(shape.salt_bytes, 64):
        drawn += mechanism.hmac(key, b"salt %d " % block + name)
        block += 1
    if not shape.salt_is_number:
        return drawn[: shape.salt_bytes]
    lowest = _BASE ** (shape.salt_bytes - 1)
    highest = min(_BASE**shape.salt_bytes, 2**KAFKA_SALT_BITS)
    return _write_number(lowest + int.from_bytes(drawn) % (highest - lowest))


def _is_number(salt: bytes) -> bool:
    """Whether a salt is a number of at most 130 bits in base 36, without leading zeros."""
    digits = _DIGITS.encode()
    if not salt or len(salt) > 26 or salt.startswith(b"0") or any(digit not in digits for digit in salt):
        return False
    return bool(int(salt, _BASE) < 2**KAFKA_SALT_BITS)


def _write_number(value: int) -> bytes:
    text = ""
    while value:
        value, digit = divmod(value, _BASE)
        text = _DIGITS[digit] + text
    return text.encode()
