"""Controller mutation quotas of the requests that the controller answers itself (KIP-599).

Quotas are read from the store, where AlterClientQuotas writes them. The token buckets are in memory, as in Kafka's controller, so a new
controller begins with full buckets. Unlike a broker the controller does not mute the connection for the throttle time: callers with
versions that cannot be refused get the throttle time in the response.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from controller_core.decisions.topics import TopicCreation
from controller_core.model import events
from controller_core.model.quota import MutationAllowance, QuotaEntity
from controller_core.rules.client_quotas import quota_values
from controller_core.rules.mutation_quota import EXCEEDED, QUOTA, MutationLimit, TokenBucket, find_limit, quota_entities
from controller_core.shell.active import ActiveController
from controller_core.shell.store import Config
from kafka_node.context import RequestContext
from kafka_wire import Failure

log = logging.getLogger(__name__)

QUOTA_CACHE_S = 1.0
"""Time for which a quota is cached: a refused caller retries at once, and each read is a request to the store."""
MAX_CALLERS = 10_000
"""Cached quotas and buckets, least recently used evicted: clients can choose any number of client ids."""


@dataclass(slots=True)
class Bucket:
    """The token bucket of a user, a client id or both."""

    state: TokenBucket
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Serialises requests of the bucket: each must see what the previous one has spent."""


class QuotaSource(Protocol):
    """Where the quotas are; an `EntityConfigStore` is one."""

    async def read(self, entities: Sequence[QuotaEntity]) -> dict[QuotaEntity, Config] | Failure:
        """Read configurations; an entity without a configuration gets an empty one."""

    def may_have_config(self, entity: QuotaEntity) -> bool:
        """Return whether there can be a configuration under these names."""


class MutationQuotas:
    """Quotas and buckets of all callers."""

    def __init__(self, configs: QuotaSource | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Without a store there are no quotas."""
        self._configs = configs
        self._clock = clock
        self._limits: OrderedDict[tuple[str, str], tuple[float, MutationLimit | None]] = OrderedDict()
        """By user and client id: expiry of the cache entry, and the quota."""
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    async def for_request(self, context: RequestContext, strict_from: int) -> "RequestQuota":
        """Return the quota for a request; versions from `strict_from` on can be refused."""
        if self._configs is None:
            return RequestQuota(None, None, self._clock)
        user, client_id = context.principal.partition(":")[2], context.client_id or ""
        limit = await self._limit(self._configs, user, client_id)
        is_strict = context.api_version >= strict_from
        return RequestQuota(limit, self._bucket(limit), self._clock, is_strict=is_strict)

    async def _limit(self, configs: QuotaSource, user: str, client_id: str) -> MutationLimit | None:
        known = self._limits.get((user, client_id))
        if known is not None and self._clock() < known[0]:
            return known[1]
        rates = await _read_rates(configs, [entity for entity, _ in quota_entities(user, client_id)])
        if isinstance(rates, Failure):
            log.warning(
                "Failed to read mutation quotas; keeping the last known quotas",
                extra={"user": user, "client_id": client_id, "error": rates.message},
            )
            limit = None if known is None else known[1]
        else:
            limit = find_limit(user, client_id, rates)
        self._limits[user, client_id] = (self._clock() + QUOTA_CACHE_S, limit)
        self._limits.move_to_end((user, client_id))
        if len(self._limits) > MAX_CALLERS:
            self._limits.popitem(last=False)
        return limit

    def _bucket(self, limit: MutationLimit | None) -> Bucket | None:
        if limit is None:
            return None
        bucket = self._buckets.get(limit.key)
        if bucket is None:
            bucket = self._buckets[limit.key] = Bucket(TokenBucket.full(limit.rate, self._clock() * 1000))
        self._buckets.move_to_end(limit.key)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        return bucket


class RequestQuota:
    """Quota of one request's sender, as used by the request."""

    def __init__(
        self,
        limit: MutationLimit | None,
        bucket: Bucket | None,
        clock: Callable[[], float],
        *,
        is_strict: bool = False,
    ) -> None:
        self._limit = limit
        self._bucket = bucket
        self._clock = clock
        self._is_strict = is_strict
        self._throttled_until_ms = 0.0

    async def submit(
        self,
        active: ActiveController,
        event: events.CreateTopics | events.CreatePartitions | events.DeleteTopics,
        mutations: Callable[[Mapping[str, Any]], int],
    ) -> Mapping[str, Any]:
        """Process an event within the quota; `mutations` counts the mutations in the results."""
        limit, bucket = self._limit, self._bucket
        if limit is None or bucket is None:
            return await _submit(active, event)
        async with bucket.lock:
            bucket.state = bucket.state.refilled(limit.rate, self._now_ms())
            allowance = MutationAllowance(bucket.state.tokens, self._is_strict)
            results = await _submit(active, replace(event, allowance=allowance))
            now_ms = self._now_ms()
            bucket.state = bucket.state.refilled(limit.rate, now_ms).spend(mutations(results))
            if not self._is_strict or any(_failure(result) == EXCEEDED for result in results.values()):
                self._throttled_until_ms = now_ms + bucket.state.throttle_ms(limit.rate)
        return results

    def throttle_ms(self) -> int:
        """Return the time from now for which the caller should send nothing."""
        return max(0, round(self._throttled_until_ms - self._now_ms())) if self._throttled_until_ms else 0

    def _now_ms(self) -> float:
        return self._clock() * 1000


async def _submit(
    active: ActiveController, event: events.CreateTopics | events.CreatePartitions | events.DeleteTopics
) -> Mapping[str, Any]:
    results: Mapping[str, Any] = await active.submit(event)
    return results


def _failure(result: TopicCreation | Failure | None) -> Failure | None:
    return result.failure if isinstance(result, TopicCreation) else result


async def _read_rates(configs: QuotaSource, entities: list[QuotaEntity]) -> dict[QuotaEntity, float] | Failure:
    """Read the quotas of entities; entities without a quota are omitted."""
    read = await configs.read([entity for entity in entities if configs.may_have_config(entity)])
    if isinstance(read, Failure):
        return read
    rates: dict[QuotaEntity, float] = {}
    for entity, config in read.items():
        values = quota_values(entity, config)
        if isinstance(values, Failure):
            return values
        if QUOTA in values:
            rates[entity] = values[QUOTA]
    return rates
