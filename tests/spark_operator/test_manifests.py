"""The driver's pod and its executors' template, and what Kubeflow's operator is given."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from spark_operator.decide.command import kubernetes_arguments, local_arguments
from spark_operator.decide.driver import TEMPLATE, driver_pod
from spark_operator.decide.kubeflow import kubeflow_application
from spark_operator.decide.memory import container_mebibytes, mebibytes
from spark_operator.resources.application import ApplicationType, PodSpec, SparkApplication
from tests.kafka_operator.live import ROOT
from tests.spark_operator.makers import DRIVER, UID, spark

PROTECTED = ("spark.driver.host", "spark.kubernetes.driver.pod.name", "spark.kubernetes.namespace")


def conf(application: SparkApplication, attempt: int = 1) -> dict[str, str]:
    """The settings that spark-submit is given."""
    given = kubernetes_arguments(application, attempt)
    pairs = [value for option, value in itertools.pairwise(given) if option == "--conf"]
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def test_a_driver_gets_its_own_address_twice_and_its_own_name() -> None:
    """Proven: with a bind address of 0.0.0.0 executors call that and die; by the driver's name they are its own."""
    found = conf(spark(), 3)

    assert "$(SPARK_DRIVER_POD_IP)" == found["spark.driver.host"] == found["spark.driver.bindAddress"]
    assert found["spark.kubernetes.driver.pod.name"] == "pi-0a1b2c3d-driver-3"
    assert found["spark.kubernetes.authenticate.driver.serviceAccountName"] == "spark"
    assert found["spark.kubernetes.authenticate.executor.serviceAccountName"] == "spark"
    assert found["spark.kubernetes.container.image"] == "spark:1"
    given = kubernetes_arguments(spark(), 3)
    assert given[:4] == ["--master", "k8s://https://kubernetes.default.svc", "--deploy-mode", "client"]


def test_what_the_user_sets_wins_but_over_what_the_runner_relies_on() -> None:
    """The schema refuses the latter; a folder of manifests knows no schema."""
    mine = dict.fromkeys(PROTECTED, "mine") | {"spark.executor.memory": "9g", "spark.sql.ansi.enabled": "true"}
    found = conf(spark(sparkConf=mine, executor={"memory": "2g"}))

    assert {found["spark.executor.memory"], found["spark.sql.ansi.enabled"]} == {"9g", "true"}
    assert "mine" not in {found[name] for name in PROTECTED}


def test_arguments_reach_the_application_as_they_are() -> None:
    """Kubernetes puts the environment in the place of $(NAME) in arguments: nothing of the user's may be taken for one."""
    given = kubernetes_arguments(spark(arguments=["$(HOME)", "a b", "--conf"], sparkConf={"spark.x": "$(Y)"}), 1)

    assert given[-4:] == ["local:///opt/jobs/pi.py", "$$(HOME)", "a b", "--conf"]
    assert "spark.x=$$(Y)" in given


def test_dependencies_are_handed_on() -> None:
    """deps, in spark-submit's own options."""
    deps = {"pyFiles": ["a.py", "b.zip"], "packages": ["g:a:1"], "repositories": ["https://r"], "jars": ["x.jar"]}
    given = kubernetes_arguments(spark(deps=deps), 1)

    for option, value in (("--py-files", "a.py,b.zip"), ("--packages", "g:a:1"), ("--jars", "x.jar")):
        assert value == given[given.index(option) + 1]


def test_the_pod_is_the_attempts_own_and_goes_with_the_application() -> None:
    """O11: a name for each attempt; never restarted by its node."""
    found = driver_pod(spark(), 1)
    metadata, spec = found["metadata"], found["spec"]

    assert metadata["name"] == DRIVER
    assert [owner["uid"] for owner in metadata["ownerReferences"]] == [UID]
    assert spec["restartPolicy"] == "Never"
    assert metadata["name"] != driver_pod(spark(), 2)["metadata"]["name"]
    long = spark("a." * 100 + "z")
    assert len(driver_pod(long, 999_999)["metadata"]["name"]) <= 63
    assert len(conf(long, 999_999)["spark.kubernetes.executor.podNamePrefix"]) <= 47, "Spark takes no longer one"


