"""Brokers that fail before their first request, and brokers that are back before their failure is detected; proxies record their requests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from kafka_wire import ErrorCode
from lab.checks.traffic import Traffic
from lab.faults.broker_proxy import BrokerProxy, ControllerRequest
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.clusters import create_on, held_cluster, on
from tests.integration.conftest import PATIENCE_S, Held
from tests.integration.faults import judge_history, wait_until_converged

pytestmark = pytest.mark.kafka

THREE = (1, 2, 3)
SPREAD = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
LONG_SESSION = ("--session-timeout-ms=20000",)
"""The controller stays active while it is frozen: a take-over would send the full state to the brokers."""
BOUNCING, DYING = 1, 3
PATIENT = {BOUNCING: {"zookeeper.session.timeout.ms": "60000"}}
"""Its sessions outlast its start, on any machine."""
ABOUT_TO_REGISTER = "Cluster ID = "
"""Line that a broker logs between its first contact with ZooKeeper and its registration."""


@dataclass(frozen=True)
class Guarded:
    """A cluster whose brokers are reached through proxies."""

    held: Held
    proxies: Mapping[int, BrokerProxy]

    def epoch(self, broker_id: int) -> int:
        """Read a registered broker's epoch: the transaction by which it registered."""
        found = self.held.cluster.zookeeper.client.exists(self.held.cluster.broker(broker_id).registration_path)
        assert found is not None, f"broker {broker_id} is not registered"
        return int(found.czxid)

    def queued(self, broker_id: int) -> float:
        """Read from the controller how many requests wait for a broker."""
        name = f'kafka_controller_controllerchannelmanager_queuesize{{broker_id="{broker_id}"}}'
        return self.held.controller.metric(name) or 0.0

    def requests(self, broker_id: int, since: int) -> list[ControllerRequest]:
        """Requests that passed a broker's proxy after the first `since` ones."""
        return self.proxies[broker_id].requests[since:]


@pytest.fixture(scope="module")
def guarded() -> Iterator[Guarded]:
    """Three brokers behind proxies; leave them running and the proxies open."""
    proxies = {broker: BrokerProxy() for broker in THREE}
    with held_cluster(THREE, arguments=LONG_SESSION, proxies=proxies, settings_of=PATIENT) as held:
        yield Guarded(held, proxies)


def no_stale_requests(requests: list[ControllerRequest]) -> bool:
    """C13: no request for a broker's former registration follows one for its current registration."""
    epochs = [request.broker_epoch for request in requests]
    return epochs == sorted(epochs)


def test_a_broker_killed_between_its_registration_and_its_first_request(guarded: Guarded) -> None:
    """C1, C2, C4, C12, C13, B1: the controller expects a broker to be live that has received nothing and never will.

    Partitions with all replicas on it are led by it while it is registered, are offline afterwards, and are led by it after its restart.
    """
    held = guarded.held
    create_on(held, "early", *SPREAD, min_insync_replicas="2")
    create_on(held, "unreplicated", [DYING])
    broker, proxy, before = held.cluster.broker(DYING), guarded.proxies[DYING], held.state("unreplicated", 0)

    with Traffic(held.cluster.bootstrap(), "early", consume=False) as traffic:
        broker.stop()
        proxy.hold()
        since = len(proxy.requests)
        broker.launch()
        proxy.wait_until_held()
        wait_until(
            lambda: held.state("unreplicated", 0)["leader"] == DYING,
            timeout_s=PATIENCE_S,
            what="the dead broker as leader",
        )
        first_life = guarded.epoch(DYING)
        broker.kill()
        proxy.open()
        broker.wait_until_deregistered()
        wait_until(
            lambda: held.state("unreplicated", 0)["leader"] == -1, timeout_s=PATIENCE_S, what="its failure detected"
        )
        broker.start()
        wait_until_converged(held, "a broker's start after a life without a request")
        traffic.wait_for_acks(40)
        report = traffic.stop()

    requests = guarded.requests(DYING, since)
    assert report.ok, report.summary()
    assert first_life not in {request.broker_epoch for request in requests}
    assert {request.broker_epoch for request in requests} == {guarded.epoch(DYING)}
    assert {request.error_code for request in requests} == {ErrorCode.NONE}
    assert held.state("unreplicated", 0)["leader_epoch"] >= before["leader_epoch"] + 3
    judge_history(held)


@pytest.mark.parametrize("unseen", [True, *in_soak(False)], ids=["seen as one change", "seen going and coming"])
def test_a_broker_that_bounces_faster_than_its_session(guarded: Guarded, *, unseen: bool) -> None:
    """C13 (KIP-380), C1, C2, C4, C12, B1: requests for the old registration are dropped, and the new one gets the full state.

    The registration of the dead process would block its successor, as in Kafka; so the test removes it.
    """
    held, topic = guarded.held, f"bounced-{unseen:d}"
    create_on(held, topic, *SPREAD, min_insync_replicas="2")
    broker, proxy, old_life = held.cluster.broker(BOUNCING), guarded.proxies[BOUNCING], guarded.epoch(BOUNCING)
    starts = broker.process.log_text().count(ABOUT_TO_REGISTER)

    with Traffic(held.cluster.bootstrap(), topic, consume=False) as traffic:
        broker.kill()
        since = len(proxy.requests)
        broker.process.launch()
        # Its failure is not detected yet: requests for it are queued.
        new = [on(f"{topic}-new-{number}", [1, 2, 3]) for number in range(3)]
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
        traffic.wait_for_acks(40)
        report = traffic.stop()

    requests = guarded.requests(BOUNCING, since)
    assert report.ok, report.summary()
    assert no_stale_requests(requests)
    # The broker refuses requests that were sent before the controller detected its restart.
    assert {ErrorCode.STALE_BROKER_EPOCH} >= {
        request.error_code for request in requests if request.broker_epoch == old_life
    }
    assert {request.error_code for request in requests if request.broker_epoch == guarded.epoch(BOUNCING)} == {
        ErrorCode.NONE
    }
    judge_history(held)
