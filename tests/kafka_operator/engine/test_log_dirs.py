"""Replicas moved between the log directories of their brokers (goal balanceLogDirs), over fakes and virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator import kinds
from kafka_operator.decide.kafka.log_dirs import LogDir
from kafka_operator.decide.kafka.observed import Failure
from kafka_operator.engine import replica_dir_reader
from kafka_operator.resources.reassignment import Partition
from reconciler.names import Key
from tests.kafka_operator.engine.test_throttles import MOVE, condition, status
from tests.kafka_operator.fake_brokers import LOG_DIRS_RATE
from tests.kafka_operator.makers import raw_reassignment
from tests.kafka_operator.tenants import TEAM, allow, tenant_move
from tests.kafka_operator.world import World, running
from tests.reconciler.virtual_time import in_virtual_time, run_virtually

GIB = 2**30
GOAL = {"balanceLogDirs": True}
FIXED = {"bytesPerSecond": 5_000_000}


def have_uneven_directories(world: World, move_s: float = 3.0) -> None:
    """Topic `orders` of four partitions on brokers 1 and 2, all in the first directory of each; the second volume is empty."""
    world.kafka.move_s = move_s
    world.kafka.add("orders", [(1, 2)] * 4)
    world.kafka.sizes = {Partition("orders", index): GIB for index in range(4)}
    volumes = (("/a", 6 * GIB), ("/b", 10 * GIB))
    directories = tuple(LogDir(path, total_bytes=10 * GIB, usable_bytes=usable) for path, usable in volumes)
    world.kafka.log_dirs = {1: directories, 2: directories}


def dirs(world: World) -> dict[str, list[int]]:
    """Return the partitions in directory /b of each broker."""
    world.kafka.settle_dirs()
    found: dict[str, list[int]] = {}
    for (broker, partition), path in sorted(world.kafka.replica_dirs.items()):
        if path == "/b":
            found.setdefault(str(broker), []).append(partition.index)
    return found


async def approved(world: World, **spec: object) -> None:
    """Propose the goal and approve the proposal."""
    world.kube.apply(raw_reassignment(goal=GOAL, **spec))
    await world.until(lambda: status(world).get("state") == "Proposed", seconds=10)
    world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=status(world)["digest"], **spec))


@pytest.mark.shows("F44")
@in_virtual_time
async def test_the_directories_of_a_broker_are_levelled_after_approval_under_a_throttle() -> None:
    """Half of the bytes of each broker move to its empty volume, and no replica to another broker (KIP-113)."""
    async with running() as world:
        have_uneven_directories(world)
        world.kafka.broker_configs[1] = {LOG_DIRS_RATE: "777"}

        await approved(world, throttle=FIXED, concurrency={"perBroker": 1})

        proposal = status(world)["proposal"]
        assert proposal["bytesToMove"] == 4 * GIB
        assert [item["bytesAfter"] for item in proposal["logDirs"]] == [2 * GIB] * 4
        assert world.kafka.dir_calls == []
        await world.until(lambda: status(world)["state"] == "Completed", seconds=120)
        assert {broker: len(held) for broker, held in dirs(world).items()} == {"1": 2, "2": 2}
        assert world.kafka.submitted == []
        assert set(world.kafka.rates_at_dir_calls) == {"5000000"}
        assert len(world.kafka.dir_calls) > 1
        assert world.kafka.throttled() == {"1": {LOG_DIRS_RATE: "777"}}
        assert status(world)["progress"]["bytesMoved"] == 4 * GIB


@pytest.mark.shows("F16", "F44")
@pytest.mark.parametrize("end", ["cancel", "rollback", "delete"])
def test_a_move_between_directories_is_reverted_at_every_early_end(end: str) -> None:
    """The future logs are gone, and so is the throttle."""

    async def story() -> None:
        async with running() as world:
            have_uneven_directories(world, move_s=1000)
            await approved(world, throttle=FIXED)
            await world.until(lambda: bool(world.kafka.futures), seconds=30)
            digest = status(world)["digest"]
            if end == "delete":
                world.kube.delete(MOVE)
            else:
                world.kube.apply(
                    raw_reassignment(goal=GOAL, approvedDigest=digest, throttle=FIXED, action=end.capitalize())
                )
            await world.run(40)
            assert world.kafka.futures == {}
            assert dirs(world) == {}
            assert world.kafka.throttled() == {}
            assert end == "delete" or status(world)["state"] in {"Cancelled", "RolledBack"}

    run_virtually(story())


@pytest.mark.shows("F18", "F44")
@in_virtual_time
async def test_a_rollback_returns_every_replica_to_its_previous_directory() -> None:
    """After the end, too."""
    async with running() as world:
        have_uneven_directories(world)
        await approved(world)
        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)
        assert dirs(world) != {}

        world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=status(world)["digest"], action="Rollback"))
        await world.until(lambda: status(world)["state"] == "RolledBack", seconds=60)

        assert dirs(world) == {}


@in_virtual_time
async def test_a_refused_move_fails_the_plan_and_cancels_the_others() -> None:
    """A directory that fails while the plan runs: KAFKA_STORAGE_ERROR does not pass by itself."""
    async with running() as world:
        have_uneven_directories(world, move_s=1000)
        await world.run(1)
        message = Failure(56, "KAFKA_STORAGE_ERROR", "Log directory /b is offline")
        world.kafka.refuse_partitions = {Partition("orders", 3): message}

        await approved(world, throttle=FIXED)

        await world.until(lambda: status(world)["state"] == "Failed", seconds=60)
        assert "Log directory /b is offline" in world.kube.ready(MOVE)[2]
        assert world.kafka.futures == {}
        assert world.kafka.throttled() == {}


@in_virtual_time
async def test_a_move_that_one_broker_refuses_is_cancelled_on_the_other() -> None:
    """Both replicas of a partition move: the directory of broker 2 fails after the approval."""
    async with running() as world:
        have_uneven_directories(world, move_s=1000)
        world.kube.apply(raw_reassignment(goal=GOAL))
        await world.until(lambda: status(world).get("state") == "Proposed", seconds=10)
        good, failed = world.kafka.log_dirs[2]
        world.kafka.log_dirs[2] = (good, replace(failed, online=False))

        world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=status(world)["digest"]))
        await world.until(lambda: status(world)["state"] == "Failed", seconds=60)

        assert any(1 in targets for targets in world.kafka.dir_calls)
        assert world.kafka.futures == {}


@in_virtual_time
async def test_a_broker_that_does_not_answer_is_waited_for() -> None:
    """It continues its moves when it is back; a cancellation waits for it, and then reverts them."""
    async with running() as world:
        have_uneven_directories(world, move_s=40)
        await approved(world)
        await world.until(lambda: bool(world.kafka.futures), seconds=30)
        world.kafka.silent = {2}
        await world.run(60)
        assert status(world)["state"] == "Running"
        assert dirs(world)["1"] == dirs(world)["2"]
        world.kafka.silent = set()

        await world.until(lambda: status(world)["state"] == "Completed", seconds=60)


@in_virtual_time
async def test_a_move_of_another_client_makes_a_new_proposal_before_the_start() -> None:
    """Approval is for the directories in which the replicas were."""
    async with running() as world:
        have_uneven_directories(world)
        world.kube.apply(raw_reassignment(goal=GOAL))
        await world.until(lambda: status(world).get("state") == "Proposed", seconds=10)
        first = status(world)["digest"]
        moved = Partition("orders", next(item["partition"] for item in status(world)["plan"]))
        world.kafka.replica_dirs[1, moved] = "/b"

        world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=first))
        await world.until(lambda: world.kube.ready(MOVE)[1] == "BaseDrifted", seconds=60)

        assert status(world)["digest"] != first
        assert world.kafka.dir_calls == []
        assert condition(world, "Ready")[0] == "False"


def test_of_a_large_plan_only_the_moves_in_progress_are_read_at_each_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    """All logs of a broker are read before the plan, at its start, and every 30 s."""
    monkeypatch.setattr(replica_dir_reader, "MAX_NAMED_PARTITIONS", 1)

    async def story() -> None:
        async with running() as world:
            have_uneven_directories(world, move_s=10)
            await approved(world, concurrency={"cluster": 1})
            await world.until(lambda: status(world)["state"] == "Completed", seconds=120)
            asked = world.kafka.dirs_asked
            assert None in asked
            assert len([names for names in asked if names is None]) * 3 < len(asked)
            assert {broker: len(held) for broker, held in dirs(world).items()} == {"1": 2, "2": 2}

            world.kube.apply(raw_reassignment(goal=GOAL, approvedDigest=status(world)["digest"], action="Rollback"))
            await world.until(lambda: status(world)["state"] == "RolledBack", seconds=120)
            assert dirs(world) == {}

    run_virtually(story())


@in_virtual_time
async def test_another_namespace_cannot_balance_directories() -> None:
    """Directories, and the bytes in them, are those of whole brokers."""
    async with running() as world:
        have_uneven_directories(world)
        allow(world, {"namespaces": [TEAM], "topicNames": ["orders"]})

        world.kube.apply(tenant_move("even", goal=GOAL | {"topics": ["orders"]}, approval="Automatic"))
        key = Key(kinds.REASSIGNMENT, TEAM, "even")
        await world.until(lambda: status(world, key).get("state") == "Failed", seconds=60)

        assert world.kube.ready(key)[1] == "NotAllowed"
        assert world.kafka.dir_calls == []
