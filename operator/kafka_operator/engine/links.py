"""Connections to Kafka clusters, one for each Cluster, opened at first use and renewed when its address changes.

When no broker answers, a link stays shut for a while: a thousand Topics of a dead cluster cost one attempt, not a thousand.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from kafka_operator.admin.port import (
    Admin,
    AdminError,
    CallRefusedError,
    ClusterUnreachableError,
    ControllerUnavailableError,
)
from kafka_operator.decide.kafka_errors import message_of, reason_of
from kafka_operator.decide.observed import Away
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.retries import JITTER
from kafka_operator.names import ClusterRef

SHUT_FIRST_S = 0.5
"""How long a link stays shut after the first failure."""

SHUT_CAP_S = 5.0
"""How long at most: so old may the news be that a cluster is back."""

UNREACHABLE = "ClusterUnreachable"

T = TypeVar("T")
Connect = Callable[[Sequence[str]], Admin]

log = logging.getLogger(__name__)


class AwayError(Exception):
    """A cluster could not be used; `away` says it in the words of the Ready condition."""

    def __init__(self, away: Away) -> None:
        super().__init__(away.message)
        self.away = away


class Link:
    """One connection, and whether it is worth trying."""

    def __init__(
        self, ref: ClusterRef, bootstrap_servers: Sequence[str], admin: Admin, clock: Callable[[], float]
    ) -> None:
        self.ref = ref
        self.bootstrap_servers = tuple(bootstrap_servers)
        self._admin = admin
        self._clock = clock
        self._failures = 0
        self._shut_until_s = 0.0

    async def use(self, call: Callable[[Admin], Awaitable[T]], rng: random.Random) -> T:
        """Make a call; AwayError when the cluster cannot be used."""
        if self._clock() < self._shut_until_s:
            raise AwayError(self._unreachable())
        try:
            answer = await call(self._admin)
        except ClusterUnreachableError as error:
            delay_s = min(SHUT_CAP_S, SHUT_FIRST_S * 2.0 ** min(self._failures, 10))
            self._shut_until_s = self._clock() + delay_s * rng.uniform(1 - JITTER, 1 + JITTER)
            if self._failures == 0:
                log.warning("cluster does not answer", extra={"cluster": str(self.ref), "error": str(error)})
            self._failures += 1
            raise AwayError(self._unreachable()) from error
        except AdminError as error:
            log.info("admin call failed", extra={"cluster": str(self.ref), "error": str(error)})
            raise AwayError(_away(error)) from error
        if self._failures:
            log.info("cluster answers again", extra={"cluster": str(self.ref)})
        self._failures = 0
        return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._admin.close()

    def _unreachable(self) -> Away:
        servers = ", ".join(self.bootstrap_servers)
        return Away(UNREACHABLE, f"No broker of Cluster {self.ref.name} answers at {servers}.")


class Links:
    """The connections of all Clusters."""

    def __init__(self, cache: Cache, connect: Connect, clock: Callable[[], float], rng: random.Random) -> None:
        self._cache = cache
        self._connect = connect
        self._clock = clock
        self._rng = rng
        self._links: dict[ClusterRef, Link] = {}

    async def use(self, ref: ClusterRef, call: Callable[[Admin], Awaitable[T]]) -> T:
        """Make a call to a cluster; AwayError when it cannot be used."""
        cluster = self._cache.cluster(ref)
        if cluster is None:
            message = f"Namespace {ref.namespace} has no Cluster {ref.name}."
            raise AwayError(Away("ClusterNotFound", message, leaving=True))
        link = self._links.get(ref)
        if link is None or link.bootstrap_servers != cluster.bootstrap_servers:
            old, admin = link, self._connect(cluster.bootstrap_servers)
            link = self._links[ref] = Link(ref, cluster.bootstrap_servers, admin, self._clock)
            if old is not None:  # after the new one is in its place: another lane may come by meanwhile
                await old.close()
        try:
            return await link.use(call, self._rng)
        except AwayError as error:
            if cluster.metadata.deleted is None or error.away.reason != UNREACHABLE:
                raise
            raise AwayError(replace(error.away, leaving=True)) from error

    async def drop(self, ref: ClusterRef) -> None:
        """Close the connection of a Cluster that is gone."""
        link = self._links.pop(ref, None)
        if link is not None:
            await link.close()

    async def close(self) -> None:
        """Close all connections."""
        for ref in list(self._links):
            await self.drop(ref)


def _away(error: AdminError) -> Away:
    if isinstance(error, CallRefusedError):
        return Away(reason_of(error.failure), message_of(error.failure))
    assert isinstance(error, ControllerUnavailableError), error
    return Away("ControllerUnavailable", "The cluster's controller does not answer.", definite=False)
