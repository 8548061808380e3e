"""A SCRAM server's first message does not reveal whether a user exists (RFC 5802, section 9)."""

import base64
from collections import Counter

import pytest

from kafka_wire.sasl.scram_decoy import (
    KAFKA_DEFAULT,
    KAFKA_SALT_BITS,
    CredentialShape,
    decoy_credential,
    shape_of,
)
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS, SCRAM_SHA_256, ScramCredential, ScramMechanism

KEY = b"of tests only"
USERS = [f"user{number}" for number in range(2_000)]
OFTEN, SELDOM = CredentialShape(8192, 26, salt_is_number=True), CredentialShape(16384, 64, salt_is_number=False)
BOTH = pytest.mark.parametrize("mechanism", SCRAM_MECHANISMS.values(), ids=lambda one: one.name)


@BOTH
def test_decoys_resemble_the_credentials_of_known_users(mechanism: ScramMechanism) -> None:
    """Iterations, length and alphabet of the salt have the frequencies of the known users."""
    shapes = {OFTEN: 3, SELDOM: 1}
    found = Counter(shape_of(decoy_credential(mechanism, user, KEY, shapes)) for user in USERS)
    assert set(found) == {OFTEN, SELDOM}
    assert 0.70 < found[OFTEN] / len(USERS) < 0.80


@BOTH
def test_the_decoy_of_a_user_is_the_same_each_time(mechanism: ScramMechanism) -> None:
    """A salt or count that changes between attempts would reveal that the user is unknown."""
    shapes = {OFTEN: 3, SELDOM: 1}
    for user in USERS[:50]:
        first, again = (decoy_credential(mechanism, user, KEY, shapes) for _ in range(2))
        assert first == again
        assert decoy_credential(mechanism, user, b"another process", shapes).salt != first.salt
    assert len({decoy_credential(mechanism, user, KEY, shapes).salt for user in USERS}) == len(USERS)


def test_a_new_known_user_changes_few_decoys() -> None:
    """Otherwise a comparison of two attempts, before and after, would reveal unknown users."""
    before, after = {OFTEN: 30, SELDOM: 10}, {OFTEN: 30, SELDOM: 10, KAFKA_DEFAULT: 1}
    changed = sum(
        decoy_credential(SCRAM_SHA_256, user, KEY, before) != decoy_credential(SCRAM_SHA_256, user, KEY, after)
        for user in USERS
    )
    assert 0 < changed < len(USERS) * 0.05


def test_without_known_users_decoys_resemble_kafkas_credentials() -> None:
    """ScramFormatter.secureRandomString: 130 bits in base 36."""
    for user in USERS:
        decoy = decoy_credential(SCRAM_SHA_256, user, KEY, {})
        assert shape_of(decoy) == KAFKA_DEFAULT
        assert int(decoy.salt, 36) < 2**KAFKA_SALT_BITS


@pytest.mark.parametrize("salt_bytes", [1, 16, 1_024])
def test_decoys_have_salts_of_any_length(salt_bytes: int) -> None:
    """Clients may choose salts of any length."""
    shape = CredentialShape(4096, salt_bytes, salt_is_number=False)
    assert len(decoy_credential(SCRAM_SHA_256, "a", KEY, {shape: 1}).salt) == salt_bytes


@pytest.mark.parametrize(
    ("salt", "is_number"),
    [
        (b"1lzsu0bfo9v2e5tqyr8ld3axk7", True),
        (b"zzzzzzzzzzzzzzzzzzzzzzzzz", True),
        (b"zzzzzzzzzzzzzzzzzzzzzzzzzz", False),
        (b"0zzz", False),
        (base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ=="), False),
        (b"UPPER", False),
        (b"", False),
    ],
)
def test_kafkas_salts_are_recognised(salt: bytes, is_number: bool) -> None:
    """A number of at most 130 bits, without leading zeros."""
    assert shape_of(ScramCredential(salt, b"", b"", 4096)).salt_is_number is is_number
