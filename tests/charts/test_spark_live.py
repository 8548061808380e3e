"""A driver of real Spark on a real API server, with no more rights than the chart grants: its executors, and what it may not touch."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyspark
import pytest

from lab.peers.kubernetes import KubernetesApi
from lab.processes.waiting import wait_until
from spark_operator.decide.command import kubernetes_arguments
from spark_operator.decide.driver import driver_pod, executor_template
from spark_operator.resources.application import SparkApplication, read_spark_application
from tests.charts.rendering import JOBS, NAMESPACE, Chart, Resource, one
from tests.effort import in_soak

pytestmark = [pytest.mark.helm, pytest.mark.kubernetes, pytest.mark.java, pytest.mark.timeout(600)]

PATIENCE_S = 180.0
"""A JVM that starts on a busy machine, and what it does first."""

SMALL_LAUNCHER = {"SPARK_LAUNCHER_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
"""For the JVM that only works out the driver's command line."""

PROGRAM = """
import pathlib, sys, time
from pyspark import SparkContext
context = SparkContext()
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.1)
context.stop()
"""

EXECUTORS = "spark-role=executor"

VALUES: dict[str, Any] = {
    "analytics": {
        "enabled": True,
        "sampler": {"enabled": True},
        "schedule": {"enabled": True, "storage": {"url": "s3a://bucket/steward"}},
    }
}

ACCOUNTS = ("spark", "steward-balance")

KEPT = {
    "pods": ["get", "list", "create", "patch", "delete", "deletecollection"],
    "services": ["get", "create", "patch", "delete", "deletecollection"],
    "configmaps": ["get", "list", "patch", "update", "delete", "deletecollection"],
    "persistentvolumeclaims": ["get", "list", "create", "patch", "delete", "deletecollection"],
    "secrets": ["get", "list"],
}
"""Verbs that an account of jobs has on no resource in the namespace of the brokers."""


@pytest.fixture(scope="module")
def rights(chart: Chart, api: KubernetesApi) -> Iterator[KubernetesApi]:
    """The chart's accounts and roles, in place; the namespaces are there already."""
    wanted = [item for item in chart.render(VALUES) if item["kind"] in {"ServiceAccount", "Role", "RoleBinding"}]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": wanted})
    api.kubectl("apply", "--filename=-", stdin=text, check=True)
    yield api
    api.kubectl("delete", "--filename=-", "--wait=false", stdin=text)


def allowed(api: KubernetesApi, account: str, questions: Sequence[tuple[str, str, str, str]]) -> list[bool]:
    """Ask the API server by SubjectAccessReview; a question is (verb, group, resource, namespace)."""
    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{JOBS}:{account}",
                "groups": ["system:serviceaccounts", f"system:serviceaccounts:{JOBS}", "system:authenticated"],
                "resourceAttributes": {"verb": verb, "group": group, "resource": resource, "namespace": namespace},
            },
        }
        for verb, group, resource, namespace in questions
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": reviews}
    output = '--output=jsonpath={.status.allowed}{"\\n"}'
    done = api.kubectl("create", "--filename=-", output, stdin=json.dumps(listed), check=True)
    return [line == "true" for line in done.stdout.split()]


@pytest.mark.parametrize("account", ACCOUNTS)
def test_an_account_of_jobs_touches_nothing_next_to_the_brokers(rights: KubernetesApi, account: str) -> None:
    """Pods, Services, ConfigMaps, volume claims and Secrets of the release's namespace are out of its reach."""
    questions = [(verb, "", resource, NAMESPACE) for resource, verbs in KEPT.items() for verb in verbs]
    questions += [("patch", "steward.dev", "reassignments", NAMESPACE), ("patch", "steward.dev", "topics", NAMESPACE)]
    questions += [("delete", "", "persistentvolumeclaims", JOBS), ("get", "", "secrets", JOBS)]

    answers = allowed(rights, account, questions)
    assert [question for question, answer in zip(questions, answers, strict=True) if answer] == []

    proposing = [("list", "steward.dev", "reassignments", NAMESPACE), ("create", "", "configmaps", NAMESPACE)]
    assert allowed(rights, account, proposing) == [account == "steward-balance"] * 2
    assert allowed(rights, account, [("create", "", "pods", JOBS)]) == [True]


