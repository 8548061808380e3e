"""Controller mutation quotas for the requests that the controller answers itself (KIP-599).

Quotas are read from ZooKeeper, where AlterClientQuotas keeps them; the buckets are in memory, as Kafka's controller keeps them,
so a controller that takes over begins with full ones. Unlike a broker the controller does not mute the connection for the
throttle time: callers of versions that cannot be refused get the throttle time in the answer.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from controller_core.decisions.topics import TopicCreation
from controller_core.model import events
from controller_core.model.quota import MutationAllowance, QuotaEntity
from controller_core.rules.client_quotas import quota_values
from controller_core.rules.mutation_quota import EXCEEDED, QUOTA, MutationLimit, TokenBucket, find_limit, quota_entities
from controller_core.shell.active import ActiveController
from controller_core.shell.store import EntityConfigStore
from kafka_node.context import RequestContext
from kafka_node.errors import Failure

log = logging.getLogger(__name__)

KNOWN_FOR_S = 1.0
"""How long a caller's quota is taken as read: a caller that is refused sends again at once, and each read is ZooKeeper's work."""
MAX_CALLERS = 10_000
"""Callers whose quota and bucket are kept, the latest ones: client ids are chosen by clients, as many as they like."""


@dataclass(slots=True)
class Bucket:
    """The bucket of a user, a client id or both."""

    state: TokenBucket
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Requests of one bucket are decided one after another: each must see what the one before has spent."""


class MutationQuotas:
    """All callers' quotas and buckets."""

    def __init__(self, configs: EntityConfigStore | None, clock: Callable[[], float] = time.monotonic) -> None:
        """None: there are no quotas."""
        self._configs = configs
        self._clock = clock
        self._limits: OrderedDict[tuple[str, str], tuple[float, MutationLimit | None]] = OrderedDict()
        """By user and client id: until when it counts, and the quota."""
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    async def spender(self, context: RequestContext, strict_from: int) -> "Spender":
        """Find the quota of a request's sender; versions from `strict_from` on can be refused."""
        if self._configs is None:
            return Spender(None, None, self._clock)
        user, client_id = context.principal.partition(":")[2], context.client_id or ""
        limit = await self._limit(self._configs, user, client_id)
        is_strict = context.api_version >= strict_from
        return Spender(limit, self._bucket(limit), self._clock, is_strict=is_strict)

    async def _limit(self, configs: EntityConfigStore, user: str, client_id: str) -> MutationLimit | None:
        known = self._limits.get((user, client_id))
        if known is not None and self._clock() < known[0]:
            return known[1]
        rates = await _read_rates(configs, [entity for entity, _ in quota_entities(user, client_id)])
        if isinstance(rates, Failure):
            log.warning(
                "Failed to read mutation quotas; the last known ones apply",
                extra={"user": user, "client_id": client_id, "why": rates.message},
            )
            limit = None if known is None else known[1]
        else:
            limit = find_limit(user, client_id, rates)
        self._limits[user, client_id] = (self._clock() + KNOWN_FOR_S, limit)
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


class Spender:
    """One request's use of its sender's quota."""

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
        """Have an event decided within the quota; `mutations` counts those in the results."""
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
        """Tell for how long the caller is to send nothing, as of now."""
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


async def _read_rates(configs: EntityConfigStore, entities: list[QuotaEntity]) -> dict[QuotaEntity, float] | Failure:
    """Read the quotas of entities; those without one are left out."""
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
