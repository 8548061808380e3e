"""Arguments of spark-submit for one attempt: configuration, dependencies, main file and its arguments.

What a user sets in sparkConf wins over what follows from other fields; what the runner needs to find its driver and executors again wins
over both. A driver in client mode needs its pod's address twice: with a bind address of 0.0.0.0 executors would connect to that.
"""

from __future__ import annotations

from collections.abc import Mapping

from spark_operator.decide.memory import overhead_share
from spark_operator.resources.application import (
    DEFAULT_SERVICE_ACCOUNT,
    ApplicationType,
    SparkApplication,
    SparkSpec,
)

API_SERVER = "https://kubernetes.default.svc"
"""The API server as a pod finds it."""

POD_IP = "SPARK_DRIVER_POD_IP"
"""Environment variable with the pod's own address, which Kubernetes puts into arguments."""

TEMPLATE_PATH = "/etc/steward-executor/executor.json"
"""Mount path of the executors' template in a driver's pod: a separate folder, since a mount hides the image's files."""

LOCAL_SCHEME = "local://"
"""Prefix of a file that the image holds; spark-submit's own word."""

OVERHEAD_FACTOR = "spark.kubernetes.memoryOverheadFactor"
"""Spark's setting: memory beyond the heap, as a share of it."""

ON_DEMAND = "OnDemand"
"""The claim's name by which Spark creates a volume claim for each executor (spark.kubernetes.executor.volumes.*.options.claimName)."""

PREFIX_LENGTH = 30
"""Characters of the application's name in a pod's: Spark takes 47 for its prefix of executors' names, digits and uid included."""


def driver_name(application: SparkApplication, attempt: int) -> str:
    """Return the name of an attempt's driver pod: one name an attempt, so that there can be no second one."""
    return f"{_stem(application)}-driver-{attempt}"


def kubernetes_arguments(application: SparkApplication, attempt: int) -> list[str]:
    """Return the arguments of a driver's pod; Kubernetes replaces $(NAME) in them, so those of the user are written with $$."""
    spec = application.spec
    conf = {**_settings(application), **spec.spark_conf, **_fixed(application, attempt)}
    conf = {name: _escaped(value) for name, value in conf.items()}
    conf |= dict.fromkeys(("spark.driver.host", "spark.driver.bindAddress"), f"$({POD_IP})")
    head = ["--master", f"k8s://{API_SERVER}", "--deploy-mode", "client", *_conf(conf)]
    return [*head, *map(_escaped, _rest(spec, _main_file(spec)))]


def local_arguments(application: SparkApplication) -> list[str]:
    """Return the arguments for a process on this machine, with as many threads as one executor has cores."""
    spec = application.spec
    options = spec.driver.java_options
    conf = {"spark.app.name": application.key.name, "spark.driver.memory": spec.driver.memory}
    conf |= ({} if options is None else {"spark.driver.extraJavaOptions": options}) | dict(spec.spark_conf)
    main = _main_file(spec).removeprefix(LOCAL_SCHEME)
    return ["--master", f"local[{spec.executor.cores * spec.executor.instances}]", *_conf(conf), *_rest(spec, main)]


def service_account(application: SparkApplication) -> str:
    """Return the account of the driver."""
    return application.spec.driver.service_account or DEFAULT_SERVICE_ACCOUNT


def executor_prefix(application: SparkApplication, attempt: int) -> str:
    """Return what the names of an attempt's executors begin with."""
    return f"{_stem(application)}-{attempt}"


def _stem(application: SparkApplication) -> str:
    """Return name and uid, shortened: the uid distinguishes an application from an earlier one of the same name."""
    name = application.key.name.replace(".", "-")[:PREFIX_LENGTH].strip("-")
    return f"{name}-{application.metadata.uid[:8]}"


def _settings(application: SparkApplication) -> dict[str, str]:
    """Return what follows from fields and may be set otherwise in sparkConf."""
    spec = application.spec
    found = {
        "spark.app.name": application.key.name,
        "spark.driver.cores": str(spec.driver.cores),
        "spark.driver.memory": spec.driver.memory,
        "spark.executor.instances": str(spec.executor.instances),
        "spark.executor.cores": str(spec.executor.cores),
        "spark.executor.memory": spec.executor.memory,
        "spark.kubernetes.executor.request.cores": spec.executor.core_request or str(spec.executor.cores),
        # The pod of a failed executor shows the cause; the operator deletes it at the end of the attempt.
        "spark.kubernetes.executor.deleteOnTermination": "false",
        # In client mode Spark itself takes every application for one of the JVM.
        OVERHEAD_FACTOR: spec.memory_overhead_factor or overhead_share(spec.type),
        # There is no Service to delete at the end, and no volume claim without spark.kubernetes.executor.volumes.*: the account needs no
        # right to either.
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    }
    if any(value == ON_DEMAND for value in spec.spark_conf.values()):
        del found["spark.kubernetes.driver.ownPersistentVolumeClaim"]
        del found["spark.kubernetes.driver.reusePersistentVolumeClaim"]
    optional = {
        "spark.executor.memoryOverhead": spec.executor.memory_overhead,
        "spark.kubernetes.executor.limit.cores": spec.executor.core_limit,
        "spark.driver.extraJavaOptions": spec.driver.java_options,
        "spark.executor.extraJavaOptions": spec.executor.java_options,
    }
    return found | {name: value for name, value in optional.items() if value is not None}


def _fixed(application: SparkApplication, attempt: int) -> dict[str, str]:
    """Return what the runner relies on."""
    spec = application.spec
    account = service_account(application)
    found = {
        "spark.kubernetes.namespace": application.key.namespace,
        "spark.kubernetes.container.image": spec.executor.image or spec.image or "",
        "spark.kubernetes.container.image.pullPolicy": spec.image_pull_policy,
        "spark.kubernetes.driver.pod.name": driver_name(application, attempt),
        "spark.kubernetes.authenticate.driver.serviceAccountName": account,
        "spark.kubernetes.authenticate.executor.serviceAccountName": spec.executor.service_account or account,
        "spark.kubernetes.executor.podNamePrefix": executor_prefix(application, attempt),
        "spark.kubernetes.executor.podTemplateFile": TEMPLATE_PATH,
    }
    if spec.image_pull_secrets:
        found["spark.kubernetes.container.image.pullSecrets"] = ",".join(spec.image_pull_secrets)
    return found


def _conf(settings: Mapping[str, str]) -> list[str]:
    return [part for name, value in sorted(settings.items()) for part in ("--conf", f"{name}={value}")]


def _rest(spec: SparkSpec, main_file: str) -> list[str]:
    deps = spec.dependencies
    lists = {
        "--py-files": deps.py_files,
        "--jars": deps.jars,
        "--files": deps.files,
        "--packages": deps.packages,
        "--repositories": deps.repositories,
    }
    options = [part for name, values in lists.items() if values for part in (name, ",".join(values))]
    if spec.main_class is not None:
        options += ["--class", spec.main_class]
    return [*options, main_file, *spec.arguments]


def _main_file(spec: SparkSpec) -> str:
    """Return the main file; a class of a package (deps.packages) needs none, and spark-submit a word in its place."""
    if spec.main_application_file is not None:
        return spec.main_application_file
    assert spec.type in {ApplicationType.JAVA, ApplicationType.SCALA}, spec.type  # required by the schema
    return "spark-internal"


def _escaped(text: str) -> str:
    return text.replace("$(", "$$(")
