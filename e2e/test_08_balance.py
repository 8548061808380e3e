"""Balance by the clock: the schedule fires, driver and executor run, a report appears, and what they propose is approved and done."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from e2e import release as chart
from e2e.clients import KafkaClients
from e2e.images import STEWARD
from e2e.kube import Kube, Resource
from e2e.release import Release
from e2e.resources import REASSIGNMENTS, SPARK_APPLICATIONS, TOPICS, move, topic
from e2e.spark_image import SPARK
from lab.processes.waiting import wait_until

NAME = "lopsided"

PARTITIONS = 6

LEVELLED = "client_bytes_in"
"""Bytes that clients send to leaders."""

SCHEDULE = CLAIM = f"{chart.NAME}-balance"

SCHEDULES = "scheduledsparkapplications.steward.dev"

DATA = "/var/lib/steward"

SETTINGS: dict[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    # A table of sixty rows is read sooner than a class for it is compiled.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.ui.enabled": "false",
    # Nothing here runs long enough for the second compiler.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.log.level": "WARN",
}
"""A small study on a small machine."""

PADDING_BYTES = 2_000
"""Size of a record: large, so that the traffic of commits and other topics is negligible even on a slow machine."""

SAMPLED_S = 40.0
"""With Spark's start, more than a minute of samples: half a minute on either side of a full hour is enough."""

BEGUN_WITHIN_S = 90.0
"""A minute, and a sample."""

RUN_WITHIN_S = 300.0
"""Many short jobs of Spark, on two cores that also serve Kafka under load."""

DONE_WITHIN_S = 120.0

DRIVER, EXECUTOR = "balance-driver", "balance-executor"


def values(node: str | None) -> dict[str, Any]:
    """The chart's values: a sample every five seconds, a run every minute once allowed, and the least data for a study."""
    repository, tag = SPARK.split(":")
    small = {"coreRequest": "100m", "memory": "640m"}
    return {
        "enabled": True,
        "sampler": {"enabled": True, "intervalSeconds": 5},
        "schedule": {
            "enabled": True,
            "schedule": "* * * * *",
            "suspend": True,
            "image": {"repository": repository, "tag": tag},
            "storage": {"size": "1Gi"},
            "windowDays": 1,
            "minHours": 1,
            "minMinutes": 1,
            "goal": {"resources": [LEVELLED], "tolerancePercent": 10},
            "driver": small,
            "executor": {**small, "instances": 1},
            "nodeSelector": {} if node is None else {"kubernetes.io/hostname": node},
            "sparkConf": SETTINGS,
        },
    }


@pytest.fixture(scope="module")
def sampled(release: Release, clients: KafkaClients, spark_node: str | None) -> Iterator[Release]:
    """The release with the sampler, and a topic under load of which one broker has everything; runs may begin."""
    release.install(analytics=values(spark_node))
    release.kube.apply(topic(NAME, partitions=PARTITIONS, replication_factor=1, min_isr=1))
    release.kube.wait_condition(TOPICS, NAME, timeout_s=DONE_WITHIN_S)
    release.kube.apply(move("lopsided-on-one", {(NAME, number): [0] for number in range(PARTITIONS)}))
    release.kube.wait_condition(REASSIGNMENTS, "lopsided-on-one", timeout_s=DONE_WITHIN_S)
    witness = clients.witness(NAME, min_isr=1, padding_bytes=PADDING_BYTES)
    witness.run_for(SAMPLED_S)
    _suspend(release, suspend=False)
    yield release
    witness.stop()
    # A topic with one replica would hold up every restart of brokers from here on.
    release.kube.delete(TOPICS, NAME)
    wait_until(lambda: not clients.partitions(NAME), timeout_s=DONE_WITHIN_S, what=f"{NAME} gone", interval_s=1.0)
    release.install()
    # The chart leaves it behind, with the volume.
    release.kube.run("delete", "namespace", chart.JOBS_NAMESPACE, "--timeout=120s", timeout_s=150)


