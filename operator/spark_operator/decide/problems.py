"""Diagnosis of failed drivers and executors from their pods, with advice.

Kubernetes' reason                                 Steward's reason
ErrImagePull, ImagePullBackOff, InvalidImageName   ImageNotPulled
Unschedulable                                      Unschedulable
CreateContainerConfigError                         ContainerConfigError
OOMKilled                                          DriverOutOfMemory, ExecutorsOutOfMemory
Evicted, Preempting, node gone                     DriverEvicted, ExecutorsEvicted
Error, with an exit code                           DriverFailed
the pod is not there                               DriverLost
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reconciler.decide.listed import listed
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.pods import SparkPod

MAX_MESSAGE_CHARACTERS = 500
"""Characters of Kubernetes' message in a condition: a registry's answer may be a page."""

MAX_NAMED = 3
"""Executors named in a message."""

IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"})
CONFIG = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
EVICTED = frozenset({"Evicted", "Preempting", "NodeShutdown", "Terminated", "NodeLost", "NodeAffinity", "Shutdown"})
OUT_OF_MEMORY = "OOMKilled"


@dataclass(frozen=True, slots=True)
class SparkProblem:
    """Reason and message of a problem, for a condition."""

    reason: str
    message: str


def waiting_problem(application: SparkApplication, driver: SparkPod) -> SparkProblem | None:
    """Return what holds a driver up that has not started, None when it just takes its time."""
    message = _shortened(driver.message)
    if driver.reason in IMAGE:
        image = application.spec.driver.image or application.spec.image
        advice = "Check spec.image, and spec.imagePullSecrets if the registry requires authentication."
        return SparkProblem(
            "ImageNotPulled", f"The image {image} cannot be pulled ({driver.reason}{message}). {advice}"
        )
    if driver.reason == "Unschedulable":
        advice = "Lower spec.driver.cores or memory, change its nodeSelector and tolerations, or add nodes."
        return SparkProblem("Unschedulable", f"No node can run the driver{message}. {advice}")
    if driver.reason in CONFIG:
        advice = "Check the Secrets and ConfigMaps in spec.driver.env, envFrom and volumes."
        return SparkProblem(
            "ContainerConfigError", f"The driver's container cannot be created ({driver.reason}{message}). {advice}"
        )
    return None


def driver_problem(driver: SparkPod | None) -> SparkProblem:
    """Return why an attempt failed; None represents a deleted driver."""
    if driver is None:
        return SparkProblem(
            "DriverLost",
            "The driver pod or its node was deleted. Results that were not written are lost.",
        )
    message = _shortened(driver.message)
    if driver.reason == OUT_OF_MEMORY:
        advice = "Raise spec.driver.memory, or memoryOverhead for Python, or collect less data to the driver."
        return SparkProblem(
            "DriverOutOfMemory", f"The driver was killed because it exceeded its memory limit. {advice}"
        )
    if driver.reason in EVICTED:
        advice = "The node ran out of resources: set a priorityClassName, add capacity, or set a restartPolicy."
        return SparkProblem("DriverEvicted", f"The driver was evicted ({driver.reason}{message}). {advice}")
    code = "" if driver.exit_code is None else f" with exit code {driver.exit_code}"
    return SparkProblem("DriverFailed", f"The driver failed{code}{message}. See status.driver.logTail.")


def executor_problem(executors: Iterable[SparkPod]) -> SparkProblem | None:
    """Return the worst problem of executors: lost memory before lost nodes before waiting."""
    found = list(executors)
    killed = [pod for pod in found if not pod.alive and pod.reason == OUT_OF_MEMORY]
    if killed:
        advice = "Raise spec.executor.memory or memoryOverhead, or use more and smaller partitions."
        message = f"{_named(killed)} killed because it exceeded its memory limit. Spark replaces it. {advice}"
        return SparkProblem("ExecutorsOutOfMemory", message)
    evicted = [pod for pod in found if not pod.alive and pod.reason in EVICTED]
    if evicted:
        advice = "Spark replaces it and recomputes its data. Add capacity, or set a priorityClassName."
        return SparkProblem("ExecutorsEvicted", f"{_named(evicted)} evicted{_shortened(evicted[0].message)}. {advice}")
    held = [pod for pod in found if pod.alive and (pod.reason == "Unschedulable" or pod.reason in IMAGE | CONFIG)]
    if held:
        advice = "The application continues with the running executors, if any."
        return SparkProblem(
            "ExecutorsWaiting", f"{_named(held)} pending ({held[0].reason}{_shortened(held[0].message)}). {advice}"
        )
    return None


def refused_problem(message: str) -> SparkProblem:
    """Return why no driver could be created, from the message of the API server.

    >>> refused_problem('pods "x" is forbidden: error looking up service account a/spark: serviceaccount "spark" not found').reason
    'ServiceAccountMissing'
    """
    text = message[:MAX_MESSAGE_CHARACTERS]
    if "error looking up service account" in message:
        advice = (
            "Create it, or set another one in spec.driver.serviceAccount; the chart creates one (analytics.enabled)."
        )
        return SparkProblem("ServiceAccountMissing", f"The driver's service account does not exist: {text}. {advice}")
    if "exceeded quota" in message:
        return SparkProblem("QuotaExceeded", f"The driver exceeds the quota of the namespace: {text}.")
    if "violates PodSecurity" in message:
        return SparkProblem("PodSecurity", f"The namespace's Pod Security standard forbids the driver: {text}.")
    return SparkProblem("DriverRefused", f"The API server rejected the driver: {text}.")


def _named(pods: list[SparkPod]) -> str:
    """Return the names of executors as the subject of a sentence, to be followed by a participle."""
    return f"Executor {listed([pod.name for pod in pods], MAX_NAMED)} was"


def _shortened(message: str) -> str:
    text = " ".join(message.split()).rstrip(".")
    return f": {text[:MAX_MESSAGE_CHARACTERS]}" if text else ""
