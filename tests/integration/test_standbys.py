"""Two Steward processes and three brokers compete for controllership: one is active, the others wait, and work goes on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from kafka import KafkaAdminClient, TopicPartition

from lab.checks.traffic import Traffic
from lab.peers.cluster import KafkaCluster, kafka_cluster
from lab.peers.steward import StewardController
from lab.processes.folder import lab_folder
from lab.processes.http_get import http_get
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on
from tests.integration.conftest import CHROOT, PATIENCE_S, Held
from tests.integration.faults import controller_epoch, judge_history, metadata_differences, moving, wait_until_converged
from tests.integration.moves import fill, throttled

pytestmark = pytest.mark.kafka

IDS = (1000, 999)
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"
SHORT_SESSION = ("--session-timeout-ms=3000",)
WATCHED = "watched"
NATIVE_ELECTION = re.compile(r"kafka\.controller\.KafkaController|^\S+Exception")


@dataclass
class Competition:
    """A cluster and two Steward processes; `held` is replaced whenever another one is active."""

    cluster: KafkaCluster
    processes: dict[int, StewardController]
    epochs: list[int] = field(default_factory=list)
    """Controller epochs of the awaited terms of Steward processes."""

    def others(self, acting: StewardController) -> list[StewardController]:
        """Steward processes that are standbys."""
        return [process for process in self.processes.values() if process is not acting]

    def wait_until_held(self) -> Held:
        """Wait until a Steward process is active under a new epoch, all running ones agree on it, and the brokers know it."""
        before = self.epochs[-1] if self.epochs else 0

        def settled() -> bool:
            acting = self.processes.get(self.cluster.controller_id() or -1)
            return (
                acting is not None
                and controller_epoch(Held(self.cluster, acting)) > before
                and acting.metric(ACTIVE) == 1
                and all(other.metric(ACTIVE) == 0 for other in self.others(acting) if other.process.running)
            )

        wait_until(settled, timeout_s=PATIENCE_S, what="exactly one active Steward process under a new epoch")
        held = Held(self.cluster, self.processes[self.cluster.controller_id() or -1])
        self.epochs.append(controller_epoch(held))
        return held

    def wait_until_standby(self, process: StewardController) -> None:
        """Wait until a process reports that it is a standby."""
        wait_until(lambda: process.ready, timeout_s=PATIENCE_S, what="a standby ready")
        answer = http_get(process.metrics_port, "/state")
        assert answer is not None
        assert json.loads(answer.body) == {"active": False, "controller_id": process.controller_id}
        assert process.metric(ACTIVE) == 0


@pytest.fixture(scope="module")
def competition() -> Iterator[Competition]:
    """Two Steward processes and three brokers; leave all five running."""
    with lab_folder() as folder, kafka_cluster((1, 2, 3), start=False, chroot=CHROOT, folder=folder) as cluster:
        connect = cluster.zookeeper_connect
        processes = {
            controller_id: StewardController(connect, folder, controller_id=controller_id, arguments=SHORT_SESSION)
            for controller_id in IDS
        }
        try:
            for process in processes.values():
                process.launch()
            cluster.start_brokers()
            competition = Competition(cluster, processes)
            held = competition.wait_until_held()
            wait_until_converged(held, "the start of two Steward processes and three brokers")
            held.create(WATCHED, min_insync_replicas="2")
            yield competition
        finally:
            for process in processes.values():
                process.close()


@contextmanager
def nothing_is_lost(cluster: KafkaCluster) -> Iterator[None]:
    """B1: write to a topic while the block lasts; all acknowledged records are there at the end, and clients saw no error."""
    with Traffic(cluster.bootstrap(), WATCHED, consume=False) as traffic:
        yield
        traffic.wait_for_acks(20)
        report = traffic.stop()
    assert report.ok, report.summary()


def check_cluster(held: Held, what: str) -> None:
    """C1 to C6, C12: the invariants hold, and the active controller works: a topic can be created."""
    wait_until_converged(held, what)
    held.create(f"after-{controller_epoch(held)}", partitions=1)
    judge = judge_history(held)
    assert judge.epochs == sorted(set(judge.epochs))


def test_the_standby_takes_over_from_a_killed_controller_and_work_goes_on(competition: Competition) -> None:
    """C5, C6, C9: kill -9 of the active process during a move; the other one continues it; the killed one comes back as a standby."""
    before = Held(competition.cluster, competition.processes[competition.cluster.controller_id() or -1])
    create_on(before, "passed-on", [1, 2], [2, 1])
    fill(before, "passed-on", 2)
    target = {0: [2, 3], 1: [3, 1]}

    with nothing_is_lost(competition.cluster):
        with throttled(before, "passed-on", 3):
            admin = KafkaAdminClient(bootstrap_servers=competition.cluster.bootstrap())
            admin.alter_partition_reassignments(
                {TopicPartition("passed-on", partition): on for partition, on in target.items()}
            )
            admin.close()
            before.controller.kill()
            held = competition.wait_until_held()
            assert moving(held, "passed-on") == {0, 1}
            before.controller.start()
            competition.wait_until_standby(before.controller)
            assert held.controller.controller_id == competition.cluster.controller_id()
        check_cluster(held, "kill -9 of the active process during a move")

    assert before.controller is not held.controller
    assert target == competition.cluster.assignment("passed-on")


def test_a_removed_controller_znode_causes_an_election(competition: Competition) -> None:
    """C5, C6: /controller deleted by hand, twice; the active process stops, and a Steward process is active in the end."""
    with nothing_is_lost(competition.cluster):
        for _ in range(2):
            competition.cluster.zookeeper.client.delete(f"{CHROOT}/controller")
            held = competition.wait_until_held()
            check_cluster(held, "the removal of /controller")
            for other in competition.others(held.controller):
                competition.wait_until_standby(other)


def test_the_standby_takes_over_from_a_stopped_controller(competition: Competition) -> None:
    """C5, C6: after SIGTERM the active process gives controllership up at once."""
    leaving = competition.processes[competition.cluster.controller_id() or -1]
    with nothing_is_lost(competition.cluster):
        assert leaving.stop() == 0
        held = competition.wait_until_held()
        check_cluster(held, "SIGTERM of the active process")
    leaving.start()
    competition.wait_until_standby(leaving)

    assert leaving is not held.controller


def native_elections(cluster: KafkaCluster) -> str:
    """Return what the brokers logged about elections of native controllers, and why one of them ended."""
    logs = {broker_id: broker.process.log_text().splitlines() for broker_id, broker in cluster.brokers.items()}
    return "\n".join(
        f"{broker_id}: {line}" for broker_id, lines in logs.items() for line in lines if NATIVE_ELECTION.search(line)
    )


def test_a_broker_takes_over_from_both_and_one_of_them_relieves_it(competition: Competition) -> None:
    """C5, C6: kill -9 of both; a broker is active in the meantime and is relieved in exactly one step."""
    cluster = competition.cluster
    with nothing_is_lost(cluster):
        for process in competition.processes.values():
            process.kill()
        wait_until(lambda: cluster.controller_id() in cluster.brokers, timeout_s=PATIENCE_S, what="a native controller")
        native = Held(cluster, competition.processes[IDS[0]])
        wait_until(
            lambda: not metadata_differences(native),
            timeout_s=PATIENCE_S,
            what="brokers that know the native controller",
        )
        native.create("by-a-broker", partitions=1)
        before = controller_epoch(native)
        for process in competition.processes.values():
            process.launch()
        held = competition.wait_until_held()
        check_cluster(held, "a broker's relief")
    for other in competition.others(held.controller):
        competition.wait_until_standby(other)

    assert competition.epochs[-2] < before
    assert competition.epochs[-1] == before + 1, native_elections(cluster)
