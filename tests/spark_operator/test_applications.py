"""SparkApplications in the world of fakes: the whole way, and every way that it goes wrong."""

from __future__ import annotations

import pytest

from reconciler.names import PAUSE
from spark_operator.names import SPARK_ATTEMPT_LABEL
from tests.kafka_operator.world import RESYNC_S
from tests.reconciler.virtual_time import in_virtual_time, run_virtually
from tests.spark_operator.fake_spark import (
    APPLICATION,
    FAILS,
    OUT_OF_MEMORY,
    RUNS_FOREVER,
    SUCCEEDS,
    DriverScript,
    missing_account,
)
from tests.spark_operator.makers import raw_spark, spark_running

ENDED = {"Completed", "Failed"}


@in_virtual_time
async def test_an_application_runs_to_its_end_and_its_executors_go_with_it() -> None:
    """Submitted, Running, Completed; one driver; the driver's pod stays for its log; each event is posted once."""
    async with spark_running() as world:
        world.kube.apply(raw_spark())
        took_s = await world.until(lambda: bool(world.fake.drivers()))
        assert took_s < 1, "benchmark P10 is about this time"
        await world.until(lambda: world.status().get("state") == "Running")
        await world.run(2.5)
        assert world.status()["executors"] == {"running": 2, "pending": 0, "succeeded": 0, "failed": 0}

        await world.until(lambda: world.status()["state"] == "Completed")
        await world.run(10)

        assert world.kube.ready(APPLICATION)[:2] == ("True", "Completed")
        assert world.fake.executors() == []
        assert 1 == len(world.fake.drivers()) == len(world.fake.created)
        assert world.status()["attempts"] == 1
        assert world.status()["durationSeconds"] >= 4
        assert "executors" not in world.status()
        assert world.reasons() == ["DriverCreated", "Running", "Completed"]
        world.kube.writes.clear()
        await world.run(2 * RESYNC_S)
        assert world.kube.writes == []


@in_virtual_time
async def test_a_failed_attempt_is_followed_by_another_with_a_driver_of_its_own() -> None:
    """OnFailure: the log's tail is kept, the old driver goes, the n-th failure waits n intervals."""
    async with spark_running() as world:
        world.fake.scripts = [FAILS, FAILS, SUCCEEDS]
        policy = {"type": "OnFailure", "onFailureRetries": 2, "onFailureRetryInterval": 5}
        world.kube.apply(raw_spark(restartPolicy=policy))
        await world.until(lambda: world.status().get("state") == "PendingRerun")
        assert world.status()["driver"]["logTail"] == "Traceback: the last line\n"
        assert world.kube.ready(APPLICATION)[:2] == ("False", "DriverFailed")

        await world.until(lambda: world.status()["state"] == "Completed")

        assert [attempt for _, attempt in world.fake.created] == [1, 2, 3]
        assert world.fake.max_alive_drivers == 1
        assert {"attempts": 3, "failedAttempts": 2}.items() <= world.status().items()
        assert [driver["metadata"]["labels"][SPARK_ATTEMPT_LABEL] for driver in world.fake.drivers()] == ["3"]


@in_virtual_time
async def test_retries_come_to_an_end() -> None:
    """A limit on everything."""
    async with spark_running() as world:
        world.fake.scripts = [OUT_OF_MEMORY]
        policy = {"type": "OnFailure", "onFailureRetries": 1, "onFailureRetryInterval": 1}
        world.kube.apply(raw_spark(restartPolicy=policy))
        await world.until(lambda: world.status().get("state") == "Failed")

        assert world.kube.ready(APPLICATION)[:2] == ("False", "DriverOutOfMemory")
        assert "Raise spec.driver.memory" in world.kube.ready(APPLICATION)[2]
        assert world.status()["driver"]["exitCode"] == 137
        assert len(world.fake.created) == 2
        await world.run(10)
        assert world.fake.executors() == []


TROUBLES = [
    (DriverScript(waiting="ErrImagePull"), "ImageNotPulled", "The image spark:1 cannot be pulled"),
    (DriverScript(waiting="ImagePullBackOff"), "ImageNotPulled", "imagePullSecrets"),
    (DriverScript(waiting="Unschedulable"), "Unschedulable", "No node can run the driver: 0/3 nodes"),
    (DriverScript(waiting="CreateContainerConfigError"), "ContainerConfigError", "Check the Secrets"),
]