NO_WAITING = {
    "spark.ui.enabled": "false",
    "spark.kubernetes.allocation.batch.delay": "500ms",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s",
}
"""By default a program begins 30 s later, when no executor has registered: no kubelet starts these."""


class Driver:
    """spark-submit on this machine, with the arguments that the operator gives a driver's pod, and that pod's account."""

    def __init__(self, api: KubernetesApi, folder: Path, application: SparkApplication) -> None:
        self._stop = folder / "stop"
        self.log = folder / "spark.log"
        program, template = folder / "program.py", folder / "executor.json"
        program.write_text(PROGRAM, encoding="utf-8")
        template.write_text(json.dumps(executor_template(application, 1)), encoding="utf-8")
        token = api.kubectl(f"--namespace={JOBS}", "create", "token", "spark", check=True).stdout.strip()
        here = {
            "k8s://https://kubernetes.default.svc": f"k8s://{api.url}",
            "local:///opt/jobs/program.py": str(program),
            "spark.kubernetes.executor.podTemplateFile=/etc/steward-executor/executor.json": (
                f"spark.kubernetes.executor.podTemplateFile={template}"
            ),
            "spark.driver.host=$(SPARK_DRIVER_POD_IP)": "spark.driver.host=127.0.0.1",
            "spark.driver.bindAddress=$(SPARK_DRIVER_POD_IP)": "spark.driver.bindAddress=127.0.0.1",
        }
        given = [here.get(argument, argument) for argument in kubernetes_arguments(application, 1)]
        access = {
            "spark.kubernetes.authenticate.caCertFile": str(api.certificate_authority),
            "spark.kubernetes.authenticate.oauthToken": token,
        }
        conf = itertools.chain.from_iterable(("--conf", f"{name}={value}") for name, value in access.items())
        home = Path(pyspark.__file__).parent
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [home / "bin" / "spark-submit", *conf, *given, str(self._stop)],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **SMALL_LAUNCHER, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
            )

    @property
    def output(self) -> str:
        """Return what it has written."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def end(self) -> int:
        """Have the program end, and return its exit code."""
        self._stop.touch()
        return self.process.wait(PATIENCE_S)


def executors(api: KubernetesApi) -> list[Resource]:
    """Return the executors' pods that exist."""
    listed = api.get(f"/api/v1/namespaces/{JOBS}/pods?labelSelector={EXECUTORS}")
    assert listed is not None, "pods cannot be listed"
    found: list[Resource] = json.loads(listed)["items"]
    return found


def until_executors(api: KubernetesApi, driver: Driver, holds: Callable[[list[Resource]], bool]) -> list[Resource]:
    """Wait until something holds of the executors' pods, and return them."""
    found: list[Resource] = []

    def executors_exist() -> bool:
        found[:] = executors(api)
        assert driver.process.poll() is None, driver.output
        return holds(found)

    wait_until(executors_exist, timeout_s=PATIENCE_S, what="executors", context=lambda: driver.output[-4000:])
    return found


def application_of(kind: str, conf: dict[str, str]) -> SparkApplication:
    """One executor, by the namespace's default account."""
    metadata = {"name": f"live-{kind.lower()}", "namespace": JOBS, "uid": "0a1b2c3d-0000-0000-0000-000000000000"}
    metadata |= {"creationTimestamp": "2026-03-02T10:00:00Z", "resourceVersion": "1"}
    spec = {
        "type": kind,
        "image": "spark:1",
        "batchScheduler": "yunikorn",
        "mainApplicationFile": "local:///opt/jobs/program.py",
        "sparkConf": {**NO_WAITING, **conf},
        "driver": {"memory": "512m", "javaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"},
        "executor": {"instances": 1, "memory": "1g"},
    }
    return read_spark_application({"metadata": {**metadata, "generation": 1}, "spec": spec})


