"""Invariants of a cluster after a fault, checked in ZooKeeper, in its whole history, and on every broker.

`wait_until_converged` waits for the end of a fault: every partition in sync under its leader, no move and no deletion left, and
Metadata of each broker equal to ZooKeeper (C12). `judge_history` checks all that was ever written (C1 to C6, C9).
"""

import asyncio
import json
from typing import Any

from bench.soaking.invariants import Wanted, once_quiet
from bench.soaking.snapshot import Snapshot, take
from kafka_wire import ApiKey
from kafka_wire.net.client import Connection, ConnectionFailed, RequestTimedOut
from lab.checks.controller_history import Judge
from lab.checks.zookeeper_history import read_history
from lab.peers.kafka import INTERNAL
from lab.processes.waiting import wait_until
from tests.integration.conftest import Held

AIM_S = 10.0
"""Target from the end of a fault to convergence; measured and printed, not asserted."""
CONVERGED_S = 30.0
"""Asserted limit: generous, for busy machines."""
CALL_TIMEOUT_MS = 5_000

Known = dict[tuple[str, int], tuple[int, int, tuple[int, ...], frozenset[int]]]
"""Leader, leader epoch, replicas and ISR by topic and partition."""


def wait_until_converged(held: Held, what: str, *, timeout_s: float = CONVERGED_S) -> float:
    """Return the seconds until convergence under the Steward controller; print them with `what`."""
    left: list[str] = []

    def converged() -> bool:
        left[:] = problems(held)
        return not left

    took_s = wait_until(converged, timeout_s=timeout_s, what=f"converged after {what}", context=lambda: "\n".join(left))
    # The test's output shows the time.
    print(f"\nconverged {took_s:.1f} s after {what} (aim: {AIM_S:g} s)")  # noqa: T201
    return took_s


def problems(held: Held) -> list[str]:
    """List differences from the converged state; brokers are asked once ZooKeeper is in order."""
    now = take(held.cluster)
    return list(once_quiet(now, Wanted(), held.controller.controller_id)) or metadata_differences(held, now)


def metadata_differences(held: Held, now: Snapshot | None = None) -> list[str]:
    """C12: list differences between a registered broker's Metadata and ZooKeeper."""
    now = now or take(held.cluster)
    registered = registered_brokers(held)
    expected = registered | ({now.controller} if now.controller is not None else set())
    partitions = _written(now)
    answers = asyncio.run(_ask(held, sorted(registered)))
    found = []
    for broker, answer in answers.items():
        if answer is None:
            found.append(f"broker {broker} does not answer")
            continue
        if answer["controller_id"] != now.controller:
            found.append(f"broker {broker} takes {answer['controller_id']} for the controller, not {now.controller}")
        if (broker_ids := {node["node_id"] for node in answer["brokers"]}) != expected:
            found.append(f"broker {broker} knows the brokers {sorted(broker_ids)}, not {sorted(expected)}")
        known = _known(answer)
        found += [
            f"broker {broker} knows {name} as {known.get(name)}, ZooKeeper as {partitions.get(name)}"
            for name in sorted(known.keys() | partitions.keys())
            if known.get(name) != partitions.get(name)
        ]
    return found


def registered_brokers(held: Held) -> set[int]:
    """Read the ids of the registered brokers."""
    client = held.cluster.zookeeper.client
    return {int(name) for name in client.retry(client.get_children, f"{held.cluster.chroot}/brokers/ids")}


def judge_history(held: Held) -> Judge:
    """Assert C1 to C6 and C9 over all that was ever written to this ZooKeeper."""
    zookeeper = held.cluster.zookeeper
    judge = Judge(held.cluster.chroot)
    judge.judge(read_history(zookeeper.process.folder / "zookeeper-data"))
    assert judge.violations == [], "\n".join(judge.violations)
    return judge


def controller_epoch(held: Held) -> int:
    """Read the controller epoch."""
    return int(held.cluster.zookeeper.read(f"{held.cluster.chroot}/controller_epoch") or b"-1")


def controller_session(held: Held) -> int:
    """Read the session that owns /controller; 0 if there is none."""
    found = held.cluster.zookeeper.client.exists(f"{held.cluster.chroot}/controller")
    return 0 if found is None else int(found.ephemeralOwner)


def is_queued_for_deletion(held: Held, topic: str) -> bool:
    """Whether a topic is queued for deletion."""
    return held.cluster.zookeeper.read(f"{held.cluster.chroot}/admin/delete_topics/{topic}") is not None


def moving(held: Held, topic: str) -> set[int]:
    """Read the partitions of a topic that are being moved."""
    data = held.cluster.zookeeper.read(f"{held.cluster.chroot}/brokers/topics/{topic}")
    document = json.loads(data or b"{}")
    return {*map(int, document.get("adding_replicas", {})), *map(int, document.get("removing_replicas", {}))}


def _written(now: Snapshot) -> Known:
    return {
        (name, partition): (state.leader, state.leader_epoch, replicas, frozenset(state.isr))
        for name, topic in now.topics.items()
        for partition, replicas in topic.replicas.items()
        if (state := now.states.get((name, partition))) is not None
    }


def _known(answer: dict[str, Any]) -> Known:
    return {
        (topic["name"], partition["partition_index"]): (
            partition["leader_id"],
            partition["leader_epoch"],
            tuple(partition["replica_nodes"]),
            frozenset(partition["isr_nodes"]),
        )
        for topic in answer["topics"]
        for partition in topic["partitions"]
    }


async def _ask(held: Held, brokers: list[int]) -> dict[int, dict[str, Any] | None]:
    answers = await asyncio.gather(*(metadata_of(held.cluster.broker(broker).ports[INTERNAL]) for broker in brokers))
    return dict(zip(brokers, answers, strict=True))


async def metadata_of(port: int) -> dict[str, Any] | None:
    """Ask one broker for its full Metadata, over a new connection."""
    try:
        connection = await Connection.open(
            "127.0.0.1",
            port,
            client_id="faults",
            connect_timeout_ms=CALL_TIMEOUT_MS,
            request_timeout_ms=CALL_TIMEOUT_MS,
        )
    except ConnectionFailed:
        return None
    try:
        return await connection.call(ApiKey.METADATA, {"topics": None})
    except (ConnectionFailed, RequestTimedOut):
        return None
    finally:
        await connection.close()
