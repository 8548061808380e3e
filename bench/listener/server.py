"""The controller's listener in a separate process, with the real handlers, a fixed cluster, and a heartbeat in its event loop.

    python -m bench.listener.server MODE SINK_PORT

It prints its port. A line on its standard input ends a measurement and begins the next one: it prints the longest time that the heartbeat was
late (wall clock and CPU time of the loop's thread, ms) and the rise of memory (KiB).
"""

import asyncio
import gc
import json
import logging
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from controller_core.model import Broker, Cluster, Endpoint, Origin
from controller_core.model.changes import TopicAdded
from controller_core.model.events import Event
from controller_core.model.zookeeper_changes import BrokersObserved, StatesObserved
from controller_core.shell.active import Defaults
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.front.front import open_front
from controller_core.shell.front.route import BrokerEndpoint
from controller_core.shell.memory_limit import buffer_bytes
from controller_core.shell.zookeeper.authorizer import ProcessAuthorizer
from controller_core.zookeeper_mode.apis import NOT_ADVERTISED, SERVED
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.propagation import apply_and_build_requests
from kafka_node.authorization.authorizer import Rules
from kafka_node.security.listeners import NOTHING, Demands
from kafka_wire.net.buffers import Buffers
from kafka_wire.net.sasl_server import SaslServer
from kafka_wire.sasl.scram_decoy import CredentialShape
from kafka_wire.sasl.scram_keys import ScramCredential

BEAT_S = 0.001
MAX_ERRORS = 20
TOPICS, PARTITIONS, BROKERS = 1_000, 10, 4
"""10,000 partitions: answers to requests for all topics (Metadata) have to keep the bounds as well."""
LISTENER = "CLIENT"
USER, PASSWORD = "admin", "secret"
OPEN, ADMITTED, REFUSED = "open", "admitted", "refused"
"""No authorizer; a user of SASL/PLAIN with all rights; one without any right."""
STATUS = Path("/proc/self/status")
CLEAR_REFS = Path("/proc/self/clear_refs")
RESET_PEAK = "5"


class Active:
    """An active controller that decides with the real core and writes nothing."""

    cluster_id = "bench"

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def submit(self, event: Event) -> Any:
        """Decide and apply; as in an event of the controller, nothing else runs at the same time."""
        await asyncio.sleep(0)
        decision = decide(self.cluster, event)
        for change in decision.changes:
            apply_and_build_requests(self.cluster, change)
        return decision.reply

    async def known_defaults(self, _timeout_ms: int) -> Defaults | None:
        """They are known."""
        return Defaults()

    async def brokers_answered(self, _timeout_ms: int, _silence_ms: int) -> bool:
        """They do."""
        return True

    async def until(self, holds: Callable[[], bool], _timeout_ms: int) -> bool:
        """Return whether it is active: nothing else changes the cluster."""
        return holds()

    async def topic_removed(self, name: str, _timeout_ms: int) -> bool:
        """Return whether it is inactive."""
        return name not in self.cluster.topics

    def advertised(self) -> Sequence[Endpoint]:
        """Return the controller's endpoint."""
        return (Endpoint(LISTENER, "localhost", 9092, "PLAINTEXT"),)


class Users:
    """One user."""

    async def plain_password(self, user: str) -> str | None:
        """Return the user's password."""
        return PASSWORD if user == USER else None

    async def scram_credential(self, _mechanism: str, _user: str) -> ScramCredential | None:
        """No user has one."""
        return None

    async def scram_shapes(self, _mechanism: str) -> Mapping[CredentialShape, int]:
        """No user has one."""
        return {}


