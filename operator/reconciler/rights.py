"""Required RBAC rights of the operator, and their check at the start.

    rule of RBAC       (verb, resource of an API group) in a namespace, or in all of them
    checked by         SelfSubjectAccessReview, which every authenticated user may create

An operator that does not start is better than one that is denied a request in the middle of its work. Each operator lists the rights that
its kinds need in addition to those in `rights_of_kinds`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reconciler.kube.client import KubeClient
from reconciler.kube.port import KubeError, RefusedError
from reconciler.names import GROUP, Kind

MAX_PARALLEL = 8
"""Concurrent reviews: some 20 for each namespace, a millisecond each."""

RETRY_S = 2.0
"""Retry delay of reviews without a response."""

LEASES = "coordination.k8s.io"
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


def rights_of_kinds(kinds: Iterable[Kind], namespace: str | None) -> list[Right]:
    """Return what reconciling needs for every kind: to read and watch its resources, write their status, and create events."""
    served, verbs = tuple(kinds), ("get", "list", "watch", "patch")
    rights = [Right(verb, GROUP, kind.plural, namespace=namespace) for kind in served for verb in verbs]
    rights += [Right("patch", GROUP, kind.plural, "status", namespace) for kind in served]
    rights.append(Right("create", "", "events", namespace=namespace))
    return rights


def rights_of_leases(names: Iterable[str], namespace: str | None) -> list[Right]:
    """Return what holding Leases of these names needs."""
    lease = Right("create", LEASES, "leases", namespace=namespace)
    return [lease, *(replace(lease, verb=verb, name=name) for name in names for verb in ("get", "patch"))]


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
