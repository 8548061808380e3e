"""Two of our processes and three brokers compete for the cluster: one acts, the others wait, and work goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.cluster import KafkaCluster, kafka_cluster
from lab.folder import lab_folder
from lab.http_get import http_get
from lab.steward import StewardController
from lab.traffic import Traffic
from lab.waiting import wait_until
from tests.integration.clusters import create_on
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import controller_epoch, judge_history, moving, unlike_zookeeper, wait_until_converged
from tests.integration.moves import fill, throttled

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

OURS = (1000, 999)
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
SHORT_SESSION = ("--session-timeout-ms=3000",)
WATCHED = "watched"


@dataclass
class Competition:
    """A cluster and two of our processes; `held` is made anew for whichever of them acts."""

    cluster: KafkaCluster
    ours: dict[int, StewardController]
    epochs: list[int] = field(default_factory=list)
    """Controller epochs of the tenures of ours that were waited for."""

    def others(self, acting: StewardController) -> list[StewardController]:
        """Those of ours that do not act."""
        return [one for one in self.ours.values() if one is not acting]

    def wait_until_held(self) -> Held:
        """Wait until one of ours acts, all of ours that run agree on it, and the cluster is told; under a new epoch."""
        before = self.epochs[-1] if self.epochs else 0

        def settled() -> bool:
            acting = self.ours.get(self.cluster.controller_id() or -1)
            return (
                acting is not None
                and controller_epoch(Held(self.cluster, acting)) > before
                and acting.metric(ACTIVE) == 1
                and all(one.metric(ACTIVE) == 0 for one in self.others(acting) if one.process.running)
            )

        wait_until(settled, timeout_s=PATIENCE_S, what="exactly one of ours acting under a new epoch")
        held = Held(self.cluster, self.ours[self.cluster.controller_id() or -1])
        self.epochs.append(controller_epoch(held))
        return held

    def wait_until_standing_by(self, process: StewardController) -> None:
        """Wait until a process says that it is there and does not act."""
        wait_until(lambda: process.ready, timeout_s=PATIENCE_S, what="a standby ready")
        answer = http_get(process.metrics_port, "/state")
        assert answer is not None
        assert json.loads(answer.body) == {"active": False, "controller_id": process.controller_id}
        assert process.metric(ACTIVE) == 0


@pytest.fixture(scope="module")
def competition() -> Iterator[Competition]:
    """Two of ours and three brokers; leave all five running."""
    with lab_folder() as folder, kafka_cluster((1, 2, 3), start=False, chroot=CHROOT, folder=folder) as cluster:
        connect = cluster.zookeeper_connect
        ours = {one: StewardController(connect, folder, controller_id=one, arguments=SHORT_SESSION) for one in OURS}
        try:
            for one in ours.values():
                one.launch()
            cluster.start_brokers()
            competition = Competition(cluster, ours)
            held = competition.wait_until_held()
            wait_until_converged(held, "the start of two of ours and three brokers")
            held.create(WATCHED, min_insync_replicas="2")
            yield competition
        finally:
            for one in ours.values():
                one.close()


@contextmanager
def nothing_is_lost(cluster: KafkaCluster) -> Iterator[None]:
    """B1: write to a topic while the block lasts; all that was acknowledged is there in the end, and clients saw no error."""
    with Traffic(cluster.bootstrap(), WATCHED, consume=False) as traffic:
        yield
        traffic.wait_for_acks(50)
        report = traffic.stop()
    assert report.ok, report.summary()


def judged(held: Held, what: str) -> None:
    """C1 to C6, C12: the cluster is as it must be, and somebody acts on it: a topic can be made."""
    wait_until_converged(held, what)
    held.create(f"after-{controller_epoch(held)}", partitions=1)
    judge = judge_history(held)
    assert judge.epochs == sorted(set(judge.epochs))


def test_the_other_one_takes_over_from_a_killed_one_and_work_goes_on(competition: Competition) -> None:
    """C5, C6, C9: kill -9 of the acting one amid a move; the other takes it up; the killed one comes back and stands by."""
    before = Held(competition.cluster, competition.ours[competition.cluster.controller_id() or -1])
    create_on(before, "passed-on", [1, 2], [2, 1])
    fill(before, "passed-on", 2)
    target = {0: [2, 3], 1: [3, 1]}

    with nothing_is_lost(competition.cluster):
        with throttled(before, "passed-on", 3):
            admin = KafkaAdminClient(bootstrap_servers=competition.cluster.bootstrap())
            admin.alter_partition_reassignments({TopicPartition("passed-on", one): on for one, on in target.items()})
            admin.close()
            before.controller.kill()
            held = competition.wait_until_held()
            assert moving(held, "passed-on") == {0, 1}
            before.controller.start()
            competition.wait_until_standing_by(before.controller)
            assert held.controller.controller_id == competition.cluster.controller_id()
        judged(held, "kill -9 of the acting one of ours, with a move let go")

    assert before.controller is not held.controller
    assert target == competition.cluster.assignment("passed-on")


def test_somebody_takes_a_place_that_was_removed(competition: Competition) -> None:
    """C5, C6: /controller deleted by hand, twice; whoever was in it stops, and one of ours ends up in it."""
    with nothing_is_lost(competition.cluster):
        for _ in range(2):
            competition.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            held = competition.wait_until_held()
            judged(held, "the removal of /controller")
            for one in competition.others(held.controller):
                competition.wait_until_standing_by(one)


def test_the_other_one_takes_over_from_one_that_leaves(competition: Competition) -> None:
    """C5, C6: SIGTERM of the acting one gives the place up at once."""
    leaving = competition.ours[competition.cluster.controller_id() or -1]
    with nothing_is_lost(competition.cluster):
        assert leaving.stop() == 0
        held = competition.wait_until_held()
        judged(held, "SIGTERM of the acting one of ours")
    leaving.start()
    competition.wait_until_standing_by(leaving)

    assert leaving is not held.controller


def test_a_broker_stands_in_for_both_and_one_of_them_relieves_it(competition: Competition) -> None:
    """C5, C6: kill -9 of both; a broker acts meanwhile and is relieved by exactly one step."""
    cluster = competition.cluster
    with nothing_is_lost(cluster):
        for one in competition.ours.values():
            one.kill()
        wait_until(lambda: cluster.controller_id() in cluster.brokers, timeout_s=PATIENCE_S, what="a native controller")
        native = Held(cluster, competition.ours[OURS[0]])
        stood_in = controller_epoch(native)
        wait_until(lambda: not unlike_zookeeper(native), timeout_s=PATIENCE_S, what="brokers that know who stands in")
        native.create("by-a-broker", partitions=1)
        for one in competition.ours.values():
            one.launch()
        held = competition.wait_until_held()
        judged(held, "a broker's relief")
    for one in competition.others(held.controller):
        competition.wait_until_standing_by(one)

    assert competition.epochs[-2] < stood_in
    assert competition.epochs[-1] == stood_in + 1