@pytest.mark.parametrize(("script", "reason", "message"), TROUBLES, ids=lambda value: getattr(value, "waiting", ""))
def test_an_obstacle_to_the_start_of_a_driver_is_reported_and_finally_fails_it(
    script: DriverScript, reason: str, message: str
) -> None:
    """By condition and event, once, while it may pass; after startTimeoutSeconds the attempt has failed."""

    async def story() -> None:
        async with spark_running() as world:
            world.fake.scripts = [script]
            world.kube.apply(raw_spark(startTimeoutSeconds=60))
            await world.run(20)
            assert world.status()["state"] == "Submitted"
            assert world.kube.ready(APPLICATION)[:2] == ("False", reason)
            assert message in world.kube.ready(APPLICATION)[2]
            assert world.reasons() == ["DriverCreated", reason]

            await world.run(60)
            assert world.status()["state"] == "Failed"
            assert world.kube.ready(APPLICATION)[:2] == ("False", reason)
            await world.run(10)
            assert world.fake.drivers() == [], "a driver that never started holds no place"

    run_virtually(story())


ENDINGS = [
    (DriverScript(exit_code=1, reason="Error"), "DriverFailed", "exit code 1"),
    (DriverScript(exit_code=137, reason="OOMKilled"), "DriverOutOfMemory", "memoryOverhead"),
    (DriverScript(exit_code=143, reason="Error", pod_reason="Evicted"), "DriverEvicted", "low on memory"),
]


@pytest.mark.parametrize(("script", "reason", "message"), ENDINGS, ids=lambda value: getattr(value, "reason", ""))
def test_the_reason_for_a_drivers_end_is_reported(script: DriverScript, reason: str, message: str) -> None:
    """What happened, and what to do."""

    async def story() -> None:
        async with spark_running() as world:
            world.fake.scripts = [script]
            world.kube.apply(raw_spark())
            await world.until(lambda: world.status().get("state") == "Failed")
            assert world.kube.ready(APPLICATION)[:2] == ("False", reason)
            assert message in world.kube.ready(APPLICATION)[2]

    run_virtually(story())


@pytest.mark.parametrize(
    ("executor_reason", "reason"), [("Evicted", "ExecutorsEvicted"), ("OOMKilled", "ExecutorsOutOfMemory")]
)
def test_lost_executors_are_reported_and_the_application_continues(executor_reason: str, reason: str) -> None:
    """A condition of its own: Spark replaces them, and the application may yet complete."""

    async def story() -> None:
        async with spark_running() as world:
            world.fake.scripts = [DriverScript(executors=2, executor_reason=executor_reason)]
            world.kube.apply(raw_spark())
            await world.until(lambda: world.status().get("state") == "Completed")
            (condition,) = [item for item in world.status()["conditions"] if item["type"] == "ExecutorsHealthy"]
            assert ("False", reason) == (condition["status"], condition["reason"])
            assert "exec-0" in condition["message"]
            assert world.reasons().count(reason) == 1

    run_virtually(story())


@in_virtual_time
async def test_a_driver_that_is_gone_is_not_made_again_in_the_same_attempt() -> None:
    """Deleted by a user, or with its node: the attempt has failed, and the policy determines what follows."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER, SUCCEEDS]
        world.kube.apply(raw_spark(restartPolicy={"type": "OnFailure", "onFailureRetryInterval": 1}))
        await world.until(lambda: world.status().get("state") == "Running")
        world.fake.remove(world.status()["driver"]["podName"])

        await world.until(lambda: world.status()["state"] == "Completed")
        assert [attempt for _, attempt in world.fake.created] == [1, 2]
        assert "DriverLost" in world.reasons()


@in_virtual_time
async def test_a_missing_service_account_is_reported_and_retried_by_the_policy() -> None:
    """SubmissionFailed is no attempt: no driver was created."""
    async with spark_running() as world:
        world.fake.refusals = [missing_account(), missing_account()]
        world.kube.apply(raw_spark(restartPolicy={"onSubmissionFailureRetries": 2}))
        await world.until(lambda: world.status().get("state") == "SubmissionFailed")
        assert world.kube.ready(APPLICATION)[:2] == ("False", "ServiceAccountMissing")
        assert "spec.driver.serviceAccount" in world.kube.ready(APPLICATION)[2]

        await world.until(lambda: world.status()["state"] == "Completed")
        assert world.status()["attempts"] == 1


@in_virtual_time
async def test_a_refused_driver_fails_the_application_where_nothing_is_to_be_tried_again() -> None:
    """The default: no retries of submissions."""
    async with spark_running() as world:
        world.fake.refusals = [missing_account()]
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Failed")
        assert "attempts" not in world.status()


@in_virtual_time
async def test_suspend_ends_what_runs_and_resume_begins_another_attempt() -> None:
    """All pods are deleted before Suspended is reported."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER, SUCCEEDS]
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Running")
        world.kube.apply(raw_spark(suspend=True))
        await world.until(lambda: world.status()["state"] == "Suspended")
        assert [] == world.fake.drivers() == world.fake.executors()

        world.kube.apply(raw_spark(suspend=False))
        await world.until(lambda: world.status()["state"] == "Completed")
        assert [attempt for _, attempt in world.fake.created] == [1, 2]