def test_driver_and_executors_are_what_the_restricted_standard_asks_for() -> None:
    """Secure by default; an executor is given no token."""
    pod = driver_pod(spark(), 1)
    template = json.loads(pod["metadata"]["annotations"][TEMPLATE])
    for spec in (pod["spec"], template["spec"]):
        assert spec["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        (container,) = spec["containers"]
        wanted = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert container["securityContext"] == wanted
    assert template["spec"]["automountServiceAccountToken"] is False
    assert template["metadata"]["labels"]["steward.dev/spark-role"] == "executor"


def test_parts_of_kubernetes_are_handed_on_as_they_are() -> None:
    """env, mounts, volumes, places; the user's security contexts win field by field."""
    role: dict[str, Any] = {
        "env": [{"name": "A", "value": "1"}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "securityContext": {"readOnlyRootFilesystem": True},
        "podSecurityContext": {"fsGroup": 7},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "spark"}],
        "labels": {"team": "x"},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    pod = driver_pod(spark(driver=role, executor=role, volumes=volumes), 1)
    template = json.loads(pod["metadata"]["annotations"][TEMPLATE])

    for found in (pod, template):
        (container,) = found["spec"]["containers"]
        assert {"name": "A", "value": "1"} in container["env"]
        assert {"name": "data", "mountPath": "/data"} in container["volumeMounts"]
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert found["spec"]["securityContext"]["fsGroup"] == 7
        assert volumes[0] in found["spec"]["volumes"]
        assert (found["spec"]["nodeSelector"]["disk"], found["metadata"]["labels"]["team"]) == ("ssd", "x")


def test_a_scheduler_other_than_the_clusters_own_places_the_pods() -> None:
    """By schedulerName of driver or executor, else batchScheduler for both, as with Kubeflow's operator; by default the cluster's own."""

    def schedulers(**spec: Any) -> list[str | None]:
        pod = driver_pod(spark(**spec), 1)
        template = json.loads(pod["metadata"]["annotations"][TEMPLATE])
        return [found["spec"].get("schedulerName") for found in (pod, template)]

    assert schedulers() == [None, None]
    assert schedulers(batchScheduler="volcano") == ["volcano", "volcano"]
    assert schedulers(driver={"schedulerName": "a"}, executor={"schedulerName": "b"}) == ["a", "b"]
    assert schedulers(batchScheduler="volcano", executor={"schedulerName": "b"}) == ["volcano", "b"]


@pytest.mark.parametrize(
    ("pod", "kind", "expected"),
    [
        (PodSpec(memory="512m"), ApplicationType.PYTHON, 512 + 384),
        (PodSpec(memory="4g"), ApplicationType.PYTHON, 4096 + 1639),
        (PodSpec(memory="4g"), ApplicationType.SCALA, 4096 + 410),
        (PodSpec(memory="1g", memory_overhead="1g"), ApplicationType.PYTHON, 2048),
    ],
)
def test_a_drivers_container_has_room_beyond_the_heap(pod: PodSpec, kind: ApplicationType, expected: int) -> None:
    """As Spark reckons in cluster mode (spark.kubernetes.memoryOverheadFactor, 384 MiB at least)."""
    assert container_mebibytes(pod, kind) == expected


@pytest.mark.parametrize(("kind", "factor"), [("Python", "0.4"), ("R", "0.4"), ("Java", "0.1"), ("Scala", "0.1")])
def test_executors_are_given_the_overhead_of_their_language(kind: str, factor: str) -> None:
    """Spark distinguishes Python from Java in cluster mode only; in client mode it takes a tenth for both (BasicDriverFeatureStep)."""
    assert conf(spark(type=kind))["spark.kubernetes.memoryOverheadFactor"] == factor
    mine = {"spark.kubernetes.memoryOverheadFactor": "0.7"}
    assert conf(spark(type=kind, sparkConf=mine))["spark.kubernetes.memoryOverheadFactor"] == "0.7"
    assert conf(spark(type=kind, executor={"memoryOverhead": "1g"}))["spark.executor.memoryOverhead"] == "1g"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, 4096 + 1639),
        ({"memoryOverheadFactor": "0.2"}, 4096 + 820),
        ({"sparkConf": {"spark.kubernetes.memoryOverheadFactor": "0.2"}}, 4096 + 820),
        ({"memoryOverheadFactor": "0.9", "sparkConf": {"spark.driver.memoryOverheadFactor": "0.2"}}, 4096 + 820),
        ({"memoryOverheadFactor": "0.01"}, 4096 + 384),
        ({"memoryOverheadFactor": "0.9", "driver": {"memory": "4g", "memoryOverhead": "1g"}}, 5120),
    ],
)
def test_the_users_own_factor_is_taken_for_the_driver_too(spec: dict[str, Any], expected: int) -> None:
    """In the order in which Spark takes them in cluster mode; the operator creates the driver's pod, so it has to compute the same."""
    container = driver_pod(spark(**{"driver": {"memory": "4g"}, **spec}), 1)["spec"]["containers"][0]

    assert container["resources"]["requests"]["memory"] == f"{expected}Mi"