@pytest.mark.parametrize(
    ("kind", "mebibytes", "deletes"),
    [("Python", 1024 + 409, False), *in_soak(("Java", 1024 + 384, True))],
    ids=["python", "jvm"],
)
def test_a_driver_gets_executors_with_the_rights_of_the_chart(
    rights: KubernetesApi, tmp_path: Path, kind: str, mebibytes: int, deletes: bool
) -> None:
    """Created, labelled or deleted when one fails, and replaced, without a refusal; memory is the heap and the language's overhead.

    The overhead is that of Kubeflow's operator: two fifths of the heap for Python and R, a tenth for the JVM, and 384 MiB at least. By
    default the operator deletes executors at the end of the attempt; a user may have Spark do so (deleteOnTermination).
    """
    application = application_of(kind, {"spark.kubernetes.executor.deleteOnTermination": "true"} if deletes else {})
    pod = dict(driver_pod(application, 1))
    del pod["metadata"]["ownerReferences"]  # there is no such application
    rights.kubectl("create", "--filename=-", stdin=json.dumps(pod), check=True)
    driver = Driver(rights, tmp_path, application)
    try:
        (first,) = until_executors(rights, driver, lambda found: len(found) == 1)
        assert first["spec"]["containers"][0]["resources"]["requests"]["memory"] == f"{mebibytes}Mi"
        assert first["spec"]["schedulerName"] == "yunikorn"
        owners = [owner["name"] for owner in first["metadata"]["ownerReferences"]]
        assert owners == [pod["metadata"]["name"]]

        fail(rights, first["metadata"]["name"])
        replaced = until_executors(rights, driver, lambda found: noted(found, first, deletes=deletes))
        assert len(replaced) == (1 if deletes else 2)
        assert driver.end() == 0, driver.output
        assert len(executors(rights)) == (0 if deletes else 2)
        assert owners_of_config_maps(rights) == (set() if deletes else set(owners))
    finally:
        driver.process.kill()
        driver.process.wait()
        rights.kubectl(f"--namespace={JOBS}", "delete", "pods,configmaps", "--all", "--force", "--grace-period=0")
    assert "orbidden" not in driver.output


def fail(api: KubernetesApi, name: str) -> None:
    """Play the kubelet: a pod has failed."""
    patch = json.dumps({"status": {"phase": "Failed"}})
    api.kubectl(
        f"--namespace={JOBS}",
        "patch",
        "pod",
        name,
        "--subresource=status",
        "--type=merge",
        f"--patch={patch}",
        check=True,
    )


def noted(found: list[Resource], failed: Resource, *, deletes: bool) -> bool:
    """Return whether Spark has replaced an executor that failed, and deleted it or labelled it as done with."""
    old = [item for item in found if item["metadata"]["uid"] == failed["metadata"]["uid"]]
    done_with = not old if deletes else any("spark-exec-inactive" in item["metadata"]["labels"] for item in old)
    return done_with and len(found) > len(old)


def owners_of_config_maps(api: KubernetesApi) -> set[str]:
    """Return the pods that own the executors' ConfigMaps, and go with which these go."""
    output = "--output=jsonpath={.items[*].metadata.ownerReferences[*].name}"
    listed = api.kubectl(f"--namespace={JOBS}", "get", "configmaps", f"--selector={EXECUTORS}", output, check=True)
    return set(listed.stdout.split())


def test_the_accounts_are_the_charts(chart: Chart) -> None:
    """Those that are asked about are all that there are."""
    resources = chart.render(VALUES)

    for account in ACCOUNTS:
        assert one(resources, "ServiceAccount", account)["metadata"]["namespace"] == JOBS
