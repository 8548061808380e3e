"""The controller fails and comes back; brokers take over in between. Also: foreign data in /controller."""

import json

import pytest

from lab.checks.traffic import Traffic
from lab.checks.zookeeper_history import DELETED, read_history
from lab.processes.waiting import wait_until
from tests.effort import in_soak
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka


ACTIVE = "kafka_controller_kafkacontroller_activecontrollercount"


def epoch(held: Held) -> int:
    """Read the controller epoch."""
    return int(held.cluster.zookeeper.read(f"{CHROOT}/controller_epoch") or b"-1")


@pytest.mark.shows("C6")
def test_a_broker_takes_over_from_a_killed_controller_and_is_relieved_in_one_step(held: Held) -> None:
    """C5, C6: kill -9 of the process under load; a native broker takes over; Steward comes back under exactly the next epoch."""
    held.wait_until_held()
    held.create("relieved")
    first = epoch(held)

    with Traffic(held.cluster.bootstrap(), "relieved") as traffic:
        held.controller.kill()
        wait_until(
            lambda: held.cluster.controller_id() in held.cluster.brokers,
            timeout_s=PATIENCE_S,
            what="a native controller",
        )
        stood_in = epoch(held)
        traffic.wait_for_acks(40)
        held.controller.start()
        held.wait_until_held()
        traffic.wait_for_acks(40)
        report = traffic.stop()

    assert stood_in > first
    assert_relieved_in_one_step(held)
    assert report.ok, report.summary()


def assert_relieved_in_one_step(held: Held) -> None:
    """Assert that one transaction deletes the broker's znode, creates Steward's and raises the epoch by one, with no write in between."""
    place, count = f"{CHROOT}/controller", f"{CHROOT}/controller_epoch"
    history = read_history(held.cluster.zookeeper.process.folder / "zookeeper-data")
    writes = [write for write in history if write.path in {place, count}]
    relief = [write for write in writes if write.zxid == writes[-1].zxid]
    before = writes[: -len(relief)]
    holders = [_holder(write.data) for write in relief if write.path == place]
    epochs = [int(write.data or b"-1") for write in (*before, *relief) if write.path == count]

    assert holders == [None, held.controller.controller_id]
    assert _holder(next(write.data for write in reversed(before) if write.path == place)) in held.cluster.brokers
    assert epochs[-1] == epochs[-2] + 1


def _holder(data: bytes | None) -> int | None:
    return None if data is DELETED else int(json.loads(data)["brokerid"])


@pytest.mark.shows("C5")
def test_a_continued_controller_writes_nothing_under_its_old_epoch(held: Held) -> None:
    """C5: SIGSTOP past the session, a broker takes over, SIGCONT: the process detects it, and takes over under a new epoch."""
    held.wait_until_held()
    held.create("thawed", partitions=1)
    first = epoch(held)

    held.controller.pause()
    try:
        wait_until(
            lambda: held.cluster.controller_id() in held.cluster.brokers,
            timeout_s=PATIENCE_S,
            what="a native controller",
        )
    finally:
        held.controller.resume()
    held.wait_until_held()
    held.create("after-thaw", partitions=1)

    assert epoch(held) >= first + 2
    assert held.state("after-thaw", 0)["controller_epoch"] == epoch(held)


@pytest.mark.parametrize(
    "strange",
    [b"garbage", *in_soak(b'{"version":1,"brokerid":-1,"timestamp":"0"}', b'{"version":1,"brokerid":77}')],
    ids=["garbage", "no broker", "an older version"],
)
def test_a_foreign_controller_znode_is_waited_for(held: Held, strange: bytes) -> None:
    """KafkaController.elect: such a znode is neither trusted nor overwritten; the process goes on once it is deleted."""
    held.wait_until_held()
    client = held.cluster.zookeeper.client
    transaction = client.transaction()
    transaction.delete(f"{CHROOT}/controller")
    transaction.create(f"{CHROOT}/controller", strange)
    transaction.commit()
    wait_until(lambda: held.controller.metric(ACTIVE) == 0, timeout_s=PATIENCE_S, what="Steward as a standby")
    assert strange == held.cluster.zookeeper.read(f"{CHROOT}/controller")
    client.delete(f"{CHROOT}/controller")
    held.wait_until_held()

    held.create(f"after-{strange[:1].hex()}-{len(strange)}", partitions=1)
