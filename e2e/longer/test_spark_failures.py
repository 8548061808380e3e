"""Failures of Spark's pods on real nodes: the kubelet's messages reach the user, with a remedy.

`make e2e ARGS=e2e/longer`: minutes of Spark, which are not in every run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e import release as chart
from e2e.kube import Kube, Resource
from e2e.release import Release
from e2e.resources import API, SPARK_APPLICATIONS
from e2e.spark_image import SPARK
from lab.processes.waiting import wait_until

PROGRAM = Path(__file__).parents[1] / "pods" / "spark_failures.py"

SCRIPTS = "spark-failures"

ENDED_WITHIN_S = 400.0
"""Time for two runs of an executor, on two cores."""

HELD_WITHIN_S = 120.0

ENDED = {"Completed", "Failed"}

DRIVERS = "steward.dev/spark-role=driver"


@pytest.fixture(scope="module")
def analytics(release: Release) -> Iterator[Kube]:
    """The release with SparkApplications served, at the namespace of jobs, with the program in a ConfigMap."""
    release.install(analytics={"enabled": True})
    data = {PROGRAM.name: PROGRAM.read_text("utf-8")}
    jobs = release.kube.within(chart.JOBS_NAMESPACE)
    jobs.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SCRIPTS}, "data": data})
    yield jobs
    jobs.delete("configmap", SCRIPTS)
    release.install()


def application(name: str, node: str | None, *, image: str = SPARK) -> dict[str, Any]:
    """Return an application that is run once; its name is its failure."""
    where = {} if node is None else {"nodeSelector": {"kubernetes.io/hostname": node}}
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("scripts", "scratch", "memory")]
    small = {"coreRequest": "100m", "memory": "512m", "volumeMounts": mounts, **where}
    return {
        "apiVersion": API,
        "kind": "SparkApplication",
        "metadata": {"name": name},
        "spec": {
            "type": "Python",
            "image": image,
            "imagePullPolicy": "IfNotPresent",
            "mainApplicationFile": f"local:///scripts/{PROGRAM.name}",
            "arguments": [name],
            "restartPolicy": {"type": "Never"},
            "sparkConf": {"spark.ui.enabled": "false"},
            "volumes": [
                {"name": "scripts", "configMap": {"name": SCRIPTS}},
                {"name": "scratch", "emptyDir": {"sizeLimit": "16Mi"}},
                {"name": "memory", "emptyDir": {"medium": "Memory"}},
            ],
            "driver": small,
            "executor": {**small, "instances": 1},
        },
    }


def run(jobs: Kube, node: str | None, name: str) -> Resource:
    """Run an application to its end, and return it as it is then."""
    jobs.apply(application(name, node))
    found: list[Resource] = []

    def ended() -> bool:
        found[:] = [jobs.get(SPARK_APPLICATIONS, name) or {}]
        return found[0].get("status", {}).get("state") in ENDED

    wait_until(
        ended,
        timeout_s=ENDED_WITHIN_S,
        what=f"{name} ended",
        context=lambda: json.dumps(found[0].get("status")),
        interval_s=1.0,
    )
    return found[0]


def condition(jobs: Kube, name: str, kind: str = "Ready") -> tuple[str, str]:
    """Return a condition's status and reason, and show its message."""
    found = jobs.condition(SPARK_APPLICATIONS, name, kind)
    print(f"{name}: {kind} {found['status']} {found['reason']}: {found['message']}")
    return found["status"], found["reason"]


def test_an_image_that_no_node_has_is_named(analytics: Kube) -> None:
    """It waits, and its condition names the reason; deletion ends the wait."""
    analytics.apply(application("no-image", None, image="registry.invalid/spark:none"))

    analytics.wait_condition(
        SPARK_APPLICATIONS, "no-image", timeout_s=HELD_WITHIN_S, status="False", reason="ImageNotPulled"
    )
    assert condition(analytics, "no-image") == ("False", "ImageNotPulled")
    assert "ImageNotPulled" in _events(analytics, "no-image")
    analytics.delete(SPARK_APPLICATIONS, "no-image")
    wait_until(
        lambda: not analytics.items("pods", DRIVERS),
        timeout_s=HELD_WITHIN_S,
        what="its driver gone",
        interval_s=1.0,
    )


def test_a_driver_that_takes_too_much_memory_is_reported_as_out_of_memory(
    analytics: Kube, spark_node: str | None
) -> None:
    """Not as some exit code 137."""
    found = run(analytics, spark_node, "driver-memory")

    assert found["status"]["state"] == "Failed"
    assert condition(analytics, "driver-memory") == ("False", "DriverOutOfMemory")
    assert "DriverOutOfMemory" in _events(analytics, "driver-memory")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("executor-memory", "ExecutorsOutOfMemory"), ("executor-disk", "ExecutorsEvicted")],
)
def test_an_executor_is_lost_and_the_application_completed(
    analytics: Kube, spark_node: str | None, name: str, reason: str
) -> None:
    """Spark replaces it; the condition and an event describe the loss."""
    found = run(analytics, spark_node, name)

    assert found["status"]["state"] == "Completed", found["status"]
    assert condition(analytics, name, "ExecutorsHealthy") == ("False", reason)
    assert reason in _events(analytics, name)


def _events(jobs: Kube, name: str) -> set[str]:
    listed = json.loads(jobs.run("get", "events", "--output=json"))["items"]
    return {str(event["reason"]) for event in listed if event["involvedObject"]["name"] == name}
