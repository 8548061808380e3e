"""All clients refresh their metadata right after a broker's failure: stalls of the event loop, and delay of the failover.

200,000 partitions in a real ZooKeeper, ten brokers that are sockets, and the Steward controller as a separate process. A broker's
registration is deleted, and 100 clients request all topics' Metadata on their own sockets, as clients do after a disconnection. The
failover ends when the last broker has received the last partition. Rounds with and without the clients take turns.
"""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.harness import Better, Effort, Row, limited, promised, side_of
from bench.zookeeper_mode.large_layout import (
    CHROOT,
    REPLICATION_FACTOR,
    LargeLayout,
    in_transactions,
    large_layout,
    leaders_on_all_brokers,
    states,
    topics_of,
)
from kafka_wire import ApiKey, codec
from kafka_zookeeper import paths
from lab.peers.kafka import INTERNAL
from lab.peers.steward import StewardController

NAME = "metadata-herd"
ABOUT = "100 clients request all topics' Metadata right after a broker's failure at 200,000 partitions (minutes)"

PARTITIONS = 200_000
QUICK_PARTITIONS = 10_000
CLIENTS = 100
ROUNDS = 3
PROMISE = "P14"
STALL_LIMIT_MS = 50.0
RATIO_LIMIT = 1.1
VICTIM_PLACE = 3
VERSION = 12
SETTLE_S = 2.0
"""Time after a takeover until its garbage is collected and its last requests are answered."""
STALL = "steward_controller_loop_longest_stall_seconds"
CPU = "steward_controller_loop_longest_cpu_seconds"
"""Without the time in which other processes had the machine's cores."""
CLIENT_TIMEOUT_S = 300.0
RECEIVE_BYTES = 1 << 18


@dataclass
class Herd:
    """Clients that send one request each, at the same moment, in separate threads."""

    port: int
    received: list[int] = field(default_factory=list)
    """Bytes of each response."""
    _threads: list[threading.Thread] = field(default_factory=list)

    def connect(self) -> None:
        """Connect all of them, so that only the request is measured."""
        sockets = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(CLIENTS)]
        self._threads = [threading.Thread(target=self._ask, args=(socket,)) for socket in sockets]

    def ask(self) -> None:
        """Send all requests."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Wait until each has read its response."""
        for thread in self._threads:
            thread.join()
        assert len(self.received) == CLIENTS, f"{CLIENTS - len(self.received)} of {CLIENTS} clients were cut off"

    def _ask(self, connection: socket.socket) -> None:
        frame = codec.encode_request(ApiKey.METADATA, VERSION, 1, "herd", {"topics": None})
        with contextlib.closing(connection):
            connection.settimeout(CLIENT_TIMEOUT_S)
            connection.sendall(struct.pack(">i", len(frame)) + frame)
            size = struct.unpack(">i", connection.recv(4, socket.MSG_WAITALL))[0]
            left = size
            buffer = bytearray(RECEIVE_BYTES)
            while left:
                count = connection.recv_into(buffer, min(left, RECEIVE_BYTES))
                if not count:
                    return
                left -= count
        self.received.append(size)


@dataclass(frozen=True)
class Round:
    """Figures of one failover."""

    failover_s: float
    stall_ms: float
    cpu_ms: float
    herd_s: float


