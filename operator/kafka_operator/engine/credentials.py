"""Credentials from the Secrets of Clusters, polled every few seconds, so that rotation needs no restart.

Secrets are read by name and neither listed nor watched, so that the right to get these Secrets suffices. Their content is never logged.
The content read last remains in use while the API server is unreachable, and for a Cluster that is being deleted, whose Secret may have
been deleted first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass

from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.security import (
    aws_identity_refused,
    read_security,
    secret_not_allowed,
    secret_not_found,
    secret_not_read,
)
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.security import Security
from reconciler.kube.port import Kube, KubeError, NotFoundError, RefusedError

MAX_AGE_S = 5.0
"""Maximum age of credentials in use: half of a Cluster's poll interval, so that each poll reads them again. That is
one small request each 10 s for each Secret."""


@dataclass(slots=True)
class _Held:
    """Credentials of one Cluster; `wanted` is the spec that they were read for."""

    wanted: object
    read_s: float
    found: Security | Unavailable
    last_good: Security | None


class Credentials:
    """Reads Secrets. Clusters in `aws_identity_namespaces` may use the AWS identity of this process."""

    def __init__(self, kube: Kube, clock: Callable[[], float], aws_identity_namespaces: Collection[str] = ()) -> None:
        self._kube = kube
        self._clock = clock
        self._aws_identity_namespaces = aws_identity_namespaces
        self._held: dict[ClusterRef, _Held] = {}
        self._locks: dict[ClusterRef, asyncio.Lock] = {}

    async def of(self, cluster: Cluster) -> Security | Unavailable:
        """Return the credentials of a Cluster's connection, or why they are missing."""
        refused = aws_identity_refused(cluster, self._aws_identity_namespaces)
        if refused is not None:
            return refused
        if not cluster.secret_names:
            return read_security(cluster, {})
        async with self._locks.setdefault(cluster.ref, asyncio.Lock()):
            held = self._held.get(cluster.ref)
            wanted = (cluster.tls, cluster.authentication)
            if held is not None and held.wanted != wanted:
                held = None
            leaving = cluster.metadata.deleted is not None
            if held is not None and (held.last_good if leaving else self._clock() - held.read_s < MAX_AGE_S):
                return held.last_good if leaving and held.last_good is not None else held.found
            last_good = None if held is None else held.last_good
            found = await self._read(cluster, last_good)
            good = found if isinstance(found, Security) else last_good
            self._held[cluster.ref] = _Held(wanted, self._clock(), found, good)
            return found

    def invalidate(self, ref: ClusterRef) -> None:
        """Read a Cluster's Secrets again at the next call, because Kafka rejected their content."""
        held = self._held.get(ref)
        if held is not None:
            held.read_s = self._clock() - MAX_AGE_S

    def forget(self, ref: ClusterRef) -> None:
        """Remove the credentials of a deleted Cluster."""
        self._held.pop(ref, None)
        self._locks.pop(ref, None)

    async def _read(self, cluster: Cluster, last_good: Security | None) -> Security | Unavailable:
        secrets = {}
        for name in cluster.secret_names:
            try:
                secrets[name] = await self._kube.get_secret(cluster.key.namespace, name)
            except NotFoundError:
                return secret_not_found(cluster, name)
            except RefusedError:
                return secret_not_allowed(cluster, name)
            except KubeError:
                return last_good or secret_not_read(cluster, name)
        return read_security(cluster, secrets)
