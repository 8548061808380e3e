"""Manifest of a driver pod: a pure function of the application and the number of the attempt.

The driver runs in client mode, so no Service and no ConfigMap is made: executors call the pod's address, and their template is an
annotation of the driver's pod that it sees as a file. Executors are owned by the driver's pod (spark.kubernetes.driver.pod.name), and
that by the application: deleting one deletes all that it owns. Everything fits the restricted Pod Security standard where the user's own
security contexts do not override it; the labels of a namespace decide what it admits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.names import GROUP
from reconciler.resources.metadata import RawObject, controller_reference
from spark_operator.decide.command import (
    OVERHEAD_FACTOR,
    POD_IP,
    TEMPLATE_PATH,
    driver_name,
    kubernetes_arguments,
    service_account,
)
from spark_operator.decide.memory import container_mebibytes
from spark_operator.names import SPARK_APPLICATION_LABEL, SPARK_ATTEMPT_LABEL, SPARK_ROLE_LABEL
from spark_operator.resources.application import ApplicationType, PodSpec, SparkApplication, SparkSpec
from spark_operator.resources.pods import DRIVER_CONTAINER, EXECUTOR_CONTAINER, Role

TEMPLATE = f"{GROUP}/executor-template"
"""Annotation of a driver's pod."""

START = 'PATH="${SPARK_HOME:-/opt/spark}/bin:$PATH"; exec spark-submit "$@"'
"""Any image that has spark-submit will do, whatever its entrypoint makes of arguments."""

LOCAL_FOLDER = "/var/data/spark-local"
"""Mount path of the driver's shuffles and spills: a volume, not the container's own layer."""

LOCAL_VOLUME, TEMPLATE_VOLUME = "steward-spark-local", "steward-executor-template"

POD_SECURITY: Mapping[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
CONTAINER_SECURITY: Mapping[str, Any] = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
"""Fields required by the restricted standard; the user's values of the same fields take precedence."""

Raw = dict[str, Any]


def driver_pod(application: SparkApplication, attempt: int) -> RawObject:
    """Return the pod of an attempt, numbered from 1; ValueError when the driver's memory is no amount."""
    spec, driver = application.spec, application.spec.driver
    container: Raw = {
        "name": DRIVER_CONTAINER,
        "image": driver.image or spec.image,
        "imagePullPolicy": spec.image_pull_policy,
        "command": ["/bin/sh", "-c", START, "spark-submit"],
        "args": kubernetes_arguments(application, attempt),
        "resources": _resources(spec),
        **_container(driver),
    }
    container["env"] = [*_environment(spec.type), *container.get("env", ())]
    container["volumeMounts"] = [
        {"name": LOCAL_VOLUME, "mountPath": LOCAL_FOLDER},
        {"name": TEMPLATE_VOLUME, "mountPath": TEMPLATE_PATH.rpartition("/")[0], "readOnly": True},
        *container.get("volumeMounts", ()),
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": driver_name(application, attempt),
            "namespace": application.key.namespace,
            "labels": {**driver.labels, **_labels(application, Role.DRIVER, attempt)},
            "annotations": {**driver.annotations, TEMPLATE: json.dumps(executor_template(application, attempt))},
            "ownerReferences": [controller_reference(application.metadata)],
        },
        "spec": {
            **driver.pod,
            **_common(application, driver),
            "serviceAccountName": service_account(application),
            "automountServiceAccountToken": True,
            "containers": [container],
            "volumes": [*_own_volumes(), *spec.volumes],
        },
    }


def executor_template(application: SparkApplication, attempt: int) -> RawObject:
    """Return the template of the executors' pods; Spark adds the rest of what it needs."""
    executor = application.spec.executor
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {**executor.labels, **_labels(application, Role.EXECUTOR, attempt)},
            "annotations": dict(executor.annotations),
        },
        "spec": {
            **executor.pod,
            **_common(application, executor),
            # An executor asks nothing of Kubernetes.
            "automountServiceAccountToken": False,
            "containers": [{"name": EXECUTOR_CONTAINER, **_container(executor)}],
            "volumes": list(application.spec.volumes),
        },
    }


def _labels(application: SparkApplication, role: Role, attempt: int) -> dict[str, str]:
    return {
        SPARK_APPLICATION_LABEL: application.metadata.uid,
        SPARK_ROLE_LABEL: role.value,
        SPARK_ATTEMPT_LABEL: str(attempt),
    }


def _common(application: SparkApplication, pod: PodSpec) -> Raw:
    """Return the fields of the pod that both have; a pod that ended is never restarted by its node."""
    found: Raw = {
        "restartPolicy": "Never",
        "enableServiceLinks": False,
        "securityContext": {**POD_SECURITY, **(pod.pod.get("securityContext") or {})},
    }
    if application.spec.image_pull_secrets:
        found["imagePullSecrets"] = [{"name": name} for name in application.spec.image_pull_secrets]
    return found


def _container(pod: PodSpec) -> Raw:
    given = dict(pod.container)
    return {**given, "securityContext": {**CONTAINER_SECURITY, **(given.get("securityContext") or {})}}


def _resources(spec: SparkSpec) -> Raw:
    driver = spec.driver
    # In the order in which Spark takes them where it creates the driver's pod itself.
    named = (spec.spark_conf.get(name) for name in ("spark.driver.memoryOverheadFactor", OVERHEAD_FACTOR))
    factor = next((value for value in named if value is not None), spec.memory_overhead_factor)
    memory = f"{container_mebibytes(driver, spec.type, factor)}Mi"
    limits = {"memory": memory} | ({} if driver.core_limit is None else {"cpu": driver.core_limit})
    return {"requests": {"cpu": driver.core_request or str(driver.cores), "memory": memory}, "limits": limits}


def _environment(kind: ApplicationType) -> list[Raw]:
    python = [{"name": "PYSPARK_PYTHON", "value": "python3"}] if kind is ApplicationType.PYTHON else []
    return [
        {"name": POD_IP, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "SPARK_LOCAL_DIRS", "value": LOCAL_FOLDER},
        *python,
    ]


def _own_volumes() -> list[Raw]:
    item = {
        "path": TEMPLATE_PATH.rpartition("/")[2],
        "fieldRef": {"fieldPath": f"metadata.annotations['{TEMPLATE}']"},
    }
    return [
        {"name": LOCAL_VOLUME, "emptyDir": {}},
        {"name": TEMPLATE_VOLUME, "downwardAPI": {"items": [item]}},
    ]
