"""Which pod is replaced next (one broker at a time, the controller last, only while no partition is under min ISR)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_operator.decide.clusters.rolling import AskKafka, Hold, Replace, RollDecision, RollView, Settled, decide_roll
from kafka_operator.decide.kafka.observed import Unavailable
from kafka_operator.decide.kafka.replica_health import ReplicaHealth
from kafka_operator.resources.pods import PodSet
from tests.kafka_operator.cluster_pods import LONG_AGO, NEW, OLD, health, partition, pod, pod_set
from tests.kafka_operator.makers import NOW, quorum

WELL = health(partition(0, (0, 1, 2)), partition(1, (1, 2, 0)))
AWAY = Unavailable("ClusterUnreachable", "No broker answers.")
OLD_PODS = pod_set(pod(0, OLD), pod(1, OLD), pod(2, OLD))


def roll(
    pods: PodSet, seen: object = WELL, leaving: tuple[int, ...] = (), chosen: str = "", *, brokers: bool = True
) -> RollDecision:
    """Decide; `leaving` names nodes by their pod's id."""
    nodes = {f"node-{node_id}": "it is cordoned" for node_id in leaving}
    return decide_roll(RollView(NOW, pods, nodes, seen, chosen, brokers))


def replaced(decision: RollDecision) -> tuple[str, str]:
    """The pod that is replaced, and why."""
    assert isinstance(decision, Replace), decision
    return decision.pod.name, decision.reason


def held(decision: RollDecision) -> tuple[str, str]:
    """Why nothing is replaced."""
    assert isinstance(decision, Hold), decision
    return decision.reason, decision.message


def test_kafka_is_asked_only_when_a_pod_is_due() -> None:
    """All partitions of a large cluster are dear to ask for."""
    assert roll(pod_set(pod(0), pod(1)), None) == Settled()
    assert roll(OLD_PODS, None) == AskKafka()
    assert roll(pod_set(pod(0), pod(1)), None, leaving=(1,)) == AskKafka()
    assert held(roll(pod_set(pod(0, OLD), pod(1, ready=False)), None))[0] == "WaitingForPods"


def test_pods_of_an_old_revision_are_replaced_by_id() -> None:
    """The first one, while all is well."""
    assert replaced(roll(OLD_PODS)) == ("main-broker-0", "Rolling")
    assert replaced(roll(pod_set(pod(0), pod(1, OLD), pod(2, OLD)))) == ("main-broker-1", "Rolling")


def test_the_broker_that_is_the_controller_is_the_last() -> None:
    """The controller last, so that there is one failover and not three."""
    seen = health(partition(0, (0, 1, 2)), controller_id=0)

    assert replaced(roll(OLD_PODS, seen))[0] == "main-broker-1"
    assert replaced(roll(pod_set(pod(0, OLD), pod(1), pod(2)), seen))[0] == "main-broker-0"


def test_a_pod_that_was_chosen_stays_chosen() -> None:
    """Another operator may be about to delete it, whichever broker is the controller."""
    assert replaced(roll(OLD_PODS, chosen="uid-2"))[0] == "main-broker-2"
    assert replaced(roll(OLD_PODS, health(controller_id=2), chosen="uid-2"))[0] == "main-broker-2"
    assert replaced(roll(pod_set(pod(0), pod(1, OLD), pod(2)), chosen="uid-2"))[0] == "main-broker-1"


def test_what_topics_want_is_asked_only_when_all_are_in_sync() -> None:
    """It is one setting of every topic."""
    late = replace(health(partition(0, (0, 1), isr=(1,))), min_isr=None)

    assert held(roll(OLD_PODS, late))[0] == "UnderReplicated"
    assert roll(OLD_PODS, replace(WELL, min_isr=None)) == AskKafka(min_isr=True)


def test_a_topic_without_a_known_min_isr_is_safe() -> None:
    """Nothing that holds it is replaced."""
    assert held(roll(OLD_PODS, replace(WELL, min_isr={})))[0] == "WouldFallUnderMinIsr"