@in_virtual_time
async def test_one_that_is_created_suspended_starts_nothing() -> None:
    """Until it is resumed."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(suspend=True))
        await world.run(RESYNC_S)
        assert world.status()["state"] == "Suspended"
        assert world.fake.created == []


@in_virtual_time
async def test_the_time_to_live_takes_the_application_and_its_driver_away() -> None:
    """From its end on; edited afterwards, too."""
    async with spark_running() as world:
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Completed")
        await world.run(100)
        world.kube.apply(raw_spark(timeToLiveSeconds=60))
        await world.run(1)
        assert APPLICATION not in world.kube.objects
        assert world.fake.drivers() == []


@in_virtual_time
async def test_always_goes_on() -> None:
    """Attempt after attempt, one driver at a time."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(restartPolicy={"type": "Always", "onFailureRetryInterval": 2}))
        await world.run(60)
        attempts = [attempt for _, attempt in world.fake.created]
        assert list(range(1, len(attempts) + 1)) == attempts
        assert len(attempts) > 3
        assert world.fake.max_alive_drivers == 1


@in_virtual_time
async def test_a_deleted_application_takes_driver_and_executors_with_it() -> None:
    """By owner references alone: no finalizer."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER]
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Running")
        assert not world.kube.objects[APPLICATION]["metadata"].get("finalizers")
        world.kube.delete(APPLICATION)
        assert [] == world.fake.drivers() == world.fake.executors()
        await world.run(RESYNC_S)
        assert len(world.fake.created) == 1


@in_virtual_time
async def test_one_of_the_same_name_has_drivers_of_other_names() -> None:
    """The uid is part of the name, so a driver that is slow to go is not taken for the new one's."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER]
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Running")
        first = world.status()["driver"]["podName"]
        world.kube.delete(APPLICATION)
        world.kube.apply(raw_spark())
        await world.until(lambda: world.status().get("state") == "Running")
        assert first != world.status()["driver"]["podName"]


@pytest.mark.slow
@in_virtual_time
async def test_pods_of_a_hundred_applications_are_looked_at_by_one_list_at_a_time() -> None:
    """A list each second or two, not one for each application."""
    async with spark_running() as world:
        world.fake.scripts = [RUNS_FOREVER]
        for index in range(100):
            world.kube.apply(raw_spark(f"pi-{index}"))
        await world.run(5)
        before = world.gate.count("kube list pods")
        await world.run(60)
        assert world.gate.count("kube list pods") - before <= 61


@in_virtual_time
async def test_a_paused_application_is_left_alone() -> None:
    """As any other resource."""
    async with spark_running() as world:
        raw = raw_spark()
        raw["metadata"]["annotations"] = {PAUSE: "true"}
        world.kube.apply(raw)
        await world.run(10)
        assert world.fake.created == []
        world.kube.annotate(APPLICATION, PAUSE, None)
        await world.until(lambda: world.status().get("state") in ENDED)


@in_virtual_time
async def test_a_disabled_engine_is_reported() -> None:
    """Local runs programs as the operator itself."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(engine="Local"))
        await world.run(10)
        assert world.kube.ready(APPLICATION)[:2] == ("False", "EngineSwitchedOff")
        assert "--spark-local" in world.kube.ready(APPLICATION)[2]
        assert world.fake.created == []


@in_virtual_time
async def test_an_invalid_memory_size_is_reported() -> None:
    """A folder of manifests knows no schema."""
    async with spark_running() as world:
        world.kube.apply(raw_spark(driver={"memory": "much"}))
        await world.run(5)
        assert world.kube.ready(APPLICATION)[:2] == ("False", "InvalidMemory")
