"""Heartbeats while a broker shuts down that leads 111,000 of a million partitions, and the metadata is written as a snapshot (K6).

Eight brokers of a synthetic cluster (`kraft_metadata`) send a heartbeat each 100 ms, each on a connection of its own. The ninth asks for its
controlled shutdown, upon which all its partitions change, which makes a snapshot due. The figure is the time from a heartbeat to its response.
"""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from bench.harness import Effort, Row, duration, limited
from bench.kraft_controllers import PATIENCE_S, Kind, cold_start_s, controllers, wait_until_idle
from bench.kraft_metadata import BROKERS, SNAPSHOT, broker_epoch, topic_name, write_metadata
from bench.quorum_election import SETTINGS as TIMEOUTS
from bench.quorum_election import percentile_99
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import Node
from lab.folder import lab_folder
from lab.quorum import HOST, Quorum, QuorumNode

NAME = "kraft-heartbeats"
ABOUT = "heartbeats while 111,000 partitions change, compared with Kafka 4.3's controllers (ten minutes)"

PARTITIONS, QUICK_PARTITIONS = 1_000_000, 1_000
HEAP = "3g"
ROUNDS = 3
INTERVAL_S = 0.1
LIMIT_MS = 100.0
SETTLED_S, QUICK_SETTLED_S = 20.0, 2.0
"""Heartbeats go on for some time, in which the snapshot is written."""
SETTINGS = {
    **TIMEOUTS,
    "broker.session.timeout.ms": "9000",
    "metadata.log.max.record.bytes.between.snapshots": "1000000",
}
READ_OFFSET = SNAPSHOT.offset * 2
"""The brokers claim to have read everything."""
PEER = "three controllers of Kafka 4.3 with the same metadata"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows after the last round."""
    partitions = QUICK_PARTITIONS if effort.quick else PARTITIONS
    rounds = effort.runs(ROUNDS)
    with lab_folder(None) as folder:
        snapshot = write_metadata(folder, partitions)
        ours, peer = ([_answers(kind, snapshot, effort) for _ in range(rounds)] for kind in (Kind.STEWARD, Kind.KAFKA))
    what = f"a heartbeat to its response while a leader of {partitions // len(BROKERS):,} of {partitions:,} partitions shuts down"
    p99 = duration(
        f"{NAME}.p99",
        f"{what}; 99th percentile",
        PEER,
        ([percentile_99(one) for one in ours], [percentile_99(one) for one in peer]),
    )
    yield p99
    yield limited(f"{NAME}.p99.limit", f"{what}; 99th percentile, with the limit", "ms", p99.ours, LIMIT_MS, "K6")
    yield duration(
        f"{NAME}.longest", f"{what}; the longest", PEER, ([max(one) for one in ours], [max(one) for one in peer])
    )


def _answers(kind: Kind, snapshot: Path, effort: Effort) -> list[float]:
    """Return the seconds of each heartbeat's response, from the request for the shutdown on."""
    with controllers(kind, snapshot, SETTINGS, HEAP) as voters:
        cold_start_s(voters, topic_name(0))
        leader, _ = voters.wait_for_leader()
        return asyncio.run(_shutdown(voters, leader, QUICK_SETTLED_S if effort.quick else SETTLED_S))


async def _shutdown(voters: Quorum, leader: int, settled_s: float) -> list[float]:
    """Let a broker leave while the others send heartbeats."""
    ended = asyncio.Event()
    senders = [Sender(broker, voters[leader]) for broker in BROKERS]
    async with asyncio.timeout(PATIENCE_S):
        tasks = [asyncio.create_task(sender.run(ended)) for sender in senders]
        standbys = [node for node_id, node in voters.items() if node_id != leader]
        await asyncio.to_thread(wait_until_idle, standbys)
        for sender in senders:
            sender.took_s.clear()
        senders[0].wants_shutdown = True
        await asyncio.gather(senders[0].may_leave.wait(), asyncio.sleep(settled_s))
        ended.set()
        await asyncio.gather(*tasks)
    assert not any(sender.was_fenced for sender in senders[1:]), "no other broker was fenced"
    return [one for sender in senders[1:] for one in sender.took_s]


class Sender:
    """The heartbeats of a broker."""

    def __init__(self, broker: int, controller: QuorumNode) -> None:
        self._broker = broker
        self._client = Node(HOST, controller.member.port)
        self.took_s: list[float] = []
        self.wants_shutdown = False
        self.may_leave = asyncio.Event()
        self.was_fenced = False

    async def run(self, ended: asyncio.Event) -> None:
        """Send heartbeats until the end."""
        while not ended.is_set() and not self.may_leave.is_set():
            began_s = time.perf_counter()
            answer = await self._client.call(
                ApiKey.BROKER_HEARTBEAT, self._request(), timeout_ms=int(PATIENCE_S * 1000)
            )
            took_s = time.perf_counter() - began_s
            assert answer["error_code"] == ErrorCode.NONE, ErrorCode(answer["error_code"]).name
            self.took_s.append(took_s)
            self.was_fenced |= answer["is_fenced"]
            if answer["should_shut_down"]:
                self.may_leave.set()
            await asyncio.sleep(max(0.0, INTERVAL_S - took_s))
        await self._client.close()

    def _request(self) -> Body:
        return {
            "broker_id": self._broker,
            "broker_epoch": broker_epoch(self._broker),
            "current_metadata_offset": READ_OFFSET,
            "want_fence": False,
            "want_shut_down": self.wants_shutdown,
        }