def test_a_drained_node_comes_before_a_roll() -> None:
    """An administrator waits for it; a pod that is not old is due only because of its node."""
    assert replaced(roll(OLD_PODS, leaving=(2,))) == ("main-broker-2", "Draining")
    current = pod_set(pod(0), pod(1), pod(2))
    assert replaced(roll(current, leaving=(1,))) == ("main-broker-1", "Draining")


@pytest.mark.parametrize(
    "away",
    [pod(1, ready=False), pod(1, deleting=True), pod(1, OLD, ready=False), None],
    ids=["not ready", "going", "old and not ready", "not made yet"],
)
def test_nothing_is_replaced_while_a_pod_is_away(away: object) -> None:
    """Never two at once."""
    pods = [pod(0, OLD), *([away] if away else []), pod(2, OLD)]

    reason, message = held(roll(pod_set(*pods, replicas=3)))

    assert reason == "WaitingForPods"
    assert "main-broker-1" in message


def test_the_next_waits_until_the_last_is_in_every_isr_again() -> None:
    """A Ready pod is not enough."""
    seen = health(partition(0, (0, 1, 2), isr=(1, 2)), partition(7, (1, 2), isr=(1, 2)))

    assert held(roll(pod_set(pod(0), pod(1, OLD), pod(2, OLD)), seen)) == (
        "UnderReplicated",
        "Waiting until every replica is in sync. Out of sync: orders-0.",
    )


def test_a_broker_that_kafka_does_not_list_is_waited_for() -> None:
    """Its pod is Ready, but its registration is not seen yet."""
    reason, message = held(roll(OLD_PODS, health(partition(0, (0, 1)), brokers=2)))

    assert (reason, "main-broker-2 (id 2)" in message) == ("WaitingForBrokers", True)


@pytest.mark.shows("F45")
def test_a_voter_is_replaced_only_while_the_others_are_in_sync() -> None:
    """KIP-595: brokers 0, 1 and 2 are voters as well (combined nodes); the leader is the last."""
    late = replace(WELL, controller_id=0, quorum=quorum(0, 1, 2, late=(2,)))
    well = replace(WELL, controller_id=0, quorum=quorum(0, 1, 2))

    assert held(roll(pod_set(pod(0, OLD), pod(1, OLD), pod(2)), late)) == (
        "WaitingForQuorum",
        "main-broker-1 hosts a voter of the quorum, and other voters are not in sync: 2.",
    )
    assert replaced(roll(OLD_PODS, late))[0] == "main-broker-2"
    assert replaced(roll(OLD_PODS, well))[0] == "main-broker-1"
    assert replaced(roll(pod_set(pod(0, OLD), pod(1), pod(2)), well))[0] == "main-broker-0"
    assert held(roll(OLD_PODS, late, leaving=(1,)))[0] == "WaitingForQuorum"


@pytest.mark.shows("F45")
def test_controllers_that_are_voters_are_replaced_while_the_others_are_in_sync() -> None:
    """A StatefulSet of only the controllers; brokers are observers."""
    controllers = pod_set(*(pod(node_id, OLD) for node_id in (100, 101, 102)), first_id=100)

    def seen(*late: int) -> ReplicaHealth:
        return replace(WELL, controller_id=100, quorum=quorum(100, 101, 102, late=late))

    assert held(roll(controllers, seen(101, 102), brokers=False))[0] == "WaitingForQuorum"
    assert replaced(roll(controllers, seen(101), brokers=False))[0] == "main-broker-101"
    assert replaced(roll(controllers, seen(), brokers=False))[0] == "main-broker-101"


@pytest.mark.shows("F45")
def test_nothing_is_replaced_while_the_quorum_is_not_visible() -> None:
    """Any pod may host a voter; the message has the missing right."""
    hidden = Unavailable("QuorumNotVisible", "Kafka rejects DescribeQuorum with CLUSTER_AUTHORIZATION_FAILED.")

    reason, message = held(roll(OLD_PODS, replace(WELL, controller_id=-1, quorum=hidden)))

    assert (reason, hidden.message in message) == ("QuorumNotVisible", True)


