"""Reassignments owned by Topics and Clusters: creation, and cancellation when the desired state changes.

Responses of the API server do not update the cache: the watch delivers the object, and enqueues the Reassignment.
"""

from __future__ import annotations

import logging

from kafka_operator import kinds
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.decide.topics.topic_replication import POLL_INTERVAL_S
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.reassignment_terms import Action
from kafka_operator.resources.topic import Topic
from reconciler.decide.steps import RETRY_LATER_S, RETRY_SOON_S, Retry, Wait
from reconciler.kube.port import ConflictError, Kube, NotFoundError, RefusedError, UnavailableError
from reconciler.names import Key
from reconciler.resources.metadata import RawObject, controller_reference

log = logging.getLogger(__name__)


class OwnedReassignments:
    """Creates and cancels Reassignments for their owners."""

    def __init__(self, kube: Kube) -> None:
        self._kube = kube

    async def carry_out(self, owner: Topic | Cluster, step: CreateReassignment | CancelReassignment) -> Wait | Retry:
        """Carry out a step; the owner is reconciled again in any case."""
        key = Key(kinds.REASSIGNMENT, owner.key.namespace, step.name)
        try:
            if isinstance(step, CreateReassignment):
                await self._kube.create_object(key, _owned_by(owner, step.spec))
            else:
                version = {"resourceVersion": step.resource_version}
                await self._kube.patch_object(key, {"metadata": version, "spec": {"action": Action.CANCEL.value}})
        except (ConflictError, NotFoundError, UnavailableError) as error:
            # An object of this name exists, or it has changed or is deleted: the watch delivers that.
            log.info("Failed to write Reassignment; retrying", extra={"resource": str(key), "error": str(error)})
            return Retry(RETRY_SOON_S)
        except RefusedError as error:
            log.warning("API server rejected Reassignment", extra={"resource": str(key), "error": str(error)})
            return Retry(RETRY_LATER_S)
        return Wait(POLL_INTERVAL_S)


def _owned_by(owner: Topic | Cluster, spec: RawObject) -> RawObject:
    """Return a new object's metadata and spec."""
    return {"metadata": {"ownerReferences": [controller_reference(owner.metadata)]}, "spec": spec}
