"""Required RBAC rights of the operator, and their check at the start.

    rule of RBAC       (verb, resource of an API group) in a namespace, or in all of them
    checked by         SelfSubjectAccessReview, which every authenticated user may create

An operator that does not start is better than one that is denied a request in the middle of a roll. The right to
get Secrets is not checked: Clusters name them, and a denied Secret is reported in the condition of its Cluster.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kafka_operator.settings import OperatorSettings
from reconciler.decide.shards import lease_names
from reconciler.kube.client import KubeClient
from reconciler.kube.port import KubeError, RefusedError
from reconciler.names import GROUP, Kind

MAX_PARALLEL = 8
"""Concurrent reviews: some 20 for each namespace, a millisecond each."""

RETRY_S = 2.0
"""Retry delay of reviews without a response."""

LEASES = "coordination.k8s.io"
KUBEFLOW = "sparkoperator.k8s.io"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


log = logging.getLogger(__name__)


class MissingRightsError(Exception):
    """Rights are missing; the message names each verb and resource."""


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """One verb on one resource; `namespace` is None for all of them, and for what has none."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str | None = None
    name: str = ""
    """The one object of that name; empty for all of them."""

    def __str__(self) -> str:
        name = f"{self.resource}.{self.group}" if self.group else self.resource
        name += f"/{self.subresource}" if self.subresource else ""
        name += f" {self.name}" if self.name else ""
        place = "all namespaces" if self.namespace is None else f"namespace {self.namespace}"
        return f"{self.verb} on {name} in {place}" if self.resource != "nodes" else f"{self.verb} on nodes"


def needed_rights(settings: OperatorSettings) -> list[Right]:
    """Return all that these settings need."""
    namespaces: Sequence[str | None] = settings.namespaces or (None,)
    rights = [right for namespace in namespaces for right in _in_namespace(namespace, settings)]
    if settings.spark:
        spark: Sequence[str | None] = settings.spark_namespaces or namespaces
        rights += [right for namespace in spark for right in _for_spark(namespace, settings)]
    rights = list(dict.fromkeys(rights))
    if settings.pods and settings.drain:
        rights.append(Right("get", "", "nodes"))
    if settings.webhook_approvals:
        rights.append(Right("create", "authorization.k8s.io", "subjectaccessreviews"))
    if settings.own_namespace is not None:
        rights.append(Right("get", "", "namespaces", namespace=settings.own_namespace))
    if settings.lease is not None:
        lease = Right("create", LEASES, "leases", namespace=settings.own_namespace)
        rights.append(lease)
        names = lease_names(settings.lease, settings.shards)
        rights += [replace(lease, verb=verb, name=name) for name in names for verb in ("get", "patch")]
    return rights


def _in_namespace(namespace: str | None, settings: OperatorSettings) -> list[Right]:
    verbs = ("get", "list", "watch", "patch")
    rights = [Right(verb, GROUP, kind.plural, namespace=namespace) for kind in settings.kinds for verb in verbs]
    rights += [Right("patch", GROUP, kind.plural, "status", namespace) for kind in settings.kinds]
    # Reassignments of Topics whose replication factor changes, and of Clusters with autoRebalance; some of them run without approval.
    rights += [Right(verb, GROUP, Kind.REASSIGNMENT.plural, namespace=namespace) for verb in ("create", "approve")]
    # Their time to live (ttlSecondsAfterFinished).
    rights += [Right("delete", GROUP, kind.plural, namespace=namespace) for kind in (Kind.REASSIGNMENT, Kind.ELECTION)]
    rights.append(Right("create", "", "events", namespace=namespace))
    rights += [Right(verb, "", "configmaps", namespace=namespace) for verb in ("get", "create")]  # plans
    if settings.pods:
        rights.append(Right("get", "apps", "statefulsets", namespace=namespace))
        rights.append(Right("patch", "apps", "statefulsets", "scale", namespace))
        rights += [Right(verb, "", "pods", namespace=namespace) for verb in ("delete", "list")]
    return rights


def _for_spark(namespace: str | None, settings: OperatorSettings) -> list[Right]:
    """Return the rights for running SparkApplications: in other namespaces no pod may be created."""
    rights = [Right(verb, "", "pods", namespace=namespace) for verb in ("create", "delete", "get", "list")]
    rights.append(Right("get", "", "pods", "log", namespace))
    # Runs of schedules, and applications whose time to live has expired.
    rights += [Right(verb, GROUP, Kind.SPARK_APPLICATION.plural, namespace=namespace) for verb in ("create", "delete")]
    if settings.spark_operator:
        kubeflow = ("get", "create", "patch")
        rights += [Right(verb, KUBEFLOW, "sparkapplications", namespace=namespace) for verb in kubeflow]
    return rights


async def require_rights(client: KubeClient, rights: Sequence[Right]) -> None:
    """Check each right until it is answered; MissingRightsError names the missing ones.

    RefusedError when the check itself is denied.
    """
    parallel = asyncio.Semaphore(MAX_PARALLEL)

    async def allowed(right: Right) -> bool:
        async with parallel:
            while True:
                try:
                    answer = await client.call("review_access", "POST", REVIEWS, _review(right))
                    return bool(answer["status"]["allowed"])
                except RefusedError:
                    raise
                except KubeError as error:  # other errors may pass
                    log.warning(
                        "Failed to check permission; retrying", extra={"right": str(right), "error": str(error)}
                    )
                    await asyncio.sleep(RETRY_S)

    answers = await asyncio.gather(*(allowed(right) for right in rights))
    missing = [str(right) for right, answer in zip(rights, answers, strict=True) if not answer]
    if missing:
        raise MissingRightsError(f"missing permissions (RBAC): {'; '.join(missing)}")


def _review(right: Right) -> dict[str, object]:
    attributes = {
        "verb": right.verb,
        "group": right.group,
        "resource": right.resource,
        "subresource": right.subresource,
        "namespace": right.namespace or "",
        "name": right.name,
    }
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
