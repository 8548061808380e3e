"""RBAC rights for running SparkApplications."""

from __future__ import annotations

from reconciler.names import GROUP
from reconciler.rights import Right
from spark_operator import kinds
from spark_operator.decide.kubeflow import GROUP as KUBEFLOW
from spark_operator.decide.kubeflow import PLURAL


def spark_rights(namespace: str | None, *, kubeflow: bool) -> list[Right]:
    """Return the rights in a namespace where applications run; no pod may be created in others.

    `kubeflow` is whether resources of Kubeflow's operator are created.
    """
    rights = [Right(verb, "", "pods", namespace=namespace) for verb in ("create", "delete", "get", "list")]
    rights.append(Right("get", "", "pods", "log", namespace))
    # Runs of schedules, and applications whose time to live has expired.
    applications = kinds.SPARK_APPLICATION.plural
    rights += [Right(verb, GROUP, applications, namespace=namespace) for verb in ("create", "delete")]
    if kubeflow:
        rights += [Right(verb, KUBEFLOW, PLURAL, namespace=namespace) for verb in ("get", "create", "patch")]
    return rights
