"""SparkApplications and schedules on a real API server, by a real operator with no more rights than the chart gives it.

A stand-in for the kubelet plays the pods; what runs in them is shown in a real cluster.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from lab.peers.kubernetes import OPERATOR, KubernetesApi
from lab.peers.steward import StewardOperator
from lab.processes.waiting import wait_until
from reconciler.resources.metadata import read_time
from tests.kafka_operator.live import PATIENCE_S, ROOT, Namespace
from tests.spark_operator.kubelet import FAILS, NO_IMAGE, RUNS_FOREVER, Kubelet
from tests.spark_operator.makers import raw_schedule, raw_spark

pytestmark = pytest.mark.kubernetes

RIGHTS = f"""
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: steward-operator-spark}}
rules:
  - {{apiGroups: [steward.dev], resources: ["*"], verbs: [get, list, watch, patch]}}
  - {{apiGroups: [steward.dev], resources: [reassignments], verbs: [create, approve, delete]}}
  - {{apiGroups: [steward.dev], resources: [elections], verbs: [delete]}}
  - {{apiGroups: [steward.dev], resources: [sparkapplications], verbs: [create, delete]}}
  - {{apiGroups: [""], resources: [events], verbs: [create]}}
  - {{apiGroups: [""], resources: [configmaps], verbs: [get, create]}}
  - {{apiGroups: [""], resources: [pods], verbs: [get, list, create, delete]}}
  - {{apiGroups: [""], resources: [pods/log], verbs: [get]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: steward-operator-spark}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: steward-operator-spark}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {OPERATOR}}}]
"""


@pytest.fixture(scope="module")
def operator(api: KubernetesApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StewardOperator]:
    """The operator with --spark, and a resync every three seconds."""
    api.kubectl("apply", "-f", "-", stdin=RIGHTS, check=True)
    folder = tmp_path_factory.mktemp("operator")
    process = StewardOperator(api.kubeconfig_for(OPERATOR), folder, arguments=["--spark", "--resync-interval-s=3"])
    process.start()
    yield process
    process.close()
    api.kubectl("delete", "-f", "-", stdin=RIGHTS, check=True)


@pytest.fixture
def jobs(api: KubernetesApi, operator: StewardOperator, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace of this test's own, which takes restricted pods alone."""
    assert operator.ready
    message = re.sub("[^a-z0-9]+", "-", request.node.name.lower())
    made = Namespace(api, f"{zlib.crc32(request.node.nodeid.encode()):08x}-{message}"[:63].strip("-"))
    api.kubectl("label", "namespace", made.name, "pod-security.kubernetes.io/enforce=restricted", check=True)
    yield made
    made.empty()


@pytest.fixture
def kubelet(jobs: Namespace) -> Iterator[Kubelet]:
    """What plays the pods of that namespace."""
    playing = Kubelet(jobs.api, jobs.name)
    playing.start()
    yield playing
    playing.close()


def until_state(jobs: Namespace, name: str, state: str) -> dict[str, Any]:
    """Wait until an application is in a state; return its status."""
    wait_until(
        lambda: jobs.status("SparkApplication", name).get("state") == state,
        timeout_s=PATIENCE_S,
        what=f"{name} is {state}",
        context=lambda: str(jobs.status("SparkApplication", name)),
    )
    return jobs.status("SparkApplication", name)


def test_an_application_is_one_driver_that_the_restricted_standard_takes(jobs: Namespace, kubelet: Kubelet) -> None:
    """Our operator creates the driver pod itself; state, attempts, duration, events; owner references."""
    jobs.apply(raw_spark("well"))
    status = until_state(jobs, "well", "Completed")

    (driver,) = kubelet.drivers()
    assert status["driver"]["podName"] == driver["metadata"]["name"]
    assert status["driver"]["exitCode"] == 0
    assert status["attempts"] == 1
    application = jobs.get("SparkApplication", "well")
    assert application is not None
    assert [owner["uid"] for owner in driver["metadata"]["ownerReferences"]] == [application["metadata"]["uid"]]
    assert "finalizers" not in application["metadata"]
    assert jobs.ready("SparkApplication", "well")[:2] == ("True", "Completed")
    wait_until(
        lambda: (
            [event for event in jobs.events("well") if event != ("Normal", "Running")]
            == [("Normal", "DriverCreated"), ("Normal", "Completed")]
        ),  # which a poll may miss
        timeout_s=PATIENCE_S,
        what="its start and its end are posted as events",
        context=lambda: str(jobs.events("well")),
    )
    row = jobs.kubectl("get", "sapp", "well")
    assert "Completed" in row
    assert "ATTEMPTS" in row


