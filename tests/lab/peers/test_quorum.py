"""Quorums of several Java voters: each kind elects a leader."""

import asyncio
from pathlib import Path

import pytest

from controller_core.shell.quorum.process import member_settings
from controller_core.shell.quorum.settings_file import read_settings_file
from kafka_wire import ApiKey
from kafka_wire.net.node import Node, NodeSettings
from kafka_wire.uuids import encode_uuid
from lab.peers.authority import Authority
from lab.peers.kafka_tools import kafka_metadata_quorum
from lab.peers.quorum import Formatter, Program, Quorum, QuorumNode, Voters, quorum
from lab.peers.quorum_security import mutual_tls, sasl_plaintext
from lab.processes.waiting import wait_until

pytestmark = pytest.mark.kafka

PATIENCE_S = 60.0

CONTROLLERS = 2
"""DescribeCluster's endpoint type of controllers."""

STEADY = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "30000",
}
"""A first leader within seconds, who stays the leader while a busy machine delays the followers."""

SHORT = {
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "1500",
}


@pytest.mark.soak("integration/test_quorum.py::test_a_voter_of_steward_replicates_the_load_of_a_raft_server")
def test_raft_servers_replicate_their_load_and_survive_their_leader() -> None:
    """Static voters; the log of TestRaftServer's topic grows on the followers."""
    with quorum(program=Program.RAFT_SERVER, settings=SHORT) as voters:
        leader, epoch = voters.wait_for_leader()
        wait_until(
            lambda: all(node.log_bytes() > 10_000 for node in voters.values()),
            timeout_s=PATIENCE_S,
            what="all logs have grown",
        )
        voters[leader].kill()

        assert voters.wait_for_leader(after_epoch=epoch)[0] in {1, 2, 3} - {leader}


def cluster_id_from(node: QuorumNode) -> str:
    """Ask a Java controller as another controller would, with the settings in its properties file."""

    async def ask() -> str:
        settings = read_settings_file(node.properties).settings
        client = Node("127.0.0.1", node.member.port, member_settings(settings, NodeSettings(client_id="tests")))
        try:
            body = {"endpoint_type": CONTROLLERS}
            answer = await client.call(ApiKey.DESCRIBE_CLUSTER, body, timeout_ms=int(PATIENCE_S * 1000))
        finally:
            await client.close()
        return str(answer["cluster_id"])

    return asyncio.run(ask())


def wait_until_answered(voters: Quorum, node_id: int) -> None:
    """Wait until the leader answers with the quorum's cluster id; it is empty while it loads its log."""
    wait_until(
        lambda: cluster_id_from(voters[node_id]) == voters.plan.cluster_id,
        timeout_s=PATIENCE_S,
        what=f"controller {node_id} answers",
    )


def test_controllers_that_steward_formatted_elect_a_leader_with_dynamic_voters_and_sasl() -> None:
    """kraft.version 1 with --initial-controllers; Kafka's own tool lists the voters with their directory ids."""
    with quorum(
        voters=Voters.INITIAL, formatter=Formatter.STEWARD, security=sasl_plaintext(), settings=STEADY
    ) as voters:
        leader, _ = voters.wait_for_leader()
        client = ("--command-config", str(voters.client_properties()))
        bootstrap = ("--bootstrap-controller", voters.plan.bootstrap())
        described = kafka_metadata_quorum(*bootstrap, *client, "describe", "--status")

        wait_until_answered(voters, leader)
        assert described.returncode == 0, described.stderr
        assert f"LeaderId:               {leader}" in described.stdout
        assert all(encode_uuid(member.directory_id) in described.stdout for member in voters.plan.members)


def test_a_standalone_controller_with_tls_is_joined_by_an_observer(authority: Authority) -> None:
    """Formatted by Kafka's own tool, and the observer by Steward."""
    security = mutual_tls(authority.store("controller", "/CN=controller"), Path(authority.certificate))
    with quorum((1, 2), voters=Voters.STANDALONE, security=security, formatter=None, start=False) as nodes:
        nodes[1].format(Formatter.KAFKA)
        nodes[2].format(Formatter.STEWARD)
        for node in nodes.values():
            node.launch()
        wait_until(
            lambda: [node.leader_and_epoch()[0] for node in nodes.values()] == [1, 1],
            timeout_s=PATIENCE_S,
            what="both know the leader",
        )

        wait_until_answered(nodes, 1)
