"""The controller's loop over a store that is not ZooKeeper: changes are applied as the store delivers them, on standbys as well."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence

import numpy as np
import pytest

from controller_core.model import Broker, Cluster, Endpoint
from controller_core.model.changes import Change
from controller_core.model.events import CreateTopics
from controller_core.model.zookeeper_events import BrokersRead
from controller_core.shell import controller as controller_module
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.metrics import Metrics
from controller_core.shell.zookeeper.sessions import ZOOKEEPER_MODE
from controller_core.zookeeper_mode.transitions import apply
from tests.controller_core.shell.log_store import LogStore
from tests.controller_core.shell.terms import CONTROLLER, CONTROLLER_EPOCH, INTERNAL, FakeChannels, new_topic, settled


def broker(broker_id: int) -> Broker:
    """A registered broker."""
    return Broker(broker_id, broker_id, (Endpoint(INTERNAL, f"host{broker_id}", 9092, "PLAINTEXT"),))


async def test_active_controller_and_standby_apply_the_same_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is applied before it is committed; both reach the same state, though events run at the same time."""
    monkeypatch.setattr(controller_module, "Channels", FakeChannels)
    store, cluster, standby = LogStore(), Cluster(CONTROLLER, CONTROLLER_EPOCH), Cluster(CONTROLLER, CONTROLLER_EPOCH)
    own = OwnAddress((Endpoint(INTERNAL, "steward", 9990, "PLAINTEXT"),), INTERNAL)
    controller = Controller(cluster, store, own, "id", None, Metrics(), mode=ZOOKEEPER_MODE)

    async def follow(committed: Sequence[Change]) -> None:
        for change in committed:
            apply(standby, change)

    store.deliver_to(follow)
    work = [
        controller.post(BrokersRead((broker(1), broker(2)))),
        controller.post(CreateTopics((new_topic("a", (1, 2)),))),
        controller.post(CreateTopics((new_topic("b", (2, 1)),))),
    ]
    await settled()

    assert (len(store.log), cluster.brokers, list(cluster.topics)) == (1, {}, [])

    store.may_commit.set()
    await asyncio.wait(work)
    await controller.submit(BrokersRead((broker(2),)))

    assert [task.exception() for task in work] == [None] * len(work)
    assert list(standby.topics) == list(cluster.topics) == ["a", "b"]
    assert standby.brokers == cluster.brokers
    assert states(standby) == states(cluster) == {"a": (2, 1, [2]), "b": (2, 1, [2])}
    await controller.close()


def states(cluster: Cluster) -> dict[str, tuple[int, int, list[int]]]:
    """Leader, leader epoch and ISR of each topic's first partition."""
    columns = cluster.columns
    rows = {name: int(np.asarray(topic.rows)[0]) for name, topic in cluster.topics.items()}
    return {
        name: (int(columns.leader[row]), int(columns.leader_epoch[row]), list(columns.isr_of(row)))
        for name, row in rows.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("module", ["controller", "front.front"])
def test_the_loop_imports_no_zookeeper(module: str) -> None:
    """Neither the loop nor the front imports a module of ZooKeeper mode, directly or indirectly: KRaft mode passes its own.

    The events and changes of ZooKeeper mode are values of the model.
    """
    code = (
        f"import sys, controller_core.shell.{module}; "
        "names = [name for name in sys.modules if not name.startswith('controller_core.model.')]; "
        "print([name for name in names if 'zookeeper' in name or name.startswith('kazoo')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