@pytest.mark.shows("F23", "E11")
@pytest.mark.timeout(1200)
def test_the_schedule_ends_in_a_proposal_that_levels_the_load_when_it_is_approved(
    sampled: Release, clients: KafkaClients
) -> None:
    """Nothing moves before the approval; after it the next study finds the skew that was promised, within five percent."""
    pods: set[str] = set()
    found = _next_run(sampled, [], pods)["status"]["summary"]
    print(f"first study: {json.dumps(found)}")
    proposal = sampled.kube.get(REASSIGNMENTS, found["reassignment"]) or {}

    assert {DRIVER, EXECUTOR} <= pods
    assert proposal["status"]["state"] == "Proposed"
    assert _leaders(clients) == {0}
    assert "<html" in _report(sampled, found["report"])

    approval = {"spec": {"approvedDigest": proposal["status"]["digest"]}}
    sampled.kube.run("patch", REASSIGNMENTS, found["reassignment"], "--type=merge", f"--patch={json.dumps(approval)}")
    sampled.kube.wait_condition(REASSIGNMENTS, found["reassignment"], timeout_s=DONE_WITHIN_S)
    known = _names(sampled)
    _suspend(sampled, suspend=False)
    second = _next_run(sampled, known, pods)["status"]["summary"]
    print(f"second study: {json.dumps(second)}")

    assert _leaders(clients) == {0, 1, 2}
    assert second["skewBefore"][LEVELLED] < found["skewBefore"][LEVELLED]
    assert second["skewBefore"][LEVELLED] == pytest.approx(found["skewAfter"][LEVELLED], rel=0.05)


def _leaders(clients: KafkaClients) -> set[int]:
    return {partition.leader for partition in clients.partitions(NAME).values()}


def _jobs(release: Release) -> Kube:
    """Return the cluster at the namespace of Spark jobs: schedule, runs, their pods and the volume are there."""
    return release.kube.within(chart.JOBS_NAMESPACE)


def _names(release: Release) -> list[str]:
    return [str(run["metadata"]["name"]) for run in _jobs(release).items(SPARK_APPLICATIONS)]


def _suspend(release: Release, *, suspend: bool) -> None:
    patch = json.dumps({"spec": {"suspend": suspend}})
    _jobs(release).run("patch", SCHEDULES, SCHEDULE, "--type=merge", f"--patch={patch}")


def _next_run(release: Release, known: list[str], pods: set[str]) -> Resource:
    """Wait for a run that began after those known and completed; components that had pods during the wait are added to `pods`.

    No other run follows, so that the next one finds the results of the test.
    """
    done: list[Resource] = []
    states: dict[str, Any] = {}

    def is_completed() -> bool:
        pods.update(
            str(pod["metadata"].get("labels", {}).get("app.kubernetes.io/component"))
            for pod in _jobs(release).items("pods")
        )
        for run in _jobs(release).items(SPARK_APPLICATIONS):
            states[run["metadata"]["name"]] = run.get("status", {})
            fresh = run["metadata"]["name"] not in known
            if fresh and run.get("status", {}).get("state") == "Completed":
                done.append(run)
        return bool(done)

    wait_until(lambda: len(_names(release)) > len(known), timeout_s=BEGUN_WITHIN_S, what="a run begun", interval_s=1.0)
    _suspend(release, suspend=True)
    wait_until(
        is_completed, timeout_s=RUN_WITHIN_S, what="a run completed", context=lambda: json.dumps(states), interval_s=1.0
    )
    return done[0]


def _report(release: Release, path: str) -> str:
    """Return the beginning of the report, read by a pod that has the volume."""
    name = "report-reader"
    container = {
        "name": "reader",
        "image": STEWARD,
        "command": ["head", "--bytes=2000", path.removeprefix("file://")],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [{"name": "data", "mountPath": DATA}],
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": CLAIM}}],
    }
    jobs = _jobs(release)
    jobs.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    jobs.run("wait", "--for=jsonpath={.status.phase}=Succeeded", f"pod/{name}", "--timeout=60s")
    message = jobs.run("logs", name)
    jobs.delete("pod", name, "--wait=false")
    return message