def test_another_attempt_has_another_driver(jobs: Namespace, kubelet: Kubelet) -> None:
    """O11; and the end, with what happened in its words."""
    kubelet.scripts["bad"] = FAILS
    policy = {"type": "OnFailure", "onFailureRetries": 1, "onFailureRetryInterval": 1}
    jobs.apply(raw_spark("bad", restartPolicy=policy))
    status = until_state(jobs, "bad", "Failed")

    assert {"attempts": 2, "failedAttempts": 2}.items() <= status.items()
    assert [name.rpartition("-")[2] for name in kubelet.names] == ["1", "2"]
    assert jobs.ready("SparkApplication", "bad")[:2] == ("False", "DriverFailed")


@pytest.mark.shows("O11")
def test_a_killed_operator_finds_its_driver_again(jobs: Namespace, kubelet: Kubelet, operator: StewardOperator) -> None:
    """O11: killed at any moment, one driver an attempt."""
    kubelet.scripts["long"] = RUNS_FOREVER
    jobs.apply(raw_spark("long"))
    wait_until(lambda: bool(kubelet.drivers()), timeout_s=PATIENCE_S, what="a driver is there")
    operator.kill()
    operator.start()
    status = until_state(jobs, "long", "Running")
    assert kubelet.names == [status["driver"]["podName"]]

    jobs.kubectl("patch", "sapp", "long", "--type=merge", "--patch", '{"spec":{"suspend":true}}')
    until_state(jobs, "long", "Suspended")
    assert kubelet.drivers() == []


def test_an_image_that_cannot_be_pulled_and_a_forbidden_pod_are_reported(jobs: Namespace, kubelet: Kubelet) -> None:
    """A condition and an event with the problem and what to do."""
    kubelet.scripts["image"] = NO_IMAGE
    jobs.apply(raw_spark("image"))
    jobs.apply(raw_spark("root", driver={"securityContext": {"privileged": True}}))
    jobs.apply(raw_spark("typo", driver={"volumeMounts": [{"name": "none", "mountPath": "/none"}]}))

    jobs.until("SparkApplication", "image", "False", "ImageNotPulled")
    jobs.until("SparkApplication", "root", "False", "DriverRefused")
    jobs.until("SparkApplication", "typo", "False", "DriverRefused")
    jobs.until_events("image", ("Normal", "DriverCreated"), ("Warning", "ImageNotPulled"))
    jobs.apply(raw_spark("host", driver={"podSecurityContext": {"runAsNonRoot": False}}))
    jobs.until("SparkApplication", "host", "False", "PodSecurity")


def test_a_schedule_starts_what_is_due_late_and_once(jobs: Namespace, kubelet: Kubelet) -> None:
    """Missed schedules are handled like a CronJob's: one is started late, the other reported."""
    assert kubelet.scripts == {}
    jobs.apply(raw_schedule("hourly", suspend=True))
    jobs.until("ScheduledSparkApplication", "hourly", "True", "Suspended")
    past = (datetime.now(UTC) - timedelta(hours=5)).strftime("%Y-%m-%dT%H:%M:%SZ")
    patch = json.dumps({"status": {"lastScheduleTime": past}})
    jobs.kubectl("patch", "ssapp", "hourly", "--subresource=status", "--type=merge", "--patch", patch)
    jobs.kubectl("patch", "ssapp", "hourly", "--type=merge", "--patch", '{"spec":{"suspend":false}}')

    wait_until(
        lambda: jobs.status("ScheduledSparkApplication", "hourly").get("lastRunName") is not None,
        timeout_s=PATIENCE_S,
        what="a run is created",
    )
    status = jobs.status("ScheduledSparkApplication", "hourly")
    until_state(jobs, status["lastRunName"], "Completed")
    assert len(jobs.kubectl("get", "sapp", "-o", "name").split()) == 1
    assert ("Warning", "MissedTimes") in jobs.events("hourly")
    wait_until(
        lambda: "active" not in jobs.status("ScheduledSparkApplication", "hourly"),
        timeout_s=PATIENCE_S,
        what="no run goes on",
    )
    assert status["lastRunName"] in jobs.kubectl("get", "ssapp", "hourly")


