"""Brokers that die before they hear from us, and that are back before their death is known: what goes in at their doors tells."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from kafka_wire.errors import ErrorCode
from lab.door import Door, Seen
from lab.traffic import Traffic
from lab.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster, on
from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.faults import judge_history, wait_until_converged

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(240)]

THREE = (1, 2, 3)
SPREAD = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
LONG_SESSION = ("--session-timeout-ms=20000",)
"""The controller keeps its place while it is frozen: a take-over would tell the brokers everything anew."""
BOUNCING, DYING = 1, 3
PATIENT = {BOUNCING: {"zookeeper.session.timeout.ms": "60000"}}
"""Its sessions last for longer than it takes to start, on any machine."""
ABOUT_TO_REGISTER = "Cluster ID = "
"""What a broker logs between its first word with ZooKeeper and its registration."""


@dataclass(frozen=True)
class Guarded:
    """A cluster whose brokers are reached through doors."""

    held: Held
    doors: Mapping[int, Door]

    def epoch(self, broker_id: int) -> int:
        """Read a registered broker's epoch: the transaction by which it registered."""
        found = self.held.cluster.zookeeper.client.exists(self.held.cluster.broker(broker_id).registration_path)
        assert found is not None, f"broker {broker_id} is not registered"
        return int(found.czxid)

    def queued(self, broker_id: int) -> float:
        """Ask our controller how many requests wait for a broker."""
        name = f'kafka_controller_controllerchannelmanager_queuesize{{broker_id="{broker_id}"}}'
        return self.held.controller.metric(name) or 0.0

    def requests(self, broker_id: int, since: int) -> list[Seen]:
        """What went in at a broker's door after its first `since` requests."""
        return self.doors[broker_id].seen[since:]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """Three brokers behind doors; leave them running and the doors open."""
    doors = {broker: Door() for broker in THREE}
    with held_cluster(THREE, arguments=LONG_SESSION, doors=doors, settings_of=PATIENT) as held:
        yield Guarded(held, doors)


def never_back(requests: list[Seen]) -> bool:
    """C13: no request of a broker's former life goes in behind one of its present life."""
    epochs = [request.broker_epoch for request in requests]
    return epochs == sorted(epochs)


def test_a_broker_killed_between_its_registration_and_its_first_request(guarded: Guarded) -> None:
    """C1, C2, C4, C12, C13, B1: the controller counts on a broker that has heard nothing and never will in this life.

    What has all replicas on it is led by it for as long as it is registered, by nobody then, and by its next life.
    """
    held = guarded.held
    create_on(held, "early", *SPREAD, min_insync_replicas="2")
    create_on(held, "alone", [DYING])
    broker, door, before = held.cluster.broker(DYING), guarded.doors[DYING], held.state("alone", 0)

    with Traffic(held.cluster.bootstrap(), "early", consume=False) as traffic:
        broker.stop()
        door.hold()
        since = len(door.seen)
        broker.launch()
        door.wait_until_held()
        wait_until(lambda: held.state("alone", 0)["leader"] == DYING, timeout_s=PATIENCE_S, what="a leader unheard of")
        first_life = guarded.epoch(DYING)
        broker.kill()
        door.open()
        broker.wait_until_deregistered()
        wait_until(lambda: held.state("alone", 0)["leader"] == -1, timeout_s=PATIENCE_S, what="its end known")
        broker.start()
        wait_until_converged(held, "a broker's start after a life without a request")
        traffic.wait_for_acks(100)
        report = traffic.stop()

    requests = guarded.requests(DYING, since)
    assert report.ok, report.summary()
    assert first_life not in {request.broker_epoch for request in requests}
    assert {request.broker_epoch for request in requests} == {guarded.epoch(DYING)}
    assert {request.error_code for request in requests} == {ErrorCode.NONE}
    assert held.state("alone", 0)["leader_epoch"] >= before["leader_epoch"] + 3
    judge_history(held)


@pytest.mark.parametrize("unseen", [True, False], ids=["seen as one change", "seen going and coming"])
def test_a_broker_that_bounces_faster_than_its_session(guarded: Guarded, *, unseen: bool) -> None:
    """C13 (KIP-380), C1, C2, C4, C12, B1: what waits for the old life is dropped, and the new one is told everything.

    The registration of the dead process stands in the way of its successor, as Kafka has it; so it is removed by hand.
    """
    held, topic = guarded.held, f"bounced-{unseen:d}"
    create_on(held, topic, *SPREAD, min_insync_replicas="2")
    broker, door, old_life = held.cluster.broker(BOUNCING), guarded.doors[BOUNCING], guarded.epoch(BOUNCING)
    starts = broker.process.log_text().count(ABOUT_TO_REGISTER)

    with Traffic(held.cluster.bootstrap(), topic, consume=False) as traffic:
        broker.kill()
        since = len(door.seen)
        broker.process.launch()
        # Nobody knows of its death yet: requests for it are made, and wait.
        new = [on(f"{topic}-meanwhile-{number}", [1, 2, 3]) for number in range(3)]
        created = held.admin.create_topics(new)
        wait_until(lambda: guarded.queued(BOUNCING) > 1, timeout_s=PATIENCE_S, what="requests that wait for the dead")
        wait_until(
            lambda: broker.process.log_text().count(ABOUT_TO_REGISTER) > starts,
            timeout_s=PATIENCE_S,
            what="the next life about to register",
        )
        assert old_life == guarded.epoch(BOUNCING)
        if unseen:
            held.controller.pause()
        held.cluster.zookeeper.client.delete(broker.registration_path)
        wait_until(lambda: broker.registered, timeout_s=PATIENCE_S, what="the next life registered")
        held.controller.resume()
        broker.wait_until_ready()
        wait_until_converged(held, f"a bounce {'seen as one change' if unseen else 'seen going and coming'}")
        for answer in created.values():
            answer.result(PATIENCE_S)
        traffic.wait_for_acks(100)
        report = traffic.stop()

    requests = guarded.requests(BOUNCING, since)
    assert report.ok, report.summary()
    assert never_back(requests)
    # What was sent before the controller could know, the broker refuses.
    assert {ErrorCode.STALE_BROKER_EPOCH} >= {one.error_code for one in requests if one.broker_epoch == old_life}
    assert {one.error_code for one in requests if one.broker_epoch == guarded.epoch(BOUNCING)} == {ErrorCode.NONE}
    judge_history(held)
