"""Quorums for tests: their timeouts, waits, and Kafka's own tools on them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from controller_core.shell.quorum.apis import SERVED
from controller_core.shell.quorum.process import METADATA_TOPIC
from kafka_log.format.names import BOOTSTRAP_SNAPSHOT, LOG_SUFFIX, snapshot_name
from kafka_wire import ApiKey, codec
from kafka_wire.net.connection import Connection
from kafka_wire.net.negotiation import VersionRange
from lab.peers.kafka_tools import kafka_4_features, kafka_dump_log, kafka_metadata_quorum
from lab.peers.quorum import HOST, Quorum, QuorumNode
from lab.processes.waiting import wait_until

Answer = TypeVar("Answer")

PATIENCE_S = 60.0

SHORT = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
}
"""Elections within seconds of the end of a leader."""

STEADY = {**SHORT, "controller.quorum.fetch.timeout.ms": "5000"}
"""A leader that keeps its place while a busy machine delays the others. An observer asks to join after the fetch timeout."""


def start(nodes: Iterable[QuorumNode]) -> None:
    """Start nodes together, and wait until they accept connections."""
    started = list(nodes)
    for node in started:
        node.launch()
    for node in started:
        node.wait_until_ready()


def wait_for_commits(node: QuorumNode, *, beyond: int) -> int:
    """Wait until a Steward voter knows a higher high watermark, and return it."""
    wait_until(
        lambda: node.high_watermark() > beyond,
        timeout_s=PATIENCE_S,
        what=f"node {node.node_id} commits beyond {beyond}",
    )
    return node.high_watermark()


def stop_all(voters: Quorum) -> None:
    """Stop all nodes."""
    for node in voters.values():
        node.process.kill()


def administer(voters: Quorum, node_id: int, *arguments: str, config: str | None = None) -> str:
    """Run kafka-metadata-quorum against one node, and return its output; `config` is another properties file than a client's."""
    server = f"127.0.0.1:{voters[node_id].member.port}"
    client = ("--command-config", config or str(voters.client_properties()))
    done = kafka_metadata_quorum("--bootstrap-controller", server, *client, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def features(voters: Quorum, *arguments: str) -> tuple[int, str]:
    """Run kafka-features against the leader; return its exit code and output."""
    leader, _ = voters.wait_for_leader()
    server = f"127.0.0.1:{voters[leader].member.port}"
    done = kafka_4_features("--bootstrap-controller", server, *arguments)
    return done.returncode, done.stdout + done.stderr


def served_versions(node: QuorumNode) -> dict[int, VersionRange]:
    """Return the versions that a node lists for the APIs of a quorum's node."""

    async def ask(connection: Connection) -> dict[int, VersionRange]:
        return await connection.api_versions()

    listed = asyncio.run(_connected(node, ask))
    return {key: listed[key] for key in SERVED}


def answers_to_old_fetches(node: QuorumNode) -> list[bytes]:
    """Return the response frames to a Fetch of each version in which topics have names, 4 to 12."""

    async def ask(connection: Connection) -> list[bytes]:
        topics = [{"topic": METADATA_TOPIC.name, "partitions": [{"partition": 0}]}]
        body = {"replica_id": 1, "topics": topics}
        frames = [codec.encode_request(ApiKey.FETCH, version, version, None, body) for version in range(4, 13)]
        return [await connection.call_raw(frame) for frame in frames]

    return asyncio.run(_connected(node, ask))


async def _connected(node: QuorumNode, ask: Callable[[Connection], Awaitable[Answer]]) -> Answer:
    connection = await Connection.open(HOST, node.member.port, client_id=None)
    try:
        return await ask(connection)
    finally:
        await connection.close()


def dumped_metadata(node: QuorumNode) -> str:
    """Return what kafka-dump-log prints of the log of a node that has stopped."""
    segments = ",".join(str(path) for path in sorted(node.log_folder.glob(f"*{LOG_SUFFIX}")))
    done = kafka_dump_log("--cluster-metadata-decoder", "--files", segments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snapshots(node: QuorumNode) -> set[str]:
    """Return the names of the snapshots in a node's folder, without the one that formatting writes."""
    return {path.name for path in node.log_folder.glob("*.checkpoint")} - {snapshot_name(BOOTSTRAP_SNAPSHOT)}
