"""Heartbeats while a broker with 100,000 partitions shuts down, and the metadata is written as a snapshot (K6).

The brokers of a synthetic cluster (`metadata`) send a heartbeat each 100 ms, each on connections of its own. One of them asks for its
controlled shutdown, upon which all its partitions change, which makes a snapshot due. The figure is the time from a heartbeat to the response
that accepts it: one that is refused because the controller was too busy, or has lost its place, is sent again as a broker does.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Better, Effort, Row, duration, limited, side_of
from bench.kraft.controllers import PATIENCE_S, Kind, cold_start_s, controllers, wait_until_idle
from bench.kraft.metadata import BROKERS, REPLICAS, SNAPSHOT, broker_epoch, topic_name, write_metadata
from bench.quorum.election import SETTINGS as TIMEOUTS
from bench.quorum.election import percentile_99
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node
from lab.peers.quorum import HOST, Quorum
from lab.processes.folder import lab_folder

NAME = "kraft-heartbeats"
ABOUT = "heartbeats while 100,000 partitions change, compared with Kafka 4.3's controllers (15 minutes)"

PARTITIONS, QUICK_PARTITIONS = 300_000, 1_000
"""Of nine brokers, both sides. With a million, of which a third changed, Kafka's controllers with this heap fenced brokers and ended."""
LIMIT_PARTITIONS, QUICK_LIMIT_PARTITIONS = 1_000_000, 2_000
LIMIT_BROKERS = tuple(range(1, 31))
"""Steward's controllers alone."""
HEAP = "3g"
ROUNDS = 3
INTERVAL_S = 0.1
LIMIT_MS = 100.0
SETTLED_S, QUICK_SETTLED_S = 20.0, 2.0
"""Heartbeats go on for some time, in which the snapshot is written."""
SETTINGS = {
    **TIMEOUTS,
    "broker.session.timeout.ms": "9000",
    "metadata.log.max.record.bytes.between.snapshots": "5000000",
}
RETRIABLE = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER}
"""Upon these a broker sends its heartbeat again, at once or to another controller."""
RETRY_S = 0.05
READ_OFFSET = SNAPSHOT.offset * 2
"""The brokers claim to have read everything."""
PEER = "three controllers of Kafka 4.3 with the same metadata"


@dataclass(frozen=True, slots=True)
class Scene:
    """The metadata of a round, its brokers, and how long heartbeats go on at least."""

    snapshot: Path
    brokers: Sequence[int]
    settled_s: float


@dataclass(frozen=True, slots=True)
class Answers:
    """What one round gave: the seconds of each heartbeat's acceptance, how many were refused, and the brokers that were fenced."""

    took_s: list[float]
    refused: int
    fenced: list[int]

    @property
    def accepted_percent(self) -> float:
        """Return the share of requests that were accepted."""
        return 100 * len(self.took_s) / (len(self.took_s) + self.refused)


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of both sides, then the row of Steward's alone with more partitions."""
    partitions, more = (QUICK_PARTITIONS, QUICK_LIMIT_PARTITIONS) if effort.quick else (PARTITIONS, LIMIT_PARTITIONS)
    settled_s = QUICK_SETTLED_S if effort.quick else SETTLED_S
    rounds = effort.runs(ROUNDS)
    with lab_folder(None) as folder:
        scene = Scene(write_metadata(folder, partitions), BROKERS, settled_s)
        ours, peer = ([_answers(kind, scene) for _ in range(rounds)] for kind in (Kind.STEWARD, Kind.KAFKA))
    yield from _compared(partitions, ours, peer)
    with lab_folder(None) as folder:
        scene = Scene(write_metadata(folder, more, LIMIT_BROKERS), LIMIT_BROKERS, settled_s)
        alone = side_of([1000 * percentile_99(_answers(Kind.STEWARD, scene).took_s) for _ in range(rounds)])
    what = f"a heartbeat to its acceptance {_leaving(more, LIMIT_BROKERS)}; 99th percentile, with the limit"
    yield limited(f"{NAME}.p99.limit", what, "ms", alone, LIMIT_MS, "K6")


def _leaving(partitions: int, brokers: Sequence[int]) -> str:
    return f"while a broker with {partitions * REPLICAS // len(brokers):,} of {partitions:,} partitions shuts down"


