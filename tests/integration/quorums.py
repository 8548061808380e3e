"""Quorums for tests: their timeouts, waits, and Kafka's own tools on them."""

from collections.abc import Iterable

from kafka_log.format.names import BOOTSTRAP_SNAPSHOT, LOG_SUFFIX, snapshot_name
from lab.quorum import Quorum, QuorumNode
from lab.tools import kafka_4_features, kafka_dump_log, kafka_metadata_quorum
from lab.waiting import wait_until

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


def dumped_metadata(node: QuorumNode) -> str:
    """Return what kafka-dump-log prints of the log of a node that has stopped."""
    segments = ",".join(str(path) for path in sorted(node.log_folder.glob(f"*{LOG_SUFFIX}")))
    done = kafka_dump_log("--cluster-metadata-decoder", "--files", segments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def snapshots(node: QuorumNode) -> set[str]:
    """Return the names of the snapshots in a node's folder, without the one that formatting writes."""
    return {path.name for path in node.log_folder.glob("*.checkpoint")} - {snapshot_name(BOOTSTRAP_SNAPSHOT)}