def test_an_invalid_schedule_is_reported(jobs: Namespace) -> None:
    """By condition; the message shows what to write."""
    jobs.apply(raw_schedule("no-zone", timeZone="Mars/Olympus"))
    jobs.apply(raw_schedule("no-time", schedule="61 * * * *"))

    jobs.until("ScheduledSparkApplication", "no-zone", "False", "InvalidSchedule")
    jobs.until("ScheduledSparkApplication", "no-time", "False", "InvalidSchedule")
    assert "such as Etc/UTC" in jobs.ready("ScheduledSparkApplication", "no-zone")[2]


def test_a_period_is_a_schedule(jobs: Namespace) -> None:
    """@every, as Kubeflow's examples write it."""
    jobs.apply(raw_schedule("period", schedule="@every 1h30m"))

    jobs.until("ScheduledSparkApplication", "period", "True", "Scheduled")
    created = read_time(jobs.get("ScheduledSparkApplication", "period")["metadata"]["creationTimestamp"])
    following = jobs.status("ScheduledSparkApplication", "period")["nextScheduleTime"]
    assert read_time(following) - created == timedelta(hours=1, minutes=30)
    assert "spec.schedule" in jobs.refusal(raw_schedule("none", schedule="@every now"))


def test_a_volume_with_a_further_unsupported_source_is_reported(jobs: Namespace) -> None:
    """The schema keeps what it does not know, so that the operator sees it: no part of a volume is dropped in silence."""
    jobs.apply(raw_spark("two", volumes=[{"name": "data", "emptyDir": {}, "hostPath": {"path": "/"}}]))

    jobs.until("SparkApplication", "two", "False", "InvalidVolume")
    assert "has emptyDir and hostPath" in jobs.ready("SparkApplication", "two")[2]


BAD_APPLICATIONS = [
    ({"mainApplicationFile": None}, "mainApplicationFile is required"),
    ({"image": None}, "image is required"),
    ({"engine": "SparkOperator"}, "sparkVersion is required with engine SparkOperator"),
    ({"engine": "Yarn"}, "Unsupported value"),
    ({"type": "Cobol"}, "Unsupported value"),
    ({"driver": {"memory": "much"}}, "spec.driver.memory"),
    ({"driver": {"cores": 0}}, "spec.driver.cores"),
    ({"executor": {"instances": 0}}, "spec.executor.instances"),
    ({"sparkConf": {"spark.master": "local"}}, "sparkConf cannot set master"),
    ({"sparkConf": {"spark.kubernetes.executor.podTemplateFile": "/x"}}, "sparkConf cannot set master"),
    ({"volumes": [{"name": "root", "hostPath": {"path": "/"}}]}, "A volume requires exactly one source"),
    ({"volumes": [{"name": "share", "nfs": {"server": "a", "path": "/"}}]}, "A volume requires exactly one source"),
    ({"volumes": [{"name": "none"}]}, "A volume requires exactly one source"),
    (
        {"volumes": [{"name": "two", "emptyDir": {}, "secret": {"secretName": "a"}}]},
        "A volume requires exactly one source",
    ),
    ({"sparkConf": {"spark.kubernetes.driver.label.team": "a"}}, "have no effect in sparkConf"),
    ({"sparkConf": {"spark.kubernetes.driverEnv.HOME": "/"}}, "have no effect in sparkConf"),
    ({"restartPolicy": {"type": "Sometimes"}}, "Unsupported value"),
    ({"logTailLines": 1000}, "spec.logTailLines"),
]


@pytest.mark.parametrize(("spec", "message"), BAD_APPLICATIONS, ids=lambda value: str(value)[:40])
def test_an_invalid_application_is_refused_at_apply(jobs: Namespace, spec: dict[str, Any], message: str) -> None:
    """All that can be known without the cluster."""
    raw = raw_spark("bad", **spec)
    raw["spec"] = {name: value for name, value in raw["spec"].items() if value is not None}
    assert message in jobs.refusal(raw)


def test_the_engine_cannot_be_changed_and_examples_are_accepted(jobs: Namespace) -> None:
    """Users copy them."""
    jobs.apply(raw_spark("kept", suspend=True))
    assert "engine cannot be changed" in jobs.refusal(raw_spark("kept", suspend=True, engine="Local"))
    for name in ("spark-application", "spark-schedule", "balance-run"):
        raw = yaml.safe_load((ROOT / "examples" / f"{name}.yaml").read_text(encoding="utf-8"))
        raw["spec"]["suspend"] = True
        jobs.apply(raw)
    assert "unknown field" in jobs.refusal(raw_spark("typo", sparkconf={}))
