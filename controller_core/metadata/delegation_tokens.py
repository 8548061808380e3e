"""Delegation tokens as records (KIP-48). Source: DelegationTokenControlManager of Kafka 4.3.1.

A token's HMAC is not stored: it follows from the token's id and delegation.token.secret.key, so that every controller and broker with the
same key finds the token of an HMAC.
"""

import hmac
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from controller_core.metadata.record_decision import RecordDecision
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_versions import TOKENS_SINCE
from kafka_metadata.records import DelegationTokenRecord, RemoveDelegationTokenRecord
from kafka_wire import ErrorCode

MAX_EXPIRED = 1_000
"""Expired tokens that one sweep removes (MAX_RECORDS_PER_EXPIRATION)."""

INT64_MAX = (1 << 63) - 1
USER_TYPE = "User"
"""The only type of principals that may renew a token."""


@dataclass(frozen=True, slots=True)
class TokenSettings:
    """The settings `delegation.token.*`; without a secret key there are no tokens."""

    secret_key: str | None
    max_lifetime_ms: int
    expiry_time_ms: int

    def __repr__(self) -> str:
        """Return the times without the key, so that no log contains it."""
        return f"TokenSettings(max_lifetime_ms={self.max_lifetime_ms}, expiry_time_ms={self.expiry_time_ms})"


class NewToken(NamedTuple):
    """Request for a token; principals are TYPE:NAME. `max_lifetime_ms` below 1: that of the settings."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int


class CreatedToken(NamedTuple):
    """A token and its HMAC."""

    record: DelegationTokenRecord
    hmac: bytes


def token_hmac(secret_key: str, token_id: str) -> bytes:
    """Return the HMAC of a token.

    >>> len(token_hmac("key", "id"))
    64
    """
    return hmac.digest(secret_key.encode(), token_id.encode(), "sha512")


def create_token(
    image: MetadataImage, settings: TokenSettings, wanted: NewToken, token_id: str, now_ms: int
) -> RecordDecision:
    """Create a token with a random id. The reply is a CreatedToken or an ErrorCode."""
    if (error := _unavailable(image, settings)) is not None:
        return RecordDecision((), error)
    if not all(renewer.startswith(f"{USER_TYPE}:") for renewer in wanted.renewers):
        return RecordDecision((), ErrorCode.INVALID_PRINCIPAL_TYPE)
    lifetime_ms = settings.max_lifetime_ms
    if wanted.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, wanted.max_lifetime_ms)
    max_timestamp = _later(now_ms, lifetime_ms)
    record = DelegationTokenRecord(
        wanted.owner,
        wanted.requester,
        wanted.renewers,
        now_ms,
        max_timestamp,
        min(max_timestamp, _later(now_ms, settings.expiry_time_ms)),
        token_id,
    )
    return RecordDecision((record,), CreatedToken(record, token_hmac(settings.secret_key or "", token_id)))


def renew_token(
    image: MetadataImage, settings: TokenSettings, requester: str, token_mac: bytes, period_ms: int, now_ms: int
) -> RecordDecision:
    """Renew a token for a period, below 1: that of the settings. The reply is its expiration in ms since 1970, or an ErrorCode."""
    token = _found(image, settings, token_mac)
    if isinstance(token, ErrorCode):
        return RecordDecision((), token)
    if is_expired(token, now_ms):
        return RecordDecision((), ErrorCode.DELEGATION_TOKEN_EXPIRED)
    if not _may_change(token, requester):
        return RecordDecision((), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    period_ms = min(settings.expiry_time_ms, period_ms) if period_ms > 0 else settings.expiry_time_ms
    return _expires(token, _later(now_ms, period_ms))


def expire_token(
    image: MetadataImage, settings: TokenSettings, requester: str, token_mac: bytes, period_ms: int, now_ms: int
) -> RecordDecision:
    """Let a token expire after a period; one below 0 removes it. The reply is as that of `renew_token`."""
    token = _found(image, settings, token_mac)
    if isinstance(token, ErrorCode):
        return RecordDecision((), token)
    if not _may_change(token, requester):
        return RecordDecision((), ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
    if period_ms < 0:
        return RecordDecision((RemoveDelegationTokenRecord(token.token_id),), now_ms)
    if is_expired(token, now_ms):
        return RecordDecision((), ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expires(token, _later(now_ms, period_ms))


def sweep_expired_tokens(image: MetadataImage, now_ms: int) -> RecordDecision:
    """Remove expired tokens, some of them if there are many. The reply is whether others may remain."""
    expired = [token.token_id for token in image.delegation_tokens.values() if is_expired(token, now_ms)]
    records = tuple(map(RemoveDelegationTokenRecord, expired[:MAX_EXPIRED]))
    return RecordDecision(records, len(expired) > MAX_EXPIRED, is_atomic=False)


def is_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    """Return whether a token is not valid any more."""
    return min(token.max_timestamp, token.expiration_timestamp) < now_ms


def find_token(
    tokens: Iterable[DelegationTokenRecord], secret_key: str, token_mac: bytes
) -> DelegationTokenRecord | None:
    """Return the token of an HMAC. Each token costs one HMAC, about 2 µs."""
    for token in tokens:
        if hmac.compare_digest(token_hmac(secret_key, token.token_id), token_mac):
            return token
    return None


def _unavailable(image: MetadataImage, settings: TokenSettings) -> ErrorCode | None:
    if settings.secret_key is None:
        return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    return ErrorCode.UNSUPPORTED_VERSION if (image.metadata_version or 0) < TOKENS_SINCE else None


def _found(image: MetadataImage, settings: TokenSettings, token_mac: bytes) -> DelegationTokenRecord | ErrorCode:
    """Return the token of an HMAC."""
    if (error := _unavailable(image, settings)) is not None:
        return error
    token = find_token(image.delegation_tokens.values(), settings.secret_key or "", token_mac)
    return ErrorCode.DELEGATION_TOKEN_NOT_FOUND if token is None else token


def _may_change(token: DelegationTokenRecord, requester: str) -> bool:
    return requester in {token.owner, *token.renewers}


def _expires(token: DelegationTokenRecord, timestamp_ms: int) -> RecordDecision:
    expiration = min(token.max_timestamp, timestamp_ms)
    return RecordDecision((replace(token, expiration_timestamp=expiration),), expiration)


def _later(now_ms: int, duration_ms: int) -> int:
    return min(INT64_MAX, now_ms + duration_ms)
