"""Connection pool: one connection per Cluster, opened at first use and replaced when its address or Secrets change.

After a failure to connect or authenticate, a connection rejects calls for some time: a thousand Topics of a dead
cluster cause one attempt, not a thousand.
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
    BadCredentialsError,
    CallRefusedError,
    ClusterUnreachableError,
    ConnectionRejectedError,
    ControllerUnavailableError,
)
from kafka_operator.decide.kafka.kafka_errors import message_of, reason_of
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.security import bad_part
from kafka_operator.engine.cache import Cache
from kafka_operator.engine.credentials import Credentials
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.security import Security
from reconciler.engine.retries import JITTER

FIRST_BACKOFF_S = 0.5
"""How long a connection rejects calls after the first failure."""

BACKOFF_CAP_S = 5.0
"""Maximum of that time: a cluster that is back is noticed within it."""

UNREACHABLE = "ClusterUnreachable"

UNREACHABLE_REASONS = {UNREACHABLE, "AuthenticationFailed", "TlsFailed"}
"""Reasons for which a cluster is not expected back when its Cluster is being deleted."""

T = TypeVar("T")
Connect = Callable[[Sequence[str], Security], Admin]
"""Creates a connection, which is opened at its first call; BadCredentialsError when a part of the Security is invalid,
ValueError for a server that is not HOST:PORT."""

log = logging.getLogger(__name__)


class ClusterUnavailableError(Exception):
    """A cluster could not be used; `unavailable` has reason and message for the Ready condition."""

    def __init__(self, unavailable: Unavailable) -> None:
        super().__init__(unavailable.message)
        self.unavailable = unavailable


class PooledConnection:
    """One connection, and the time until which it rejects calls."""

    def __init__(
        self,
        ref: ClusterRef,
        bootstrap_servers: Sequence[str],
        security: Security,
        admin: Admin,
        clock: Callable[[], float],
    ) -> None:
        self.ref = ref
        self.bootstrap_servers = tuple(bootstrap_servers)
        self.security = security
        self._admin = admin
        self._clock = clock
        self._failures = 0
        self._backoff_until_s = 0.0
        self._unavailable = self._unreachable()

    def matches(self, bootstrap_servers: Sequence[str], security: Security) -> bool:
        """Return whether the connection has this address and these credentials."""
        return self.bootstrap_servers == tuple(bootstrap_servers) and self.security == security

    async def use(self, call: Callable[[Admin], Awaitable[T]], rng: random.Random) -> T:
        """Make a call; ClusterUnavailableError when the cluster cannot be used."""
        if self._clock() < self._backoff_until_s:
            raise ClusterUnavailableError(self._unavailable)
        try:
            answer = await call(self._admin)
        except (ClusterUnreachableError, ConnectionRejectedError) as error:
            self._back_off(error, rng)
            raise ClusterUnavailableError(self._unavailable) from error
        except AdminError as error:
            log.info("Admin request failed", extra={"cluster": str(self.ref), "error": str(error)})
            raise ClusterUnavailableError(_unavailable(error)) from error
        if self._failures:
            log.info("Cluster reachable again", extra={"cluster": str(self.ref)})
        self._failures = 0
        return answer

    async def close(self) -> None:
        """Close the connection."""
        await self._admin.close()

    def _back_off(self, error: ClusterUnreachableError | ConnectionRejectedError, rng: random.Random) -> None:
        """Reject calls for some time. The message of the first failure of a kind is kept, to avoid status changes."""
        delay_s = min(BACKOFF_CAP_S, FIRST_BACKOFF_S * 2.0 ** min(self._failures, 10))
        self._backoff_until_s = self._clock() + delay_s * rng.uniform(1 - JITTER, 1 + JITTER)
        unavailable = (
            Unavailable(error.reason, error.message)
            if isinstance(error, ConnectionRejectedError)
            else self._unreachable()
        )
        if self._failures == 0 or unavailable.reason != self._unavailable.reason:
            log.warning("Cluster unreachable", extra={"cluster": str(self.ref), "error": str(error)})
            self._unavailable = unavailable
        self._failures += 1

    def _unreachable(self) -> Unavailable:
        servers = ", ".join(self.bootstrap_servers)
        return Unavailable(UNREACHABLE, f"No broker of Cluster {self.ref.name} responds at {servers}.")


class ConnectionPool:
    """The connections of all Clusters."""

    def __init__(
        self,
        cache: Cache,
        credentials: Credentials,
        connect: Connect,
        clock: Callable[[], float],
        rng: random.Random,
    ) -> None:
        self._cache = cache
        self._credentials = credentials
        self._connect = connect
        self._clock = clock
        self._rng = rng
        self._connections: dict[ClusterRef, PooledConnection] = {}

    async def use(self, ref: ClusterRef, call: Callable[[Admin], Awaitable[T]]) -> T:
        """Make a call to a cluster; ClusterUnavailableError when it cannot be used."""
        cluster = self._cache.cluster(ref)
        if cluster is None:
            message = f"Namespace {ref.namespace} has no Cluster {ref.name}."
            raise ClusterUnavailableError(Unavailable("ClusterNotFound", message, leaving=True))
        security = await self._credentials.of(cluster)
        if isinstance(security, Unavailable):
            raise ClusterUnavailableError(security)
        connection = await self._connection(cluster, security)
        try:
            return await connection.use(call, self._rng)
        except ClusterUnavailableError as error:
            if isinstance(error.__cause__, ConnectionRejectedError):
                self._credentials.invalidate(ref)
            if cluster.metadata.deleted is None or error.unavailable.reason not in UNREACHABLE_REASONS:
                raise
            raise ClusterUnavailableError(replace(error.unavailable, leaving=True)) from error

    async def _connection(self, cluster: Cluster, security: Security) -> PooledConnection:
        """Return the current connection, or a new one if the Cluster has changed."""
        ref, servers = cluster.ref, cluster.bootstrap_servers
        old = self._connections.get(ref)
        if old is not None and old.matches(servers, security):
            return old
        try:
            admin = self._connect(servers, security)
        except BadCredentialsError as error:
            raise ClusterUnavailableError(bad_part(cluster, error.part, str(error))) from error
        except ValueError as error:  # the schema of a Cluster admits ports such as 99999
            raise ClusterUnavailableError(Unavailable(UNREACHABLE, f"spec.bootstrapServers: {error}.")) from error
        connection = self._connections[ref] = PooledConnection(ref, servers, security, admin, self._clock)
        if old is not None:  # after the new one is in its place: another batch may use it in the meantime
            log.info("Replaced connection after configuration change", extra={"cluster": str(ref)})
            await old.close()
        return connection

    async def drop(self, ref: ClusterRef) -> None:
        """Close the connection of a deleted Cluster."""
        self._credentials.forget(ref)
        connection = self._connections.pop(ref, None)
        if connection is not None:
            await connection.close()

    async def close(self) -> None:
        """Close all connections."""
        for ref in list(self._connections):
            await self.drop(ref)


def _unavailable(error: AdminError) -> Unavailable:
    if isinstance(error, CallRefusedError):
        return Unavailable(reason_of(error.failure), message_of(error.failure))
    assert isinstance(error, ControllerUnavailableError), error
    return Unavailable("ControllerUnavailable", "The cluster's controller does not respond.", definite=False)
