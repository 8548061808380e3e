"""The other engines: Kubeflow's operator, whose status is shown, and processes of this machine."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.kube.port import RefusedError
from spark_operator.decide.problems import SparkProblem
from spark_operator.engine.local import LocalDrivers
from spark_operator.resources.application import SparkApplication
from spark_operator.resources.pods import Phase, SparkPod, read_spark_pod
from tests.kafka_operator.makers import Raw
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import APPLICATION
from tests.spark_operator.makers import DRIVER, SparkWorld, raw_spark, spark, spark_running

HANDED_OVER = {"engine": "SparkOperator", "sparkVersion": "4.0.0"}
WHERE = ("shop", "pi")
PATIENCE_S = 30.0


def report(world: SparkWorld, state: str, **more: Any) -> None:
    """Have Kubeflow's operator write a status."""
    world.fake.kubeflow[WHERE]["status"] = {"applicationState": {"state": state}, **more}


@in_virtual_time
async def test_kubeflows_operator_is_given_its_resource_and_its_status_is_shown() -> None:
    """State by state; the end is ours to keep."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(**HANDED_OVER))
        await world.until(lambda: WHERE in world.fake.kubeflow)
        assert world.fake.created == []

        executors = {"a": "RUNNING", "b": "PENDING"}
        submitted = "2026-01-01T12:00:05Z"
        report(
            world,
            "RUNNING",
            executionAttempts=1,
            driverInfo={"podName": "pi-driver"},
            executorState=executors,
            lastSubmissionAttemptTime=submitted,
        )
        await world.until(lambda: world.status().get("state") == "Running")
        assert world.status()["executors"] == {"running": 1, "pending": 1, "succeeded": 0, "failed": 0}
        assert world.status()["driver"]["podName"] == "pi-driver"

        report(world, "COMPLETED", executionAttempts=1, terminationTime="2026-01-01T12:01:05Z")
        await world.until(lambda: world.status().get("state") == "Completed")
        assert world.kube.ready(APPLICATION)[:2] == ("True", "Completed")
        assert world.status()["completionTime"] == "2026-01-01T12:01:05Z"


@in_virtual_time
async def test_the_message_of_kubeflows_operator_about_a_failure_is_reported() -> None:
    """In its words."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(**HANDED_OVER))
        await world.until(lambda: WHERE in world.fake.kubeflow)
        world.fake.kubeflow[WHERE]["status"] = {
            "applicationState": {"state": "FAILED", "errorMessage": "driver container failed"}
        }
        await world.until(lambda: world.status().get("state") == "Failed")
        assert "driver container failed" in world.kube.ready(APPLICATION)[2]


@in_virtual_time
async def test_suspend_is_passed_on_and_a_lost_resource_is_reported() -> None:
    """Both ways; a resource that was deleted outside is not created again."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(**HANDED_OVER))
        await world.until(lambda: WHERE in world.fake.kubeflow)
        report(world, "RUNNING")
        await world.until(lambda: world.status().get("state") == "Running")
        world.kube.apply(raw_spark(**HANDED_OVER, suspend=True))
        await world.until(lambda: world.fake.kubeflow[WHERE]["spec"].get("suspend") is True)

        del world.fake.kubeflow[WHERE]
        await world.until(lambda: world.status().get("state") == "Failed")
        assert world.kube.ready(APPLICATION)[1] == "MirrorLost"
        assert WHERE not in world.fake.kubeflow


@in_virtual_time
async def test_a_resource_that_is_anothers_is_left_alone() -> None:
    """The cluster has Kubeflow's operator already."""
    async with spark_running() as world:
        theirs: Raw = {"metadata": {"name": "pi", "resourceVersion": "1"}, "spec": {"suspend": False}}
        world.fake.kubeflow[WHERE] = theirs
        world.kube.apply(raw_spark(**HANDED_OVER))
        await world.run(30)
        assert world.kube.ready(APPLICATION)[:2] == ("False", "MirrorNameTaken")


@in_virtual_time
async def test_a_missing_operator_is_reported() -> None:
    """The kind is unknown to the API server, or refused."""
    async with spark_running() as world:
        world.fake.refusals = [RefusedError("404 the server could not find the requested resource")] * 5
        world.kube.apply(raw_spark(**HANDED_OVER))
        await world.run(5)
        assert world.status().get("state") is None


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[LocalDrivers]:
    """Drivers of this machine, with a stand-in for spark-submit that runs the first argument of the application."""
    program = tmp_path / "spark-submit"
    program.write_text('#!/bin/sh\nfor last; do :; done\necho "runs $last"\neval "$last"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    drivers = LocalDrivers(str(program))
    yield drivers
    await drivers.close()


async def until_ended(local: LocalDrivers, item: SparkApplication) -> SparkPod:
    """Wait until its process has ended."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            (found,) = await local.pods(item)
            if found.phase.ended:
                return found
            await asyncio.sleep(0.02)


def runs(command: str) -> SparkApplication:
    """An application of engine Local."""
    return spark(engine="Local", arguments=[command])


async def test_a_local_driver_runs_once_an_attempt_and_its_log_is_read(local: LocalDrivers) -> None:
    """O11: the same name, the same process."""
    item = runs("exit 3")
    first, second = await local.create(item, 1), await local.create(item, 1)
    assert isinstance(first, SparkPod)
    assert isinstance(second, SparkPod)
    assert (first.name, first.uid) == (second.name, second.uid)

    ended = await until_ended(local, item)
    assert (ended.phase, ended.exit_code, ended.name) == (Phase.FAILED, 3, DRIVER)
    assert await local.log(item, ended, 5) == "runs exit 3"
    await local.delete(item, ended)
    assert await local.pods(item) == ()


async def test_a_local_driver_that_succeeds_is_shown_so(local: LocalDrivers) -> None:
    """By its exit code."""
    item = runs("true")
    await local.create(item, 1)
    assert (await until_ended(local, item)).phase is Phase.SUCCEEDED


async def test_a_local_driver_ends_with_its_application(local: LocalDrivers) -> None:
    """And all below it."""
    item = runs("sleep 600")
    await local.create(item, 1)
    await local.keep(set())
    assert await local.pods(item) == ()


async def test_missing_spark_submit_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """And what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)

    found = await LocalDrivers().create(runs("true"), 1)
    assert isinstance(found, SparkProblem)
    assert "install pyspark" in found.message


def test_a_sidecar_keeps_no_application_from_ending() -> None:
    """The container that counts decides; a service mesh's runs on."""
    labels = {
        "steward.dev/spark-application-uid": "u",
        "steward.dev/spark-role": "driver",
        "steward.dev/spark-attempt": "1",
    }
    containers = [
        {"name": "proxy", "state": {"running": {}}},
        {"name": "spark-kubernetes-driver", "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}},
    ]
    raw = {
        "metadata": {"name": DRIVER, "uid": "p", "labels": labels},
        "status": {"phase": "Running", "containerStatuses": containers},
    }
    assert read_spark_pod(raw).phase is Phase.SUCCEEDED