def _compared(partitions: int, ours: list[Answers], peer: list[Answers]) -> Iterator[Row]:
    leaving = _leaving(partitions, BROKERS)
    what = f"a heartbeat to its acceptance {leaving}"
    mine, theirs = ([percentile_99(run.took_s) for run in side] for side in (ours, peer))
    yield duration(f"{NAME}.p99", f"{what}; 99th percentile", PEER, (mine, theirs))
    mine, theirs = ([max(run.took_s) for run in side] for side in (ours, peer))
    yield duration(f"{NAME}.longest", f"{what}; the longest", PEER, (mine, theirs))
    accepted = [side_of([run.accepted_percent for run in side]) for side in (ours, peer)]
    what = f"share of the requests that are accepted, {leaving}"
    yield Row(f"{NAME}.accepted", what, PEER, "percent", Better.HIGHER, accepted[0], accepted[1], len(ours))


def _answers(kind: Kind, scene: Scene) -> Answers:
    """Return the heartbeats of the brokers that stay, from the request for the shutdown on."""
    with controllers(kind, scene.snapshot, SETTINGS, HEAP) as voters:
        cold_start_s(voters, topic_name(0))
        voters.wait_for_leader()
        answers = asyncio.run(_shutdown(voters, scene))
    assert kind is Kind.KAFKA or not answers.fenced, f"no other broker is fenced: {answers.fenced}"
    return answers


async def _shutdown(voters: Quorum, scene: Scene) -> Answers:
    """Let a broker leave while the others send heartbeats."""
    ended = asyncio.Event()
    senders = [Sender(broker, voters) for broker in scene.brokers]
    leaving, *others = senders
    async with asyncio.timeout(PATIENCE_S):
        tasks = [asyncio.create_task(sender.run(ended)) for sender in senders]
        await asyncio.to_thread(wait_until_idle, voters.values())
        for sender in senders:
            sender.forget()
        leaving.wants_shutdown = True
        await asyncio.gather(leaving.may_leave.wait(), asyncio.sleep(scene.settled_s))
        ended.set()
        await asyncio.gather(*tasks)
    return Answers(
        [took_s for sender in others for took_s in sender.took_s],
        sum(sender.refused for sender in others),
        [sender.broker for sender in others if sender.was_fenced],
    )


class Sender:
    """The heartbeats of a broker, each sent to the active controller until it is accepted."""

    def __init__(self, broker: int, voters: Quorum) -> None:
        self.broker = broker
        self._voters = voters
        self._clients = {node_id: Node(HOST, node.member.port) for node_id, node in voters.items()}
        self.took_s: list[float] = []
        self.refused = 0
        self.wants_shutdown = False
        self.may_leave = asyncio.Event()
        self.was_fenced = False

    def forget(self) -> None:
        """Begin to count."""
        self.took_s.clear()
        self.refused = 0

    async def run(self, ended: asyncio.Event) -> None:
        """Send heartbeats until the end."""
        while not ended.is_set() and not self.may_leave.is_set():
            began_s = time.perf_counter()
            answer = await self._accepted()
            took_s = time.perf_counter() - began_s
            self.took_s.append(took_s)
            self.was_fenced |= answer["is_fenced"]
            if answer["should_shut_down"]:
                self.may_leave.set()
            await asyncio.sleep(max(0.0, INTERVAL_S - took_s))
        for client in self._clients.values():
            await client.close()

    async def _accepted(self) -> Body:
        """Send a heartbeat until it is accepted; return the answer."""
        while True:
            leader, _ = self._voters.leader_and_epoch()
            if leader in self._clients:
                with contextlib.suppress(ConnectionFailed):
                    answer = await self._clients[leader].call(
                        ApiKey.BROKER_HEARTBEAT, self._request(), timeout_ms=int(PATIENCE_S * 1000)
                    )
                    error = ErrorCode(answer["error_code"])
                    if error is ErrorCode.NONE:
                        return answer
                    assert error in RETRIABLE, error.name
            self.refused += 1
            await asyncio.sleep(RETRY_S)

    def _request(self) -> Body:
        return {
            "broker_id": self.broker,
            "broker_epoch": broker_epoch(self.broker),
            "current_metadata_offset": READ_OFFSET,
            "want_fence": False,
            "want_shut_down": self.wants_shutdown,
        }
