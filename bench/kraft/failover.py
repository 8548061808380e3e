"""kill -9 of the active controller with 10,000 to a million partitions, and a cold start: Steward's controllers and Kafka's (K2, K4).

The partitions come from a snapshot (`metadata`), and their brokers' sessions do not end. The time is that to the first committed change
of a topic, which both remaining controllers are asked for again and again: it covers the failure's detection (equal timeouts), the
election, and everything that the next controller does before it answers. The second row begins at the leadership of the next.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.harness import Better, Effort, Row, duration, promised, side_of
from bench.kraft.controllers import Kind, cold_start_s, controllers, until_written, wait_until_idle
from bench.kraft.metadata import topic_name, write_metadata
from bench.quorum.election import SETTINGS as TIMEOUTS
from bench.quorum.election_log import round_after
from lab.peers.quorum import Quorum
from lab.processes.folder import lab_folder

NAME = "kraft-failover"
ABOUT = "kill -9 of the active controller with up to a million partitions, compared with Kafka 4.3's (forty minutes)"

SETTINGS = {**TIMEOUTS, "broker.session.timeout.ms": "86400000"}
ROUNDS = {10_000: 30, 100_000: 30, 1_000_000: 7}
"""Rounds by partitions: with a million, a restarted controller loads for a minute."""
QUICK_ROUNDS = {1_000: 2}
HEAPS = {1_000: "256m", 10_000: "256m", 100_000: "512m", 1_000_000: "3g"}
PEER = "three controllers of Kafka 4.3 with the same timeouts and metadata"
MEMORY_OF = 100_000
MEMORY_AT_LEAST = 2.0


@dataclass(slots=True)
class Found:
    """Figures of one side with one number of partitions."""

    cold_start_s: float = 0.0
    whole_s: list[float] = field(default_factory=list)
    active_s: list[float] = field(default_factory=list)
    """From the leadership of the next."""
    resident_bytes: int = 0
    """Memory of the active controller at the end."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of each number of partitions when both sides are done."""
    for partitions, usual in (QUICK_ROUNDS if effort.quick else ROUNDS).items():
        rounds = effort.rounds or usual
        with lab_folder(None) as folder:
            snapshot = write_metadata(folder, partitions)
            sides = [_failovers(kind, snapshot, HEAPS[partitions], rounds) for kind in (Kind.STEWARD, Kind.KAFKA)]
        yield from _rows(partitions, sides)


def _failovers(kind: Kind, snapshot: Path, heap: str, rounds: int) -> Found:
    found = Found()
    with controllers(kind, snapshot, SETTINGS, heap) as voters:
        found.cold_start_s = cold_start_s(voters, topic_name(0))
        for number in range(rounds):
            _kill_active(voters, number, found)
        wait_until_idle(voters.values())
        found.resident_bytes = voters[voters.leader_and_epoch()[0]].process.resident_bytes
    return found


def _kill_active(voters: Quorum, number: int, found: Found) -> None:
    """End the active controller, and start it again."""
    wait_until_idle(voters.values())
    leader, epoch = voters.wait_for_leader()
    others = [node for node_id, node in voters.items() if node_id != leader]
    # Kafka's controllers log each partition that they load: hundreds of megabytes at each start.
    begins = [node.process.log_bytes for node in others]
    began_s = time.time()
    whole_s = until_written(others, topic_name(0), 1_000 + number, voters[leader].kill)
    logs = [(node.node_id, node.process.log_text(begin)) for node, begin in zip(others, begins, strict=True)]
    won = round_after(epoch, logs)
    found.whole_s.append(whole_s)
    found.active_s.append(began_s + whole_s - won.elected_s)
    voters[leader].start()


def _rows(partitions: int, sides: Sequence[Found]) -> Iterator[Row]:
    ours, peer = sides
    name, of = f"{NAME}.{partitions}", f"{partitions:,} partitions, three controllers"
    what = f"kill -9 of the active controller to the first committed change of the next, {of}"
    yield promised(duration(name, what, PEER, (ours.whole_s, peer.whole_s)), "K2", 1.0)
    what = f"leadership of the next controller to its first committed change, {of}"
    yield promised(duration(f"{name}.active", what, PEER, (ours.active_s, peer.active_s)), "K2", 1.0)
    what = f"cold start of all controllers to the first committed change, {of}"
    yield promised(duration(f"{name}.cold", what, PEER, ([ours.cold_start_s], [peer.cold_start_s])), "K2", 1.0)
    what = f"resident memory of the active controller, {of}"
    mine, theirs = (side_of([side.resident_bytes / 1e6]) for side in sides)
    peer_is = f"{PEER}, -Xmx{HEAPS[partitions]}"
    row = Row(f"{name}.memory", what, peer_is, "MB", Better.LOWER, mine, theirs, len(ours.whole_s))
    yield promised(row, "K4", MEMORY_AT_LEAST) if partitions == MEMORY_OF else row
