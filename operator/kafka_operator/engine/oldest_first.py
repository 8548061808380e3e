"""Base of reconcilers that read a cluster once per batch and then process each resource, the oldest first.

The order makes the result deterministic for conflicting resources that are created together.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

from kafka_operator.resources.cluster_ref import ClusterRef
from kafka_operator.resources.election import Election
from kafka_operator.resources.reassignment import Reassignment
from reconciler.decide.steps import RETRY_LATER_S, RETRY_SOON_S, Done, Outcome, Retry
from reconciler.kube.port import KubeError
from reconciler.names import Key

log = logging.getLogger(__name__)

ItemT = TypeVar("ItemT", Reassignment, Election)
BatchT = TypeVar("BatchT")
"""State of the cluster during a batch."""


class OldestFirst(ABC, Generic[ItemT, BatchT]):
    """Reconciles each resource of a batch once; all of them refer to one Cluster."""

    async def reconcile(self, ref: ClusterRef, keys: Sequence[Key]) -> Mapping[Key, Outcome]:
        """Return the outcome for every key."""
        found = [item for key in keys if (item := self._find(key)) is not None]
        outcomes: dict[Key, Outcome] = {key: Done() for key in keys}
        for key in outcomes.keys() - {item.key for item in found}:
            self._forget(key)
        try:
            batch = await self._begin(ref, [item for item in found if not self._is_finished(item)])
        except KubeError:  # their stored plans could not be read
            return {key: Retry(RETRY_SOON_S) for key in keys}
        for item in sorted(found, key=lambda item: (item.metadata.created, item.metadata.uid)):
            try:
                outcomes[item.key] = await self._process(batch, item.key)
            except KubeError:
                outcomes[item.key] = Retry(RETRY_SOON_S)
            except Exception:  # a malformed status of one resource must not stop the others of its cluster
                log.exception("Failed to process resource", extra={"resource": str(item.key)})
                outcomes[item.key] = Retry(RETRY_LATER_S)
        return outcomes

    @abstractmethod
    def _find(self, key: Key) -> ItemT | None:
        """Return a resource from the cache."""

    @abstractmethod
    def _is_finished(self, item: ItemT) -> bool:
        """Return whether the resource is finished and needs no read of the cluster."""

    @abstractmethod
    async def _begin(self, ref: ClusterRef, unfinished: Sequence[ItemT]) -> BatchT:
        """Read the cluster for the resources that are not finished, if any; raises KubeError if that fails."""

    @abstractmethod
    async def _process(self, batch: BatchT, key: Key) -> Outcome:
        """Reconcile one resource; KubeError when its data could not be read or stored."""

    def _forget(self, key: Key) -> None:
        """Remove the state of a deleted resource."""
