"""The SparkApplication resource, in the fields that people know from `sparkoperator.k8s.io/v1beta2`.

Parts that Kubernetes defines (env, volumes, tolerations, security contexts) are handed on as they are and stay JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from reconciler.names import Key
from reconciler.resources.metadata import Metadata, RawObject, read_metadata
from spark_operator import kinds
from spark_operator.resources.status import SparkStatus, read_spark_status

DEFAULT_SERVICE_ACCOUNT = "spark"
"""Service account created by the chart (analytics.serviceAccount)."""

DEFAULT_RETRIES, DEFAULT_RETRY_INTERVAL_S = 3, 10
DEFAULT_LOG_TAIL_LINES = 20
DEFAULT_START_TIMEOUT_S = 600
"""The schema's own defaults, for resources that were made without it (tests, a folder of manifests)."""


class Engine(StrEnum):
    """Engine that creates the driver: the operator, Kubeflow's operator, or a local process."""

    STEWARD = "Steward"
    SPARK_OPERATOR = "SparkOperator"
    LOCAL = "Local"


class ApplicationType(StrEnum):
    """What the main file is."""

    PYTHON = "Python"
    JAVA = "Java"
    SCALA = "Scala"
    R = "R"


class RestartType(StrEnum):
    """When another attempt follows one that has ended."""

    NEVER = "Never"
    ON_FAILURE = "OnFailure"
    ALWAYS = "Always"


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Which attempts follow, how many, and after how long; the n-th failure waits n intervals, as with Kubeflow."""

    type: RestartType = RestartType.NEVER
    retries: int = DEFAULT_RETRIES
    retry_interval_s: int = DEFAULT_RETRY_INTERVAL_S
    submission_retries: int = 0
    submission_retry_interval_s: int = DEFAULT_RETRY_INTERVAL_S


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Dependencies passed to spark-submit in addition to the main file."""

    py_files: tuple[str, ...] = ()
    jars: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PodSpec:
    """The driver, or each executor."""

    cores: int = 1
    core_request: str | None = None
    core_limit: str | None = None
    memory: str = "1g"
    memory_overhead: str | None = None
    java_options: str | None = None
    image: str | None = None
    service_account: str | None = None
    instances: int = 1
    """Only executors have several."""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    container: RawObject = field(default_factory=dict)
    """Fields of its container in Kubernetes' form: env, envFrom, volumeMounts, securityContext."""
    pod: RawObject = field(default_factory=dict)
    """Fields of its pod in Kubernetes' form: nodeSelector, tolerations, affinity, priorityClassName, …"""


@dataclass(frozen=True, slots=True)
class SparkSpec:
    """What the user asks for."""

    engine: Engine
    type: ApplicationType
    image: str | None
    image_pull_policy: str
    image_pull_secrets: tuple[str, ...]
    main_class: str | None
    main_application_file: str | None
    arguments: tuple[str, ...]
    dependencies: Dependencies
    spark_conf: Mapping[str, str]
    memory_overhead_factor: str | None
    """Memory beyond the heap as a share of it, of driver and executors; None for the language's own."""
    driver: PodSpec
    executor: PodSpec
    volumes: tuple[RawObject, ...]
    restart_policy: RestartPolicy
    time_to_live_s: int | None
    suspend: bool
    log_tail_lines: int
    start_timeout_s: int
    raw: RawObject
    """As it was written, for an operator that takes it as it is."""


@dataclass(frozen=True, slots=True)
class SparkApplication:
    """A SparkApplication as its user wrote it, with what we wrote to it."""

    metadata: Metadata
    spec: SparkSpec
    status: SparkStatus

    @property
    def key(self) -> Key:
        """Return its name in Kubernetes."""
        return self.metadata.key


def read_spark_application(raw: RawObject) -> SparkApplication:
    """Read a SparkApplication from JSON; KeyError or ValueError when it does not follow the schema."""
    return SparkApplication(
        metadata=read_metadata(kinds.SPARK_APPLICATION, raw),
        spec=read_spark_spec(raw["spec"]),
        status=read_spark_status(raw.get("status") or {}),
    )


