"""Topics' znodes edited by hand under a Steward controller: real ZooKeeper, real brokers."""

from collections.abc import Iterator

import pytest

from lab.traffic import Traffic
from lab.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

UNREADABLE = "steward_controller_unreadable_topics"
ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Held]:
    """Four brokers under a Steward controller."""
    with held_cluster((1, 2, 3, 4)) as held:
        yield held


def edit(held: Held, topic: str, old: bytes, new: bytes) -> None:
    """Edit a topic's znode."""
    path = f"{CHROOT}/brokers/topics/{topic}"
    data = held.cluster.zookeeper.read(path)
    assert data is not None
    assert old in data
    held.cluster.zookeeper.client.set(path, data.replace(old, new))


@pytest.mark.shows("C2")
def test_an_assignment_outside_the_isr_becomes_a_move_that_loses_nothing(cluster: Held) -> None:
    """C2, C9: the partition's records are on 1 and 2; a user writes 3 and 4. The term goes on."""
    create_on(cluster, "edited", [1, 2])
    epoch = cluster.cluster.zookeeper.read(f"{CHROOT}/controller_epoch")

    with Traffic(cluster.cluster.bootstrap(), "edited") as traffic:
        traffic.wait_for_acks(100)
        edit(cluster, "edited", b"[1,2]", b"[3,4]")
        wait_until(
            lambda: sorted(map(int, cluster.state("edited", 0)["isr"])) == [3, 4],  # type: ignore[call-overload]
            timeout_s=PATIENCE_S,
            what="the new replicas in sync and the old ones removed",
        )
        traffic.wait_for_acks(100)
        report = traffic.stop()

    assert report.ok, report.summary()
    assert cluster.cluster.zookeeper.read(f"{CHROOT}/controller_epoch") == epoch


def test_an_undecodable_topic_is_reported_and_fails_over(cluster: Held) -> None:
    """Its state has a znode of its own: leaders are elected as before, and no other topic is affected."""
    create_on(cluster, "spoilt", [1, 2, 3])
    edit(cluster, "spoilt", b"[1,2,3]", b"[1,2,2]")
    wait_until(lambda: cluster.controller.metric(UNREADABLE) == 1, timeout_s=PATIENCE_S, what="the metric")

    cluster.cluster.broker(1).kill()
    wait_until(lambda: cluster.state("spoilt", 0)["leader"] == 2, timeout_s=PATIENCE_S, what="another leader")
    assert cluster.controller.metric(ACTIVE) == 1

    cluster.cluster.broker(1).start()
    edit(cluster, "spoilt", b"[1,2,2]", b"[1,2,3]")
    wait_until(lambda: cluster.controller.metric(UNREADABLE) == 0, timeout_s=PATIENCE_S, what="the corrected topic")
    cluster.wait_until_all_are_back("spoilt")