def measure(effort: Effort) -> Iterator[Row]:
    """Yield all rows after the last round."""
    partitions = QUICK_PARTITIONS if effort.quick else PARTITIONS
    rounds = effort.runs(ROUNDS)
    with large_layout(partitions) as stage, stage.ours() as controller:
        load = [stall * 1000 for stall in stalls(controller)]
        before = controller.process.highest_resident_bytes
        one_failover(stage, controller, None)  # warm
        without, herded = [], []
        for _ in range(rounds):
            without.append(one_failover(stage, controller, None))
            herded.append(one_failover(stage, controller, Herd(controller.ports[INTERNAL])))
        growth_mib = (controller.process.highest_resident_bytes - before) / 2**20
    about = f"{CLIENTS} clients ask for all Metadata right after the death of one of 10 brokers, {partitions:,} partitions, RF 3"
    for figure, message, sides in (
        ("metadata_herd", about, ([run.stall_ms for run in herded], [run.cpu_ms for run in herded])),
        (
            "failover",
            "the same failover without the clients",
            ([run.stall_ms for run in without], [run.cpu_ms for run in without]),
        ),
        ("load", f"start of a controller, {partitions:,} partitions", ([load[0]], [load[1]])),
    ):
        for kind, part, side in zip(
            ("", "_cpu"), ("longest stall of the loop", "its CPU time only"), sides, strict=True
        ):
            name = f"stall.{figure}{kind}"
            yield limited(name, f"{message}; {part}", "ms", side_of(side), STALL_LIMIT_MS, PROMISE)
    ratios = side_of(
        [with_herd.failover_s / alone.failover_s for with_herd, alone in zip(herded, without, strict=True)]
    )
    message = f"{about}; failover, from the deleted registration to the last request to a broker, with the clients over without"
    yield limited("stall.failover_ratio", message, "x", ratios, RATIO_LIMIT, PROMISE)
    mine, other = (side_of([run.failover_s * 1000 for run in side]) for side in (herded, without))
    row = Row(
        "stall.failover_with_herd", f"{about}; failover", "without clients", "ms", Better.LOWER, mine, other, rounds
    )
    yield promised(row, PROMISE)
    answered = side_of([run.herd_s * 1000 for run in herded])
    yield limited(
        "stall.metadata_herd_answered", f"{about}; the last has read its response", "ms", answered, 30_000.0, PROMISE
    )
    memory = side_of([growth_mib])
    yield limited("stall.metadata_herd_memory", f"{about}; growth of the process", "MiB", memory, 256.0, PROMISE)


def one_failover(stage: LargeLayout, controller: StewardController, herd: Herd | None) -> Round:
    """End a broker that is in sync everywhere, with or without the clients, and register it again."""
    write_back(stage)
    stage.takeover()
    time.sleep(SETTLE_S)
    victim = stage.brokers.brokers[VICTIM_PLACE]
    path = f"{CHROOT}{paths.broker(victim.broker_id)}"
    document = stage.client.get(path)[0]
    expected = hosted_partitions(stage)
    if herd is not None:
        herd.connect()
    stage.brokers.mark()
    stalls(controller)  # resets the gauges
    began_s = time.time()
    stage.client.delete(path)
    if herd is not None:
        herd.ask()
    herd_s = 0.0
    if herd is not None:
        herd.wait()
        herd_s = time.time() - began_s
    stage.wait_until_received(expected)
    ended_s = stage.brokers.last_request_s()
    stall_s, cpu_s = stalls(controller)
    stage.client.create(path, document, ephemeral=True)
    return Round(ended_s - began_s, stall_s * 1000, cpu_s * 1000, herd_s)


def stalls(controller: StewardController) -> tuple[float, float]:
    """Return the longest stall and the longest use of the CPU since the last scrape, in seconds."""
    samples = dict(line.rsplit(" ", 1) for line in controller.metrics().splitlines() if not line.startswith("#"))
    return float(samples[STALL]), float(samples[CPU])


def write_back(stage: LargeLayout) -> None:
    """Put every replica back into its ISR: these brokers never fetch, so none would return by itself."""
    for number in topics_of(stage.partitions):
        in_transactions(stage.client, list(states(number, leaders_on_all_brokers)), create=False)


def hosted_partitions(stage: LargeLayout) -> int:
    """Return the number of partitions sent when one of ten brokers fails: each that it led, to both other replicas."""
    return stage.partitions // len(stage.brokers.brokers) * (REPLICATION_FACTOR - 1)
