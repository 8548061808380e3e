"""A resource that has started is not run again when it is restored without its status: from a backup, or from an exported manifest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_operator import kinds
from kafka_operator.names import ORIGIN
from kafka_operator.resources.reassignment import ReassignmentStatus, State
from reconciler.decide.conditions import TRUE, condition_of
from reconciler.decide.started import RESTORED, decide_started, marked_first
from reconciler.decide.steps import Done, Mark, Wait, WriteStatus
from reconciler.names import STARTED, Key
from reconciler.resources.metadata import Metadata
from spark_operator.resources.status import SparkStatus
from tests.kafka_operator.makers import NOW, raw_election, raw_plan, raw_reassignment, raw_topic
from tests.kafka_operator.makers import reassignment as read
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time
from tests.spark_operator.fake_spark import APPLICATION
from tests.spark_operator.makers import raw_spark, spark_running

MOVE = Key(kinds.REASSIGNMENT, "shop", "move")
ELECT = Key(kinds.ELECTION, "shop", "elect")
ORDERS = Key(kinds.TOPIC, "shop", "orders")
DIGEST = f"sha256:{'0' * 64}"


def metadata(mark: str | None, **fields: Any) -> Metadata:
    """Metadata of a Reassignment of uid-r, with the annotation or without."""
    found = read(plan=raw_plan(p0=[1])).metadata
    return replace(found, annotations=() if mark is None else ((STARTED, mark),), **fields)


@pytest.mark.parametrize("mark", [f"uid-old/1/{DIGEST}", "uid-r/1/-", "true", ""])
def test_what_is_marked_and_has_no_state_waits_for_a_user(mark: str) -> None:
    """Also with the uid of the object itself (its status was replaced), and with a text that a user wrote."""
    step = decide_started(metadata(mark), ReassignmentStatus(observed_generation=-1), NOW)

    assert isinstance(step, WriteStatus)
    ready = step.status.conditions[0]
    assert (ready.status, ready.reason, step.status.observed_generation, step.status.state) == (
        "False",
        RESTORED,
        1,
        None,
    )
    assert "kubectl annotate --namespace shop reassignments.steward.dev move steward.dev/started-" in ready.message
    assert (f"with the plan {DIGEST}" in ready.message) == (DIGEST in mark)
    stalled = condition_of(step.status.conditions, "Stalled")
    assert stalled is not None
    assert stalled.status == TRUE
    assert step.event is not None
    assert (step.event.warning, step.event.reason) == (True, RESTORED)
    assert decide_started(metadata(mark), step.status, NOW) == Done()


def test_what_has_a_state_or_no_mark_or_is_being_deleted_is_decided_on_as_usual() -> None:
    """A restore with the status goes on where it was; without the annotation the object is new."""
    old = "uid-old/1/-"

    assert decide_started(metadata(old), ReassignmentStatus(state=State.RUNNING), NOW) is None
    assert decide_started(metadata(None), ReassignmentStatus(), NOW) is None
    assert decide_started(metadata(old, deleted=NOW), ReassignmentStatus(), NOW) is None


def test_an_object_that_is_marked_before_its_first_status_differs_from_a_copy_by_its_uid() -> None:
    """A SparkApplication whose operator was killed between the mark and the first status goes on."""
    assert decide_started(metadata("uid-r/1/-"), SparkStatus(), NOW, status_follows=True) is None
    assert isinstance(decide_started(metadata("uid-old/1/-"), SparkStatus(), NOW, status_follows=True), WriteStatus)


def test_an_effect_is_preceded_by_the_mark_of_this_object() -> None:
    """Uid, generation and digest; once, and never for an object that is being deleted."""
    step = Wait(1)
    mark = Mark(f"uid-r/1/{DIGEST}")

    assert marked_first(metadata(None), step, effect=True, digest=DIGEST) == mark
    assert marked_first(metadata("uid-old/1/-"), step, effect=True, digest=DIGEST) == mark
    assert marked_first(metadata(mark.text), step, effect=True, digest=DIGEST) == step
    assert marked_first(metadata(None), step, effect=False) == step
    assert marked_first(metadata(None, deleted=NOW), step, effect=True) == step


async def moved_and_moved_back(world: World) -> None:
    """A plan was carried out, and another client has moved the partition since."""
    world.kafka.add("orders", [(1, 2, 3)])
    world.kube.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4])))
    await world.until(lambda: world.kube.ready(MOVE)[0] == "True")
    await world.run(5)
    world.kafka.topics["orders"].replicas[0] = (1, 2, 3)


@pytest.mark.shows("F42")
@in_virtual_time
async def test_a_restored_reassignment_moves_nothing_until_its_annotation_is_removed() -> None:
    """Velero leaves status out: without the annotation the plan would be carried out again, weeks later."""
    async with running() as world:
        await moved_and_moved_back(world)

        world.kube.restore(MOVE)
        await world.run(300)

        assert world.kube.ready(MOVE)[:2] == ("False", RESTORED)
        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)]
        await world.check_that_writes_have_ended()

        world.kube.annotate(MOVE, STARTED, None)
        await world.until(lambda: world.kube.ready(MOVE)[0] == "True")
        assert world.kafka.topics["orders"].replicas == [(2, 3, 4)]


@in_virtual_time
async def test_a_restored_reassignment_waits_also_where_its_cluster_is_away() -> None:
    """A cluster that cannot be read, at first, is no way around: the state stays unknown."""
    async with running() as world:
        await moved_and_moved_back(world)
        world.kafka.reachable = False
        world.kube.restore(MOVE)
        await world.run(60)
        world.kafka.reachable = True
        await world.run(60)

        assert world.kube.ready(MOVE)[:2] == ("False", RESTORED)
        assert world.kafka.topics["orders"].replicas == [(1, 2, 3)]


@in_virtual_time
async def test_a_reassignment_restored_in_the_middle_moves_nothing_and_a_proposal_is_made_again() -> None:
    """What had begun is marked before the first move; what only waited for approval has had no effect."""
    async with running() as world:
        world.kafka.move_s = 1000
        world.kafka.add("orders", [(1, 2, 3)])
        world.kube.apply(raw_reassignment(plan=raw_plan(p0=[2, 3, 4]), throttle={"bytesPerSecond": 10_000_000}))
        proposal = replace(MOVE, name="proposal")
        world.kafka.add("other", [(1, 2, 3)])
        world.kube.apply(raw_reassignment("proposal", plan=raw_plan("other", p0=[2, 3, 4]), approval="Required"))
        await world.until(lambda: world.kube.objects[MOVE].get("status", {}).get("state") == "Running")
        digest = world.kube.objects[MOVE]["status"]["digest"]
        assert world.kube.objects[MOVE]["metadata"]["annotations"][STARTED].endswith(f"/1/{digest}")

        for key in (MOVE, proposal):
            world.kube.restore(key)
        await world.run(30)

        assert world.kube.ready(MOVE)[:2] == ("False", RESTORED)
        assert world.kube.objects[proposal]["status"]["state"] == "Proposed"


@in_virtual_time
async def test_a_reassignment_that_ended_before_this_release_is_marked_too() -> None:
    """Upgrade: the annotation is written for those that ended under 0.1.0."""
    async with running() as world:
        await moved_and_moved_back(world)
        world.kube.annotate(MOVE, STARTED, None)
        await world.kill()
        world.start()
        await world.run(10)

        world.kube.restore(MOVE)
        await world.run(60)

        assert world.kube.ready(MOVE)[:2] == ("False", RESTORED)


@in_virtual_time
async def test_a_restored_election_elects_nothing() -> None:
    """An unclean election that is repeated may lose records."""
    async with running() as world:
        world.kafka.add("orders", [(1, 2, 3)])
        world.kafka.leaders.clear()
        world.kube.apply(raw_election(topics=["orders"]))
        await world.until(lambda: world.kube.ready(ELECT)[0] == "True")
        await world.run(5)
        asked = len(world.kafka.elections)

        world.kube.restore(ELECT)
        await world.run(60)

        assert world.kube.ready(ELECT)[:2] == ("False", RESTORED)
        assert len(world.kafka.elections) == asked
        world.kube.annotate(ELECT, STARTED, None)
        await world.until(lambda: world.kube.ready(ELECT)[0] == "True")


@pytest.mark.parametrize(("policy", "runs"), [("Never", False), ("OnFailure", False), ("Always", True)])
def test_a_restored_spark_application_runs_again_only_with_restart_policy_always(policy: str, runs: bool) -> None:
    """A run has its result; a service is there to run."""

    @in_virtual_time
    async def story() -> None:
        async with spark_running() as world:
            world.kube.apply(raw_spark(restartPolicy={"type": policy}))
            await world.until(lambda: bool(world.fake.drivers()))
            await world.run(60)
            created = len(world.fake.created)

            world.kube.restore(APPLICATION)
            await world.run(3)

            assert (len(world.fake.created) > created) == runs
            assert (world.kube.ready(APPLICATION)[1] == RESTORED) != runs

    story()


@in_virtual_time
async def test_a_restored_topic_and_cluster_go_on_as_they_were() -> None:
    """Their status is observed: it is read from Kafka again, and the topic with its records stays."""
    async with running() as world:
        world.kube.apply(raw_topic(config={"retention.ms": "1"}))
        await world.until(lambda: world.kube.ready(ORDERS)[0] == "True")
        before = world.kube.objects[ORDERS]["status"]["topicId"]

        world.kube.restore(ORDERS)
        world.kube.restore(Key(kinds.CLUSTER, "shop", "main"))
        await world.run(30)

        assert world.kube.ready(ORDERS)[0] == "True"
        assert world.kube.objects[ORDERS]["status"]["topicId"] == before
        assert ORIGIN in world.kube.objects[ORDERS]["metadata"]["annotations"]
