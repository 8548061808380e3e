"""SparkApplications and schedules with the operator killed after its effects (O3, O11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from tests.kafka_operator.crash_stories import deaths
from tests.kafka_operator.makers import Raw
from tests.reconciler.documents import copied
from tests.reconciler.gate import Gate
from tests.reconciler.virtual_time import run_virtually
from tests.spark_operator.fake_spark import APPLICATION, FAILS, RUNS_FOREVER, SCHEDULE, SUCCEEDS, DriverScript
from tests.spark_operator.makers import SparkWorld, raw_schedule, raw_spark

pytestmark = pytest.mark.slow

Story = Callable[[SparkWorld], Awaitable[None]]

SETTLE_S = 60.0
TIMES = ("startTime", "submissionTime", "completionTime", "nextAttemptTime", "durationSeconds", "lastTransitionTime")


async def succeeds(world: SparkWorld) -> None:
    """The whole way."""
    world.kube.apply(raw_spark())


async def fails_once(world: SparkWorld) -> None:
    """Two attempts."""
    world.fake.scripts = [FAILS, SUCCEEDS]
    world.kube.apply(raw_spark(restartPolicy={"type": "OnFailure", "onFailureRetryInterval": 1}))


async def never_starts(world: SparkWorld) -> None:
    """The attempt fails by its time limit."""
    world.fake.scripts = [DriverScript(waiting="ImagePullBackOff")]
    world.kube.apply(raw_spark(startTimeoutSeconds=10))


async def suspended_and_resumed(world: SparkWorld) -> None:
    """Two attempts, with nothing between them."""
    world.fake.scripts = [RUNS_FOREVER, SUCCEEDS]
    world.kube.apply(raw_spark())
    await world.run(8)
    world.kube.apply(raw_spark(suspend=True))
    await world.run(20)
    world.kube.apply(raw_spark(suspend=False))


async def lives_for_a_while(world: SparkWorld) -> None:
    """Gone in the end."""
    world.kube.apply(raw_spark(timeToLiveSeconds=5))


async def deleted(world: SparkWorld) -> None:
    """Gone while it runs."""
    world.fake.scripts = [RUNS_FOREVER]
    world.kube.apply(raw_spark())
    await world.run(8)
    world.kube.delete(APPLICATION)


async def scheduled(world: SparkWorld) -> None:
    """A run, which is not kept."""
    world.kube.apply(raw_schedule(schedule="* * * * *", successfulRunHistoryLimit=0))
    await world.run(80)
    world.kube.apply(raw_schedule(schedule="* * * * *", successfulRunHistoryLimit=0, suspend=True))


async def replaced(world: SparkWorld) -> None:
    """A run that does not end makes room for the next."""
    world.fake.scripts = [RUNS_FOREVER]
    world.kube.apply(raw_schedule(schedule="* * * * *", concurrencyPolicy="Replace"))
    await world.run(130)
    world.kube.apply(raw_schedule(schedule="* * * * *", concurrencyPolicy="Replace", suspend=True))


def end_of(world: SparkWorld) -> object:
    """What a user sees, without what depends on the moment."""
    shown: dict[str, Raw] = {}
    for key, held in sorted(world.kube.objects.items()):
        status = copied(held.get("status", {}))
        for part in (status, *status.get("conditions", ())):
            for name in TIMES:
                part.pop(name, None)
        status.get("driver", {}).pop("uid", None)
        shown[str(key)] = status
    return shown, sorted(pod["metadata"]["name"] for pod in (*world.fake.drivers(), *world.fake.executors()))


async def run_story(story: Story, gate: Gate) -> tuple[object, list[str]]:
    """Run a story; return the final state, and the calls that were made. Without a kill, the writes must end."""
    undisturbed = gate.kill_at is None
    world = SparkWorld(gate)
    world.start()
    try:
        await world.run(0.5)
        await story(world)
        await world.run(SETTLE_S)
        calls = list(gate.calls)
        if undisturbed:
            await world.check_that_writes_have_ended()
        runs = [key for key in world.kube.objects if key not in {APPLICATION, SCHEDULE}]
        assert len(set(world.fake.created)) == len(world.fake.created), "two drivers of one attempt"
        assert world.fake.max_alive_drivers <= 1, "two drivers at once"
        assert len(runs) <= 3
        return end_of(world), calls
    finally:
        await world.kill()


@pytest.mark.shows("O11")
@pytest.mark.parametrize(
    "story",
    [succeeds, fails_once, never_starts, suspended_and_resumed, lives_for_a_while, deleted, scheduled, replaced],
)
def test_the_end_is_the_same_whichever_call_it_dies_at(story: Story) -> None:
    """O3 and O11: one driver an attempt, one run a time, nothing left over."""
    expected, calls = run_virtually(run_story(story, Gate()))
    assert any(call.startswith("kube create") for call in calls)

    for number, after in deaths(calls):
        found, _ = run_virtually(run_story(story, Gate(kill_at=number, after=after)))
        where = f"killed {'after' if after else 'before'} call {number}: {calls[number - 1]}"
        assert found == expected, where
