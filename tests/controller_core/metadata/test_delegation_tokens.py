"""Delegation tokens. Source: DelegationTokenControlManager of Kafka."""

from dataclasses import replace

import pytest

from controller_core.metadata.delegation_tokens import (
    MAX_EXPIRED,
    NewToken,
    TokenSettings,
    create_token,
    expire_token,
    renew_token,
    sweep_expired_tokens,
    token_hmac,
)
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import METADATA_VERSION
from kafka_metadata.records import DelegationTokenRecord, FeatureLevelRecord, RemoveDelegationTokenRecord
from kafka_metadata.replay import replay
from kafka_wire import ErrorCode

SETTINGS = TokenSettings("secret", max_lifetime_ms=1_000, expiry_time_ms=100)
TOKEN = DelegationTokenRecord("User:alice", "User:alice", ("User:bob",), 5_000, 6_000, 5_100, "id")
IMAGE = replay(MetadataImage(), [FeatureLevelRecord(METADATA_VERSION, 30), TOKEN])
HMAC = token_hmac("secret", "id")
WANTED = NewToken("User:alice", "User:carol", ("User:bob",), 0)


def test_a_token_lives_as_long_as_the_settings_allow() -> None:
    """DelegationTokenControlManager.createDelegationToken."""
    made = create_token(IMAGE, SETTINGS, WANTED, "new", 5_000)
    shorter = create_token(IMAGE, SETTINGS, WANTED._replace(max_lifetime_ms=50), "new", 5_000)

    record = DelegationTokenRecord("User:alice", "User:carol", ("User:bob",), 5_000, 6_000, 5_100, "new")
    assert made.records == (record,)
    assert made.reply == (record, token_hmac("secret", "new"))
    assert shorter.records == (replace(record, max_timestamp=5_050, expiration_timestamp=5_050),)


@pytest.mark.parametrize(
    ("settings", "metadata_version", "renewer", "error"),
    [
        (replace(SETTINGS, secret_key=None), 30, "User:bob", ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (SETTINGS, 13, "User:bob", ErrorCode.UNSUPPORTED_VERSION),
        (SETTINGS, 30, "Group:bob", ErrorCode.INVALID_PRINCIPAL_TYPE),
    ],
)
def test_a_token_is_refused(settings: TokenSettings, metadata_version: int, renewer: str, error: ErrorCode) -> None:
    """Without a key, below 3.6-IV2, and with a renewer that is no user."""
    image = replay(MetadataImage(), [FeatureLevelRecord(METADATA_VERSION, metadata_version)])

    made = create_token(image, settings, WANTED._replace(renewers=(renewer,)), "new", 5_000)

    assert (made.records, made.reply) == ((), error)


@pytest.mark.parametrize(
    ("requester", "now_ms", "period_ms", "reply"),
    [
        ("User:alice", 5_050, 20, 5_070),
        ("User:bob", 5_050, 0, 5_150),
        ("User:bob", 5_050, 10_000, 5_150),
        ("User:carol", 5_050, 20, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
        ("User:carol", 5_101, 20, ErrorCode.DELEGATION_TOKEN_EXPIRED),
    ],
)
def test_the_owner_and_the_renewers_renew_a_token(
    requester: str, now_ms: int, period_ms: int, reply: int | ErrorCode
) -> None:
    """DelegationTokenControlManager.renewDelegationToken."""
    made = renew_token(IMAGE, SETTINGS, requester, HMAC, period_ms, now_ms)

    assert made.reply == reply
    assert made.records == (() if isinstance(reply, ErrorCode) else (replace(TOKEN, expiration_timestamp=reply),))


def test_a_token_is_not_renewed_beyond_its_maximum_lifetime() -> None:
    """The maximum timestamp bounds the expiration."""
    late = replay(IMAGE, [replace(TOKEN, expiration_timestamp=6_000)])

    assert renew_token(late, SETTINGS, "User:alice", HMAC, 0, 5_950).reply == 6_000


@pytest.mark.parametrize(
    ("requester", "now_ms", "period_ms", "reply"),
    [
        ("User:alice", 5_050, 20, 5_070),
        ("User:bob", 5_050, -1, 5_050),
        ("User:bob", 5_101, -1, 5_101),
        ("User:bob", 5_101, 0, ErrorCode.DELEGATION_TOKEN_EXPIRED),
        ("User:carol", 5_050, -1, ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH),
    ],
)
def test_the_owner_and_the_renewers_let_a_token_expire(
    requester: str, now_ms: int, period_ms: int, reply: int | ErrorCode
) -> None:
    """DelegationTokenControlManager.expireDelegationToken: a period below 0 removes the token, also an expired one."""
    made = expire_token(IMAGE, SETTINGS, requester, HMAC, period_ms, now_ms)

    assert made.reply == reply
    if isinstance(reply, ErrorCode):
        assert made.records == ()
    elif period_ms < 0:
        assert made.records == (RemoveDelegationTokenRecord("id"),)
    else:
        assert made.records == (replace(TOKEN, expiration_timestamp=reply),)


def test_an_unknown_hmac_is_no_token() -> None:
    """The HMAC of another key too."""
    other = token_hmac("other", "id")

    assert renew_token(IMAGE, SETTINGS, "User:alice", other, 0, 5_050).reply is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert expire_token(IMAGE, SETTINGS, "User:alice", other, 0, 5_050).reply is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_a_sweep_removes_a_bounded_number_of_expired_tokens() -> None:
    """DelegationTokenControlManager.sweepExpiredDelegationTokens."""
    tokens = {str(number): replace(TOKEN, token_id=str(number)) for number in range(MAX_EXPIRED + 1)}
    image = MetadataImage(delegation_tokens=tokens)

    made = sweep_expired_tokens(image, 5_101)
    rest = sweep_expired_tokens(replay(image, made.records), 5_101)

    assert sweep_expired_tokens(image, 5_100).records == ()
    assert (len(made.records), made.reply) == (MAX_EXPIRED, True)
    assert (len(rest.records), rest.reply) == (1, False)


def test_no_log_contains_the_secret_key() -> None:
    """The settings of a process are logged."""
    assert "secret" not in repr(SETTINGS)
