"""Controller mutation quotas (KIP-599): selection of a caller's quota, token buckets, and accounting of a request.

A quota is a rate of partitions per second. Its bucket holds the tokens of 11 seconds; the request that uses it up may take it below
0. Further requests are then refused, or only throttled if their version has no error code for it, until the bucket is back at 0.

Source: ControllerMutationQuotaManager, TokenBucket, ClientQuotaManager.DefaultQuotaCallback, ZkAdminManager (Kafka 3.9).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.model.quota import DEFAULT, MutationAllowance, QuotaEntity
from kafka_wire import ErrorCode, Failure

QUOTA = "controller_mutation_rate"
BURST_S = 11.0
"""Seconds of the rate that a full bucket holds: controller.quota.window.num (11) of controller.quota.window.size.seconds (1)."""
MAX_THROTTLE_MS = 2**31 - 1
"""The field is an int32."""
EXCEEDED = Failure(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")

BucketKey = tuple[str, str]
"""User and client id that share a bucket; an empty string is ignored."""


@dataclass(frozen=True, slots=True)
class MutationLimit:
    """Quota that applies to a caller, and its bucket."""

    key: BucketKey
    rate: float
    """Mutations per second."""


def quota_entities(user: str, client_id: str) -> tuple[tuple[QuotaEntity, BucketKey], ...]:
    """Return the entities whose quota may apply to a caller, in Kafka's order of precedence, with the bucket of each."""
    return (
        (QuotaEntity(user, client_id), (user, client_id)),
        (QuotaEntity(user, DEFAULT), (user, client_id)),
        (QuotaEntity(user), (user, "")),
        (QuotaEntity(DEFAULT, client_id), (user, client_id)),
        (QuotaEntity(DEFAULT, DEFAULT), (user, client_id)),
        (QuotaEntity(DEFAULT), (user, "")),
        (QuotaEntity(client_id=client_id), ("", client_id)),
        (QuotaEntity(client_id=DEFAULT), ("", client_id)),
    )


def find_limit(user: str, client_id: str, rates: Mapping[QuotaEntity, float]) -> MutationLimit | None:
    """Return the quota that applies to a caller; None if there is none.

    >>> find_limit("alice", "cli", {QuotaEntity(DEFAULT): 2.0, QuotaEntity(client_id="cli"): 1.0})
    MutationLimit(key=('alice', ''), rate=2.0)
    """
    for entity, key in quota_entities(user, client_id):
        rate = rates.get(entity)
        if rate is not None:
            # An infinite rate is no limit, and in Java NaN is not below 0.
            return MutationLimit(key, max(0.0, rate)) if math.isfinite(rate) else None
    return None


@dataclass(frozen=True, slots=True)
class TokenBucket:
    """Tokens at a time, in milliseconds of any monotonic clock."""

    tokens: float
    at_ms: float

    @classmethod
    def full(cls, rate: float, now_ms: float) -> "TokenBucket":
        """Return a full bucket."""
        return cls(rate * BURST_S, now_ms)

    def refilled(self, rate: float, now_ms: float) -> "TokenBucket":
        """Return the bucket with the tokens of the elapsed time added, up to a full bucket."""
        earned = rate * (now_ms - self.at_ms) / 1000
        return TokenBucket(min(rate * BURST_S, self.tokens + earned), now_ms)

    def spend(self, mutations: int) -> "TokenBucket":
        """Return the bucket after a number of mutations; its tokens may be negative."""
        return TokenBucket(self.tokens - mutations, self.at_ms)

    def throttle_ms(self, rate: float) -> int:
        """Return the time in milliseconds until the bucket is back at 0."""
        if self.tokens >= 0:
            return 0
        if rate <= 0:
            return MAX_THROTTLE_MS
        return math.floor(min(float(MAX_THROTTLE_MS), -self.tokens / rate * 1000 + 0.5))


class Spending:
    """Mutations of one request, counted while it is decided; each decision creates its own counter."""

    def __init__(self, allowance: MutationAllowance | None) -> None:
        """Start with the tokens of an allowance; None: there is no quota."""
        self._is_strict = allowance is not None and allowance.is_strict
        self._tokens = math.inf if allowance is None else allowance.tokens

    def take(self, mutations: int) -> Failure | None:
        """Count mutations; return the error if the quota is used up."""
        if self._is_strict and self._tokens < 0:
            return EXCEEDED
        self._tokens -= mutations
        return None
