"""RBAC rights that the operator needs with its settings; checked at the start.

The right to get Secrets is not checked: Clusters name them, and a denied Secret is reported in the condition of its Cluster.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_operator import kinds
from kafka_operator.settings import OperatorSettings
from reconciler.decide.shards import lease_names
from reconciler.names import GROUP
from reconciler.rights import Right, rights_of_kinds, rights_of_leases
from spark_operator.kinds import KINDS as SPARK_KINDS
from spark_operator.rights import spark_rights


def needed_rights(settings: OperatorSettings) -> list[Right]:
    """Return all that these settings need."""
    namespaces: Sequence[str | None] = settings.namespaces or (None,)
    served = (*kinds.KINDS, *SPARK_KINDS) if settings.spark else kinds.KINDS
    rights = [right for namespace in namespaces for right in rights_of_kinds(served, namespace)]
    rights += [right for namespace in namespaces for right in _kafka_rights(namespace, pods=settings.pods)]
    if settings.spark:
        jobs: Sequence[str | None] = settings.spark_namespaces or namespaces
        rights += [right for namespace in jobs for right in spark_rights(namespace, kubeflow=settings.spark_operator)]
    rights = list(dict.fromkeys(rights))
    if settings.pods and settings.drain:
        rights.append(Right("get", "", "nodes"))
    if settings.webhook_approvals:
        rights.append(Right("create", "authorization.k8s.io", "subjectaccessreviews"))
    if settings.own_namespace is not None:
        rights.append(Right("get", "", "namespaces", namespace=settings.own_namespace))
    if settings.lease is not None:
        rights += rights_of_leases(lease_names(settings.lease, settings.shards), settings.own_namespace)
    return rights


def _kafka_rights(namespace: str | None, *, pods: bool) -> list[Right]:
    # Reassignments of Topics whose replication factor changes, and of Clusters with autoRebalance; some of them run without approval.
    rights = [Right(verb, GROUP, kinds.REASSIGNMENT.plural, namespace=namespace) for verb in ("create", "approve")]
    # Their time to live (ttlSecondsAfterFinished).
    expiring = (kinds.REASSIGNMENT, kinds.ELECTION)
    rights += [Right("delete", GROUP, kind.plural, namespace=namespace) for kind in expiring]
    rights += [Right(verb, "", "configmaps", namespace=namespace) for verb in ("get", "create")]  # plans
    if pods:
        rights.append(Right("get", "apps", "statefulsets", namespace=namespace))
        rights.append(Right("patch", "apps", "statefulsets", "scale", namespace))
        rights += [Right(verb, "", "pods", namespace=namespace) for verb in ("delete", "list")]
    return rights