def fixed_cluster() -> Cluster:
    """Return a cluster of some topics, all in sync."""
    cluster = Cluster(1000, 5)
    brokers = (
        Broker(broker_id, 1, (Endpoint(LISTENER, f"b{broker_id}", 9092, "PLAINTEXT"),))
        for broker_id in range(1, BROKERS + 1)
    )
    apply_and_build_requests(cluster, BrokersObserved(tuple(brokers)))
    numbers = np.arange(PARTITIONS, dtype=np.int32)
    for topic in range(TOPICS):
        replicas = ((numbers[:, None] + np.arange(3) + topic) % BROKERS + 1).astype(np.int32)
        apply_and_build_requests(
            cluster, TopicAdded(f"topic-{topic}", uuid.UUID(int=topic + 1), numbers, replicas, Origin.OBSERVED)
        )
    rows = cluster.columns.used()
    replicas, zeros = cluster.columns.replicas[rows], np.zeros(len(rows), np.int32)
    epochs = np.full(len(rows), 5, np.int32)
    states = StatesObserved(
        rows, replicas[:, 0].copy(), zeros, replicas.copy(), zeros, epochs, np.zeros(len(rows), bool)
    )
    apply_and_build_requests(cluster, states)
    return cluster


class Heart(logging.Handler):
    """Runs in the loop at a fixed interval, keeps its longest delay, and collects logged errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.wall_s = self.cpu_s = 0.0
        self.base_kib = 0
        self.errors: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an error's message and what raised it."""
        cause = record.exc_info[1] if record.exc_info else None
        self.errors.append(f"{record.getMessage()}: {cause!r}")

    async def beat(self) -> None:
        """Run until cancelled."""
        wall, cpu = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(BEAT_S)
            now, used = time.perf_counter(), time.thread_time()
            self.wall_s, self.cpu_s = max(self.wall_s, now - wall - BEAT_S), max(self.cpu_s, used - cpu)
            wall, cpu = now, used

    def begin(self) -> None:
        """Start a measurement."""
        gc.collect()
        CLEAR_REFS.write_text(RESET_PEAK, encoding="ascii")
        self.base_kib = _memory_kib("VmRSS")

    def report(self) -> str:
        """Return the measurement."""
        figures = {
            "wall_ms": self.wall_s * 1e3,
            "cpu_ms": self.cpu_s * 1e3,
            "kib": _memory_kib("VmHWM") - self.base_kib,
        }
        errors, self.errors = self.errors, []
        return json.dumps({**figures, "errors": errors[:MAX_ERRORS]})


def _memory_kib(name: str) -> int:
    line = next(line for line in STATUS.read_text(encoding="ascii").splitlines() if line.startswith(name + ":"))
    return int(line.split()[1])


async def serve(mode: str, sink_port: int) -> None:
    """Serve until standard input ends."""
    active = Active(fixed_cluster())
    own, guard, demands = handlers(lambda: active), None, NOTHING
    if mode != OPEN:
        authorizer = ProcessAuthorizer(
            Rules(frozenset({f"User:{USER}"} if mode == ADMITTED else ()), False), lambda: active.cluster
        )
        authorizer.service.known.loaded.set()
        own, guard = authorizer.with_topic_authorization(own, partial(asyncio.sleep, 0)), authorizer.guard
        demands = Demands(sasl=SaslServer(mechanisms=("PLAIN",), credentials=Users()))
    front = await open_front(
        LISTENER,
        "127.0.0.1",
        0,
        own,
        lambda: [BrokerEndpoint(1, "127.0.0.1", sink_port)],
        served=SERVED,
        not_advertised=NOT_ADVERTISED,
        demands=demands,
        guard=guard,
        buffers=Buffers(buffer_bytes(256 * 1024 * 1024)),
    )
    heart = Heart()
    logging.getLogger().addHandler(heart)
    beating = asyncio.create_task(heart.beat())
    print(front.port, flush=True)
    loop = asyncio.get_running_loop()
    gc.freeze()
    while await loop.run_in_executor(None, sys.stdin.readline):
        report = heart.report()
        heart.begin()
        await asyncio.sleep(0.01)
        heart.wall_s = heart.cpu_s = 0.0
        print(report, flush=True)
    beating.cancel()
    await front.close(grace_ms=1)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
