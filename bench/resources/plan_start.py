"""A plan of 100,000 partitions: from the creation of its Reassignment to its first moves in Kafka, compared with Kafka's own tool (P8).

A real API server, and real Kafka 3.9 under a Steward controller. Every partition has one replica, which goes to the next broker: what a
broker holds at most is twice what it held, so twelve of them stay within 20,000 open files and Linux's own 65,530 mapped ones. The
peer is kafka-reassign-partitions --execute with the same plan: it checks brokers and partitions and hands over all of it in one
request, which only a controller with ZooKeeper takes (KRaft's takes 10,000 partitions at most). It sets everything in motion at once,
so it comes last, and once. Steward checks more, keeps plan and base in ConfigMaps before it begins, and begins as many moves as
`concurrency` lets; then it is cancelled. The duration of the moves is not measured.
"""

import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Better, Effort, Row, duration, limited, side_of
from bench.resources.operator_stage import StewardStage, operator_stage
from bench.resources.planned_moves import Move, PlannedMoves
from bench.zookeeper_mode.layout import FIRST_COMPILER_ONLY
from lab.peers.java_process import java_command
from lab.processes.process import highest_resident_bytes

NAME = "plan-start"
ABOUT = "a plan of 100,000 partitions, checked and begun, compared with kafka-reassign-partitions (many minutes)"

BROKERS, TOPICS = tuple(range(1, 13)), 1_000
QUICK_BROKERS, QUICK_TOPICS = (1, 2, 3), 10
PARTITIONS_OF_TOPIC = 100
ROUNDS = 3
BROKER_HEAP = "512m"
SESSION_TIMEOUT_MS = 18_000
"""Kafka's own default: twelve brokers that make thousands of logs are late for less."""
SETTINGS = {
    "auto.leader.rebalance.enable": "false",
    "log.cleaner.enable": "false",
    "log.index.size.max.bytes": "4096",
}
"""What a hundred thousand empty logs need less of."""

LIMIT_S = 10.0
"""The promise."""

PEER_HEAP = "256m"
"""Heap that Kafka's scripts give their tools."""
LAB_ONLY = {FIRST_COMPILER_ONLY, "-XX:+UseSerialGC", f"-Xms{PEER_HEAP}"}
"""The lab's JVMs are small and start fast; the tool gets Java's own defaults, as its script would give it."""
MEMORY_POLL_S = 0.02
"""Between two reads of the tool's highest memory: what it takes in its last moment is missed."""
PEER = "kafka-reassign-partitions --execute, the whole command, once"
END_CHARACTERS = 2_000
"""Of what the tool wrote, shown when it fails: before that it prints the whole plan."""
FEWEST_BESIDES_CONFIG_MAPS = 2
"""A finalizer, and a status that names what is about to be handed over: without them a crash loses the plan."""


@dataclass(frozen=True, slots=True)
class Begun:
    """One round of Steward: seconds, writes to the API server, ConfigMaps among them, and the most memory in use."""

    seconds: float
    writes: float
    config_maps: float
    highest_bytes: int


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows when both sides are done."""
    broker_ids, topics = (QUICK_BROKERS, QUICK_TOPICS) if effort.quick else (BROKERS, TOPICS)
    rounds = 1 if effort.quick else effort.runs(ROUNDS)
    stage = operator_stage(broker_ids, heap=BROKER_HEAP, settings=SETTINGS, session_timeout_ms=SESSION_TIMEOUT_MS)
    with stage as at:
        moves = PlannedMoves(at, topics, PARTITIONS_OF_TOPIC)
        moves.create_topics()
        at_once = [created(moves) for _ in range(rounds)]
        after_approval = [approved(moves) for _ in range(rounds)]
        peer_s, peer_bytes = peer(at, moves)
    message = f"a plan of {topics * PARTITIONS_OF_TOPIC:,} partitions of one replica on {len(broker_ids)} brokers"
    yield from rows(message, at_once, after_approval, (peer_s, peer_bytes))


def created(moves: PlannedMoves) -> Begun:
    """Create a Reassignment that needs no approval."""
    with moves.prepared("created") as move:
        before = move.writes()
        began_s = time.perf_counter()
        move.create()
        return _begun(move.wait_for_first_move() - began_s, before, move)


def approved(moves: PlannedMoves) -> Begun:
    """Create one that waits for approval, and approve what it proposes."""
    with moves.prepared("approved") as move:
        move.create(approval="Required")
        digest = move.wait_until("Proposed")["digest"]
        before = move.writes()
        began_s = time.perf_counter()
        move.change({"approvedDigest": digest})
        return _begun(move.wait_for_first_move() - began_s, before, move)


def peer(at: StewardStage, moves: PlannedMoves) -> tuple[float, int]:
    """Run the tool to its end; return the seconds and the most memory in use."""
    plan = at.folder / "plan.json"
    plan.write_bytes(moves.document())
    main_class = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    arguments = ("--bootstrap-server", at.kafka.bootstrap(), "--reassignment-json-file", str(plan), "--execute")
    command = java_command(main_class, *arguments, heap=PEER_HEAP, log4j="log4j-tools.properties")
    output = at.folder / "plan-peer.log"
    began_s = time.perf_counter()
    with output.open("wb") as log:
        tool = subprocess.Popen([part for part in command if part not in LAB_ONLY], stdout=log, stderr=log)
    highest_bytes = 0
    while tool.poll() is None:
        highest_bytes = max(highest_bytes, highest_resident_bytes(tool.pid))
        time.sleep(MEMORY_POLL_S)
    seconds = time.perf_counter() - began_s
    assert tool.returncode == 0, _end_of(output)
    return seconds, highest_bytes


def _begun(seconds: float, before: tuple[float, float], move: Move) -> Begun:
    changes, config_maps = (now - then for now, then in zip(move.writes(), before, strict=True))
    return Begun(seconds, changes + config_maps, config_maps, move.operator.process.highest_resident_bytes)


def rows(
    message: str, at_once: Sequence[Begun], after_approval: Sequence[Begun], peer_figures: tuple[float, int]
) -> Iterator[Row]:
    """Yield what both sides came to; the peer's figures are its seconds and bytes."""
    peer_s, peer_bytes = peer_figures
    seconds = [run.seconds for run in at_once]
    what = f"{message}, from its Reassignment's creation to the first moves in Kafka"
    yield duration(f"{NAME}.created", what, PEER, (seconds, [peer_s]))
    yield limited(f"{NAME}.created_limit", what, "s", side_of(seconds), LIMIT_S, "P8")
    what = f"{message}, from its approval to the first moves in Kafka"
    yield duration(f"{NAME}.approved", what, PEER, ([run.seconds for run in after_approval], [peer_s]))
    counts = [run.writes for run in at_once], [run.config_maps + FEWEST_BESIDES_CONFIG_MAPS for run in at_once]
    what = f"writes to the API server until the first moves: {message}"
    floor = "the fewest: the ConfigMaps that keep it, a finalizer, a status"
    sides = side_of(counts[0]), side_of(counts[1])
    yield Row(f"{NAME}.writes", what, floor, "writes", Better.LOWER, *sides, len(at_once))
    memory = side_of([run.highest_bytes / 1e6 for run in (*at_once, *after_approval)]), side_of([peer_bytes / 1e6])
    what = f"resident memory at its highest until the first moves: {message}"
    yield Row(f"{NAME}.memory_highest", what, PEER, "MB", Better.LOWER, *memory, len(at_once) + len(after_approval))


def _end_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")[-END_CHARACTERS:]
