"""Namespace teardown: an operator that is deleted with its namespace removes its finalizers there.

Since Kubernetes 1.34 the pods of a namespace are deleted before its other resources (ordered namespace deletion), so the operator that
would release its resources no longer runs. Therefore it checks at shutdown whether its namespace is being deleted, and removes the
finalizers first. What they protect is kept, such as Kafka topics. Events cannot be created in such a namespace; the log reports the removal.
"""

from __future__ import annotations

import asyncio
import logging

from reconciler.decide.steps import Release
from reconciler.engine.kinds import Kinds
from reconciler.engine.writer import Writer
from reconciler.kube.port import Kube, KubeError
from reconciler.names import Kind
from reconciler.resources.metadata import RawObject

MAX_ROUNDS = 3
"""Number of lists: one, and two more for conflicts between list and write."""

TEARDOWN_TIMEOUT_S = 12.0
"""Time limit: with everything else at shutdown, within the 20 s after which the process is killed."""

log = logging.getLogger(__name__)


class NamespaceTeardown:
    """Removes finalizers in a namespace that is being deleted."""

    def __init__(self, kube: Kube, kinds: Kinds, writer: Writer) -> None:
        self._kube = kube
        self._kinds = kinds
        self._writer = writer

    async def remove_finalizers(self, namespace: str) -> None:
        """Remove all finalizers in a namespace if it is being deleted; call it after everything else has stopped."""
        try:
            async with asyncio.timeout(TEARDOWN_TIMEOUT_S):
                if await self._kube.namespace_ends(namespace):
                    await self._remove_all(namespace)
        except (KubeError, TimeoutError) as error:
            log.warning(
                "Failed to remove finalizers during namespace deletion",
                extra={"namespace": namespace, "error": str(error) or "deadline exceeded"},
            )

    async def _remove_all(self, namespace: str) -> None:
        for _ in range(MAX_ROUNDS):
            results = await asyncio.gather(*(self._remove_from_kind(kind, namespace) for kind in self._kinds))
            log.warning(
                "Namespace is being deleted; removed finalizers",
                extra={"namespace": namespace, "resources": sum(results)},
            )
            if not any(results):
                return

    async def _remove_from_kind(self, kind: Kind, namespace: str) -> int:
        """Return how many resources had the finalizer."""
        held = [
            item
            for raw in await self._listed(kind, namespace)
            if (item := self._kinds.read(kind, raw)).metadata.has_finalizer
        ]
        await asyncio.gather(*(self._writer.carry_out(item, Release()) for item in held))
        return len(held)

    async def _listed(self, kind: Kind, namespace: str) -> tuple[RawObject, ...]:
        return (await self._kube.list_objects(kind, namespace)).objects
