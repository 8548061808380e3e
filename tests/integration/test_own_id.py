"""A controller that is started with the id of a broker: real ZooKeeper, real brokers."""

import json
from typing import Any

import pytest
from kazoo.client import KazooClient

from lab.peers.steward import StewardController
from lab.processes.waiting import wait_until
from tests.integration.clusters import create_on, held_cluster
from tests.integration.conftest import CHROOT, PATIENCE_S, Held

pytestmark = pytest.mark.kafka

EXIT_WRONG_SETTINGS = 2
TREES = ("/brokers/topics", "/controller", "/controller_epoch", "/admin", "/isr_change_notification")


def snapshot(client: KazooClient, path: str) -> dict[str, tuple[bytes, int]]:
    """Read a tree: data and versions."""
    if client.exists(path) is None:
        return {}
    data, stat = client.get(path)
    found = {path: (data, stat.version)}
    for name in client.get_children(path):
        found |= snapshot(client, f"{path}/{name}")
    return found


def everything(held: Held) -> dict[str, Any]:
    """Read all that a controller writes."""
    client = held.cluster.zookeeper.client
    return {path: node for tree in TREES for path, node in snapshot(client, f"{CHROOT}{tree}").items()}


def run_with_id(held: Held, controller_id: int) -> tuple[int, str]:
    """Run a controller until it ends; returns its exit code and log."""
    folder = held.cluster.zookeeper.process.folder / f"controller-{controller_id}"
    folder.mkdir(exist_ok=True)
    other = StewardController(held.cluster.zookeeper_connect, folder, controller_id=controller_id)
    other.launch()
    try:
        wait_until(lambda: not other.process.running, timeout_s=PATIENCE_S, what="the end of the controller")
        code = other.process.exit_code
        assert code is not None
        return code, other.process.log_text()
    finally:
        other.close()


def test_a_controller_with_the_id_of_a_broker_that_is_down_ends_and_writes_nothing() -> None:
    """Broker 3 is down; only it has the records of `single`. The controller would remove its replica, and lose them."""
    with held_cluster((1, 2, 3)) as held:
        create_on(held, "orders", [1, 2, 3])
        create_on(held, "single", [3])
        held.controller.stop()
        held.cluster.wait_for_controller()
        held.cluster.broker(3).kill()
        held.cluster.broker(3).wait_until_deregistered()
        wait_until(lambda: held.state("single", 0)["leader"] == -1, timeout_s=PATIENCE_S, what="the death noticed")
        wait_until(lambda: 3 not in held.state("orders", 0)["isr"], timeout_s=PATIENCE_S, what="the ISR without 3")
        before = everything(held)

        code, log = run_with_id(held, 3)

        assert code == EXIT_WRONG_SETTINGS
        assert "orders-0, single-0" in log
        assert "Choose an id that no broker has or had" in log
        assert everything(held) == before
        held.cluster.broker(3).start()
        wait_until(lambda: held.state("single", 0)["leader"] == 3, timeout_s=PATIENCE_S, what="broker 3 in service")
        assert json.loads(before[f"{CHROOT}/brokers/topics/single"][0])["partitions"] == {"0": [3]}