def test_the_users_own_factor_is_taken_for_executors() -> None:
    """Of the field, and of sparkConf, which wins."""
    name = "spark.kubernetes.memoryOverheadFactor"

    assert conf(spark(memoryOverheadFactor="0.2"))[name] == "0.2"
    assert conf(spark(memoryOverheadFactor="0.2", sparkConf={name: "0.3"}))[name] == "0.3"


OWN = "spark.kubernetes.driver.ownPersistentVolumeClaim"


def test_spark_asks_for_no_volume_claim_or_service_unless_the_user_does() -> None:
    """The driver's account needs a right to volume claims only where executors are given some on demand."""
    claim = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data.options.claimName"

    assert conf(spark())[OWN] == "false"
    assert conf(spark())["spark.kubernetes.driver.service.deleteOnTermination"] == "false"
    assert OWN not in conf(spark(sparkConf={claim: "OnDemand"}))
    assert conf(spark(sparkConf={claim: "mine"}))[OWN] == "false"


@pytest.mark.parametrize("text", ["", "much", "-1g", "1.5g", "1gib2", "9999999999g"])
def test_memory_that_is_none_is_refused(text: str) -> None:
    """In words."""
    with pytest.raises(ValueError, match="not an amount of memory"):
        mebibytes(text)


def test_a_local_run_takes_files_of_this_machine() -> None:
    """local:// is the image's word for a file that is there."""
    given = local_arguments(spark(engine="Local", executor={"cores": 2, "instances": 2}, arguments=["7"]))

    assert given[:2] == ["--master", "local[4]"]
    assert given[-2:] == ["/opt/jobs/pi.py", "7"]


@pytest.mark.parametrize("name", ["spark.driver.memory", "spark.driver.extraJavaOptions"])
def test_a_local_run_has_the_drivers_memory_and_options_unless_spark_conf_overrides_them(name: str) -> None:
    """As the driver of a pod."""
    fields = {"spark.driver.memory": "3g", "spark.driver.extraJavaOptions": "-XX:+UseParallelGC"}
    driver = {"memory": "3g", "javaOptions": "-XX:+UseParallelGC"}

    assert f"{name}={fields[name]}" in local_arguments(spark(engine="Local", driver=driver))
    assert f"{name}=mine" in local_arguments(spark(engine="Local", driver=driver, sparkConf={name: "mine"}))


KUBEFLOW_FIELDS = {
    "type", "sparkVersion", "mode", "image", "imagePullPolicy", "imagePullSecrets", "sparkConf", "hadoopConf",
    "volumes", "driver", "executor", "deps", "mainClass", "mainApplicationFile", "arguments", "restartPolicy",
    "nodeSelector", "pythonVersion", "timeToLiveSeconds", "suspend", "monitoring", "dynamicAllocation", "batchScheduler",
}  # fmt: skip
"""spec of sparkoperator.k8s.io/v1beta2 SparkApplication, those that concern us."""


def test_kubeflow_is_given_its_own_fields_alone() -> None:
    """Features (c3): v1beta2; restarts are Kubeflow's, the time to live and the log stay ours."""
    ours: dict[str, Any] = {
        "engine": "SparkOperator",
        "sparkVersion": "4.0.0",
        "timeToLiveSeconds": 5,
        "logTailLines": 3,
    }
    found = kubeflow_application(spark(**ours, startTimeoutSeconds=9, restartPolicy={"type": "Always"}))

    assert (found["apiVersion"], found["kind"]) == ("sparkoperator.k8s.io/v1beta2", "SparkApplication")
    assert set(found["spec"]) <= KUBEFLOW_FIELDS - {"timeToLiveSeconds"}
    assert found["spec"]["restartPolicy"] == {"type": "Always"}
    assert found["spec"]["mode"] == "cluster"
    assert found["spec"]["driver"]["serviceAccount"] == "spark"
    assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [UID]


def test_what_is_mounted_hides_nothing_of_the_image() -> None:
    """images/spark has the jobs, Python and Spark in the folders that its Dockerfile copies to."""
    copied = re.findall(
        r"^COPY .*\s(/\S+)$", (ROOT / "images" / "spark" / "Dockerfile").read_text("utf-8"), re.MULTILINE
    )
    of_image = [Path(path_text) for path_text in copied if not path_text.startswith("/build")]
    mounted = [Path(mount["mountPath"]) for mount in driver_pod(spark(), 1)["spec"]["containers"][0]["volumeMounts"]]

    assert of_image
    assert mounted
    assert not [(path, place) for path in of_image for place in mounted if place == path or place in path.parents]