def test_nothing_is_replaced_without_a_controller() -> None:
    """No controller would move the leaders to other brokers."""
    assert held(roll(OLD_PODS, health(controller_id=-1)))[0] == "WaitingForController"


def test_no_partition_may_fall_under_min_isr() -> None:
    """Issue; the message names the partitions."""
    seen = health(partition(0, (0, 1)), partition(1, (1, 2)), partition(2, (2, 0)), min_isr=2)

    reason, message = held(roll(OLD_PODS, seen))

    assert reason == "WouldFallUnderMinIsr"
    assert message == "Replacing main-broker-0 would leave partitions below min.insync.replicas: orders-0, orders-2."


def test_one_broker_that_must_stay_holds_up_no_other() -> None:
    """A topic with a single copy on broker 0."""
    seen = health(partition(0, (0,)), min_isr=1)

    assert replaced(roll(OLD_PODS, seen))[0] == "main-broker-1"
    assert held(roll(pod_set(pod(0, OLD), pod(1), pod(2)), seen))[0] == "WouldFallUnderMinIsr"


def test_a_pod_that_does_not_get_ready_in_time_stops_everything() -> None:
    """A stuck pod stops the rolling and is reported."""
    stuck = pod(1, ready=False, since=LONG_AGO)

    reason, message = held(roll(pod_set(pod(0, OLD), stuck, pod(2, OLD))))

    assert reason == "PodStuck"
    assert "main-broker-1 (not Ready)" in message
    assert held(roll(pod_set(pod(0), stuck)))[0] == "PodStuck"
    assert "main-broker-1 (not gone)" in held(roll(pod_set(pod(0), pod(1, deleting=True, since=LONG_AGO))))[1]


def test_a_stuck_pod_of_an_old_revision_is_what_is_replaced() -> None:
    """A form that cannot start is left by rolling to one that can; what it holds is out of sync anyhow."""
    stuck = pod(2, OLD, ready=False, since=LONG_AGO)
    seen = health(partition(0, (0, 1, 2), isr=(0, 1)), brokers=2)

    assert replaced(roll(pod_set(pod(0, OLD), pod(1, OLD), stuck), seen))[0] == "main-broker-2"
    still_in_sync = health(partition(0, (1, 2)), brokers=3)
    assert held(roll(pod_set(pod(0, OLD), pod(1, OLD), stuck), still_in_sync))[0] == "WouldFallUnderMinIsr"


def test_without_kafka_only_unusable_pods_are_replaced() -> None:
    """No pod Ready: for example the first install of an image that does not exist."""
    dead = [pod(node_id, OLD, ready=False, since=LONG_AGO) for node_id in range(3)]

    assert replaced(roll(pod_set(*dead), AWAY))[0] == "main-broker-0"
    assert held(roll(pod_set(*dead[:2], pod(2, OLD)), AWAY))[0] == "ClusterUnreachable"
    assert held(roll(OLD_PODS, AWAY))[0] == "ClusterUnreachable"


def test_a_statefulset_that_rolls_by_itself_is_left_alone() -> None:
    """And one whose controller has not seen its new form yet names the former revision."""
    assert roll(pod_set(pod(0, OLD), pod(1, OLD), on_delete=False)) == Settled()
    assert roll(pod_set(pod(0, OLD), pod(1, OLD), observed=False)) == Settled()


def test_controllers_are_rolled_standby_first() -> None:
    """Ids 1000 and 1001; a standby registers nowhere."""
    controllers = pod_set(pod(1000, OLD), pod(1001, OLD), first_id=1000)

    assert replaced(roll(controllers, health(controller_id=1000), brokers=False))[0] == "main-broker-1001"
    rest = pod_set(pod(1000, OLD), pod(1001, NEW), first_id=1000)
    assert replaced(roll(rest, health(controller_id=1000), brokers=False))[0] == "main-broker-1000"
