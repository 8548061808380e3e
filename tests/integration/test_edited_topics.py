"""Topics' znodes edited by hand under a Steward controller: real ZooKeeper, real brokers."""

import pytest

from lab.checks.traffic import Traffic
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

UNREADABLE = "steward_controller_unreadable_topics"
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"


def edit(held: Held, topic: str, old: bytes, new: bytes) -> None:
    """Edit a topic's znode."""
    path = f"{CHROOT}/brokers/topics/{topic}"
    data = held.cluster.zookeeper.read(path)
    assert data is not None
    assert old in data
    held.cluster.zookeeper.client.set(path, data.replace(old, new))


@pytest.mark.shows("C2")
def test_an_assignment_outside_the_isr_becomes_a_move_that_loses_nothing(held: Held) -> None:
    """C2, C9: the partition's records are on 1 and 2; a user writes 3 and 4. The term goes on."""
    create_on(held, "edited", [1, 2])
    epoch = held.cluster.zookeeper.read(f"{CHROOT}/controller_epoch")

    with Traffic(held.cluster.bootstrap(), "edited") as traffic:
        traffic.wait_for_acks(40)
        edit(held, "edited", b"[1,2]", b"[3,4]")
        wait_until(
            lambda: sorted(map(int, held.state("edited", 0)["isr"])) == [3, 4],
            timeout_s=PATIENCE_S,
            what="the new replicas in sync and the old ones removed",
        )
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert held.cluster.zookeeper.read(f"{CHROOT}/controller_epoch") == epoch
    # Other tests count elections while brokers 3 and 4 are down.
    held.admin.delete_topics(["edited"])["edited"].result(PATIENCE_S)
    wait_until(lambda: "edited" not in held.topics(), timeout_s=PATIENCE_S, what="the topic deleted")


def test_an_undecodable_topic_is_reported_and_fails_over(held: Held) -> None:
    """Its state has a znode of its own: leaders are elected as before, and no other topic is affected."""
    create_on(held, "spoilt", [1, 2, 3])
    edit(held, "spoilt", b"[1,2,3]", b"[1,2,2]")
    wait_until(lambda: held.controller.metric(UNREADABLE) == 1, timeout_s=PATIENCE_S, what="the metric")

    held.cluster.broker(1).kill()
    wait_until(lambda: held.state("spoilt", 0)["leader"] == 2, timeout_s=PATIENCE_S, what="another leader")
    assert held.controller.metric(ACTIVE) == 1

    held.cluster.broker(1).start()
    edit(held, "spoilt", b"[1,2,2]", b"[1,2,3]")
    wait_until(lambda: held.controller.metric(UNREADABLE) == 0, timeout_s=PATIENCE_S, what="the corrected topic")
    held.wait_until_all_are_back("spoilt")
