"""Validation of SparkApplications: namespace, and settings that Spark or Kubernetes would silently ignore.

    namespace     jobs run in the namespaces that the operator was given for them, never next to the brokers by accident
    volumes       exactly one source kind each: a kind that is not supported would otherwise become an emptyDir
    sparkConf     settings of the driver's pod, which Spark reads only when it creates that pod itself (deploy mode cluster)

The schema refuses most of this at admission; here it is refused for objects that were stored before the schema did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconciler.decide.listed import listed
from reconciler.resources.metadata import RawObject
from spark_operator.decide.problems import MAX_NAMED, SparkProblem
from spark_operator.resources.application import Engine, SparkSpec

VOLUME_KINDS = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
"""Source kinds that the restricted Pod Security standard allows (CSI, ConfigMap, Secret, and so on)."""

DRIVER_PREFIXES = (
    "spark.kubernetes.authenticate.driver.",
    "spark.kubernetes.driver.",
    "spark.kubernetes.driverEnv.",
)
"""Settings that Spark applies to the driver's pod, which it creates only in deploy mode cluster."""

HONOURED_DRIVER_SETTINGS = frozenset(
    f"spark.kubernetes.driver.{name}"
    for name in (
        "annotateExitException",
        "connectionTimeout",
        "ownPersistentVolumeClaim",
        "requestTimeout",
        "reusePersistentVolumeClaim",
        "service.deleteOnTermination",
        "waitToReusePersistentVolumeClaim",
    )
)
"""Settings below those prefixes that the driver itself reads in client mode (spark-kubernetes: KubernetesClusterSchedulerBackend,
ExecutorPodsAllocator, SparkKubernetesClientFactory, SparkKubernetesDiagnosticsSetter)."""


def refused_namespace(namespace: str, allowed: frozenset[str]) -> SparkProblem | None:
    """Return why nothing of Spark runs in a namespace; `allowed` is empty where all namespaces are."""
    if not allowed or namespace in allowed:
        return None
    message = (
        f"SparkApplications are not allowed in namespace {namespace}. Allowed namespaces: {', '.join(sorted(allowed))}."
    )
    return SparkProblem("NamespaceNotAllowed", message)


def refused_spec(spec: SparkSpec) -> SparkProblem | None:
    """Return why no driver is created from a spec."""
    if spec.engine is Engine.LOCAL:
        return None
    return _refused_volumes(spec.volumes) or (_refused_settings(spec) if spec.engine is Engine.STEWARD else None)


def _refused_volumes(volumes: Sequence[RawObject]) -> SparkProblem | None:
    for volume in volumes:
        kinds = sorted(set(volume) - {"name"})
        if len(kinds) == 1 and kinds[0] in VOLUME_KINDS:
            continue
        given = f"has {' and '.join(kinds)}" if kinds else "has no source"
        message = f"Volume {volume['name']} of spec.volumes {given}. Set exactly one of: {', '.join(VOLUME_KINDS)}."
        return SparkProblem("InvalidVolume", message)
    return None


def _refused_settings(spec: SparkSpec) -> SparkProblem | None:
    ignored = ignored_settings(spec.spark_conf)
    if not ignored:
        return None
    message = f"Spark ignores {listed(ignored, MAX_NAMED)} of spec.sparkConf, because the operator creates the driver's pod. Use the fields of spec.driver."
    return SparkProblem("IgnoredSettings", message)


def ignored_settings(conf: Mapping[str, str]) -> list[str]:
    """Return the names of settings that would have no effect, in order.

    >>> ignored_settings({"spark.kubernetes.driver.label.team": "a", "spark.kubernetes.driver.requestTimeout": "5000"})
    ['spark.kubernetes.driver.label.team']
    """
    return sorted(name for name in conf if name.startswith(DRIVER_PREFIXES) and name not in HONOURED_DRIVER_SETTINGS)
