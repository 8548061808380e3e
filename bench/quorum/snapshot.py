"""A snapshot of 100 MB fetched by a new voter: a KRaft quorum of three Steward voters, and one of Kafka's TestRaftServers.

Two voters have the snapshot and an empty log. The third starts with an empty directory, again and again. The time is from the moment at
which it follows the leader, in its quorum-state, to that at which the snapshot has its name, and is on disk: the start of the process is left out.
"""

import shutil
import time
from collections.abc import Iterator
from os import urandom
from pathlib import Path

from bench.harness import Effort, Row, duration, promised
from kafka_log.files.snapshots import write_snapshot
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId, snapshot_name
from lab.peers.quorum import Load, Program, Quorum, QuorumNode, quorum
from lab.processes.folder import lab_folder
from lab.processes.waiting import wait_until

NAME = "quorum-snapshot"
ABOUT = "a snapshot of 100 MB fetched by a new voter, compared with Kafka's TestRaftServer (three minutes)"

HOLDERS = (1, 2)
NEW = 3
SNAPSHOT = SnapshotId(1_000_000, 1)
RECORD_BYTES = 1_000
RECORDS = 100_000
QUICK_RECORDS = 2_000
APPENDED_PER_S = 10
"""Records a second that the leader appends: TestRaftServer appends always."""
PEER = "three TestRaftServers of Kafka 4.3 with the same settings"
PEER_HEAP = "1g"
"""More than a test's voter gets: it loads the snapshot."""
PATIENCE_S = 60.0
TICK_S = 0.001


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the row."""
    records, rounds = QUICK_RECORDS if effort.quick else RECORDS, effort.runs()
    with lab_folder(None) as folder:
        payload = urandom(RECORD_BYTES)
        batches = snapshot_batches(
            [payload] * records, epoch=SNAPSHOT.epoch, timestamp_ms=0, last_contained_timestamp_ms=0
        )
        snapshot = write_snapshot(folder, SNAPSHOT, batches)
        ours, peer = (fetches(snapshot, rounds, is_steward=is_steward) for is_steward in (True, False))
        what = (
            f"a snapshot of {snapshot.stat().st_size / 1e6:.0f} MB fetched by a new voter, from following the leader on"
        )
    yield promised(duration(f"{NAME}.fetch", what, PEER, (ours, peer)), "", 1.0)


def fetches(snapshot: Path, rounds: int, *, is_steward: bool) -> list[float]:
    """Start a voter with an empty directory again and again; return the seconds of each fetch."""
    nodes = (*HOLDERS, NEW)
    with quorum(
        () if is_steward else nodes,
        stewards=nodes if is_steward else (),
        program=Program.RAFT_SERVER,
        load=Load(APPENDED_PER_S, RECORD_BYTES).also_of_steward(),
        heap=PEER_HEAP,
        start=False,
    ) as voters:
        for node_id in HOLDERS:
            shutil.copy(snapshot, voters[node_id].log_folder)
            voters[node_id].launch()
        voters.wait_for_leader()
        return [_fetch(voters, voters[NEW]) for _ in range(rounds)]


def _fetch(voters: Quorum, node: QuorumNode) -> float:
    node.launch()
    leader, _ = voters.wait_for_leader()
    fetched = node.log_folder / snapshot_name(SNAPSHOT)
    wait_until(
        lambda: node.leader_and_epoch()[0] == leader,
        timeout_s=PATIENCE_S,
        interval_s=TICK_S,
        what="the new voter follows the leader",
    )
    started_s = time.perf_counter()
    wait_until(fetched.exists, timeout_s=PATIENCE_S, interval_s=TICK_S, what="the snapshot has its name")
    took_s = time.perf_counter() - started_s
    node.kill()
    shutil.rmtree(node.data_folder)
    node.format()
    return took_s