def read_spark_spec(spec: RawObject) -> SparkSpec:
    """Read `spec`, or the template of a schedule."""
    deps = spec.get("deps") or {}
    return SparkSpec(
        engine=Engine(spec.get("engine", Engine.STEWARD)),
        type=ApplicationType(spec["type"]),
        image=spec.get("image"),
        image_pull_policy=spec.get("imagePullPolicy", "IfNotPresent"),
        image_pull_secrets=tuple(spec.get("imagePullSecrets") or ()),
        main_class=spec.get("mainClass"),
        main_application_file=spec.get("mainApplicationFile"),
        arguments=tuple(spec.get("arguments") or ()),
        dependencies=Dependencies(
            *(tuple(deps.get(name) or ()) for name in ("pyFiles", "jars", "files", "packages", "repositories"))
        ),
        spark_conf=dict(spec.get("sparkConf") or {}),
        memory_overhead_factor=spec.get("memoryOverheadFactor"),
        driver=_read_pod_spec(_placed(spec, "driver")),
        executor=_read_pod_spec(_placed(spec, "executor")),
        volumes=tuple(spec.get("volumes") or ()),
        restart_policy=_read_restart_policy(spec.get("restartPolicy") or {}),
        time_to_live_s=spec.get("timeToLiveSeconds"),
        suspend=bool(spec.get("suspend", False)),
        log_tail_lines=int(spec.get("logTailLines", DEFAULT_LOG_TAIL_LINES)),
        start_timeout_s=int(spec.get("startTimeoutSeconds", DEFAULT_START_TIMEOUT_S)),
        raw=spec,
    )


CONTAINER_FIELDS = ("env", "envFrom", "volumeMounts", "securityContext")
POD_FIELDS = (
    "nodeSelector",
    "tolerations",
    "affinity",
    "priorityClassName",
    "schedulerName",
    "terminationGracePeriodSeconds",
)


def _placed(spec: RawObject, role: str) -> RawObject:
    """Return what a spec contains of driver or executors, with the scheduler of both where the role names none."""
    scheduler = spec.get("batchScheduler")
    return {**({} if scheduler is None else {"schedulerName": scheduler}), **(spec.get(role) or {})}


def _read_pod_spec(raw: RawObject) -> PodSpec:
    pod: dict[str, Any] = {name: raw[name] for name in POD_FIELDS if name in raw}
    if "podSecurityContext" in raw:
        pod["securityContext"] = raw["podSecurityContext"]
    return PodSpec(
        cores=int(raw.get("cores", 1)),
        core_request=raw.get("coreRequest"),
        core_limit=raw.get("coreLimit"),
        memory=raw.get("memory", "1g"),
        memory_overhead=raw.get("memoryOverhead"),
        java_options=raw.get("javaOptions"),
        image=raw.get("image"),
        service_account=raw.get("serviceAccount"),
        instances=int(raw.get("instances", 1)),
        labels=dict(raw.get("labels") or {}),
        annotations=dict(raw.get("annotations") or {}),
        container={name: raw[name] for name in CONTAINER_FIELDS if name in raw},
        pod=pod,
    )


def _read_restart_policy(raw: RawObject) -> RestartPolicy:
    return RestartPolicy(
        type=RestartType(raw.get("type", RestartType.NEVER)),
        retries=int(raw.get("onFailureRetries", DEFAULT_RETRIES)),
        retry_interval_s=int(raw.get("onFailureRetryInterval", DEFAULT_RETRY_INTERVAL_S)),
        submission_retries=int(raw.get("onSubmissionFailureRetries", 0)),
        submission_retry_interval_s=int(raw.get("onSubmissionFailureRetryInterval", DEFAULT_RETRY_INTERVAL_S)),
    )
