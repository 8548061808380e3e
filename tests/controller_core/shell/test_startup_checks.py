"""A controller whose id belongs to a broker: it neither starts nor repairs, and names the partitions."""

import pytest

from controller_core.model.zookeeper_events import RepairAssignments
from controller_core.shell.startup_checks import MAX_PARTITIONS_NAMED, IdentityError, holds_replicas
from controller_core.shell.zookeeper.controller_election import Controllership
from controller_core.shell.zookeeper.loading import load_cluster, require_no_replicas_with_id
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import paths
from tests.controller_core.shell.running_process import OWN_ID, RunningProcess
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeZooKeeper

CONTROLLERSHIP = Controllership(epoch=9, epoch_version=0, taken_from=-1)


def state(leader: int, isr: list[int], epoch: int = 0) -> bytes:
    """A partition's state znode."""
    text = f'{{"controller_epoch":1,"leader":{leader},"version":1,"leader_epoch":{epoch},"isr":{isr}}}'
    return text.replace(" ", "").encode()


def written(server: FakeZooKeeper, replicas: list[int], leader: int, isr: list[int], *, writes: int = 1) -> None:
    """Write a topic of one partition, its state so many times."""
    server.put(paths.topic("orders"), f'{{"version":1,"partitions":{{"0":{replicas}}}}}'.replace(" ", "").encode())
    for _ in range(writes):
        server.put(paths.partition_state("orders", 0), state(leader, isr))


CLAIMED = {
    "it leads": ([1000], 1000, [1000], 1),
    "it is in the ISR": ([1, 1000], 1, [1, 1000], 1),
    "it is the only ISR member and away": ([1000], -1, [1000], 2),
    "it has left the ISR": ([1, 1000], 1, [1], 2),
    "it is in the ISR and no replica": ([1, 2], 1, [1, 1000], 1),
}


@pytest.mark.parametrize(("replicas", "leader", "isr", "writes"), CLAIMED.values(), ids=CLAIMED.keys())
async def test_an_id_with_replicas_is_refused_before_anything_is_written(
    running: RunningProcess, replicas: list[int], leader: int, isr: list[int], writes: int
) -> None:
    """The broker is down: only assignments and states contain its id."""
    written(running.server, replicas, leader, isr, writes=writes)
    before = {path: znode.data for path, znode in running.server.znodes.items()}
    running.start()
    assert running.run is not None
    with pytest.raises(IdentityError, match=r"id 1000 belongs to a broker .* 1 partitions: orders-0\. No partition"):
        await running.run

    assert {path: znode.data for path, znode in running.server.znodes.items()} == before


async def test_replicas_of_a_broker_that_registered_while_a_standby_waited_are_found_at_the_take_over(
    running: RunningProcess,
) -> None:
    """A standby may wait for months: each term checks the loaded state, before it sends or repairs anything."""
    rival = running.elect(1001)
    running.start()
    await running.until(lambda: any("/brokers/ids/1001" in line for line in running.server.lines))
    written(running.server, [1, 1000], 1, [1], writes=2)
    assignment = running.server.at(paths.topic("orders")).data
    rival.expire()
    assert running.run is not None
    with pytest.raises(IdentityError, match="orders-0"):
        await running.run

    assert running.active_controller() is None
    assert running.server.at(paths.topic("orders")).data == assignment


@pytest.mark.parametrize("has_state", [False, True])
async def test_a_replica_that_a_broker_assigned_to_the_advertised_controller_is_repaired(
    running: RunningProcess, *, has_state: bool
) -> None:
    """A broker created the topic and knows the controller as a broker. No replica was ever in sync there.

    In the case with a state, a native controller elected the first leader: the state was written once, without the id.
    """
    running.server.put(paths.topic("orders"), b'{"version":1,"partitions":{"0":[1,1000]}}')
    if has_state:
        running.server.put(paths.partition_state("orders", 0), state(1, [1]))
    running.broker(1)
    running.broker(2)
    running.start()
    await running.until_active()
    await running.until(lambda: b"[1,2" in (running.server.at(paths.topic("orders")).data or b""))

    assert running.process.active is not None


async def test_a_partition_whose_isr_names_the_id_is_never_repaired() -> None:
    """A state was edited by hand during the term: a broker with this id may have the records."""
    server = FakeZooKeeper()
    server.put(paths.CONTROLLER_EPOCH, b"9")
    written(server, [1, 2], 1, [1, 2])
    cluster = await load_cluster(server.session(), ZnodeVersions(), OWN_ID, CONTROLLERSHIP, "INTERNAL")
    cluster.columns.replicas[0, 1] = cluster.columns.isr[0, 1] = OWN_ID
    cluster.columns.record_ids(cluster.columns.replicas[0])

    assert decide(cluster, RepairAssignments()).changes == ()


async def test_an_id_without_replicas_is_accepted() -> None:
    """The check only reads."""
    server = FakeZooKeeper()
    written(server, [1, 2], 1, [1, 2], writes=3)

    await require_no_replicas_with_id(server.session(), OWN_ID)


def test_the_error_names_a_limited_number_of_partitions_and_a_remedy() -> None:
    """A broker of 10,000 partitions must not fill the log."""
    error = str(holds_replicas(3, [f"orders-{number}" for number in range(10_000)]))

    assert "10000 partitions: orders-0, orders-1," in error
    assert f"and {10_000 - MAX_PARTITIONS_NAMED} more" in error
    assert "Choose an id" in error
    assert "kafka-reassign-partitions.sh" in error
    assert len(error) < 1_000
