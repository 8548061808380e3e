"""A stock Kafka 4.3 broker that logs in to Steward's controller by SCRAM, with Kafka's tools on the controller's listener."""

import asyncio
from pathlib import Path

import pytest

from kafka_node.authorization.settings import STANDARD_AUTHORIZER
from kafka_wire import ApiKey, Body
from kafka_wire.net.client import Node, NodeSettings, SaslCredentials
from lab.peers.java_process import write_properties
from lab.peers.kafka_tools import run_tool_of_kafka_4
from lab.peers.quorum_security import sasl_plaintext
from tests.integration.steward_controllers import steward_cluster

pytestmark = pytest.mark.kafka

TIMEOUT_MS = 20_000
CONTROLLER = {
    **sasl_plaintext().settings,
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:member;User:broker;User:admin",
}
LOGIN = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{0}" password="{0}s";'
BROKER = {
    "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
    "sasl.mechanism.controller.protocol": "SCRAM-SHA-256",
    "listener.name.controller.scram-sha-256.sasl.jaas.config": LOGIN.format("broker"),
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:ANONYMOUS;User:broker",
}


async def add_user(port: int, name: str) -> Body:
    """Add a SCRAM user at the controller; Kafka's tools do so only by a broker."""
    upsertion = {"name": name, "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"salted"}
    node = Node("127.0.0.1", port, NodeSettings(sasl=SaslCredentials("SCRAM-SHA-256", "admin", "admins")))
    try:
        body = {"deletions": [], "upsertions": [upsertion]}
        return await node.call(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, body, timeout_ms=TIMEOUT_MS)
    finally:
        await node.close()


@pytest.mark.shows("F69")
def test_a_broker_and_tools_log_in_by_scram_and_change_acls_users_and_features(tmp_path: Path) -> None:
    """The broker has the ACLs and the users that the tools write at the controller, and a caller without rights is refused."""
    users = tuple(f"SCRAM-SHA-256=[name={name},password={name}s]" for name in ("admin", "broker", "alice"))

    def run(main_class: str, user: str, *arguments: str) -> str:
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
        login["sasl.jaas.config"] = LOGIN.format(user)
        config = write_properties(tmp_path / f"{user}.properties", login)
        controller = ("--bootstrap-controller", cluster.voters.partition("@")[2], "--command-config", str(config))
        done = run_tool_of_kafka_4(main_class, *controller, *arguments)
        return done.stdout + done.stderr

    with steward_cluster(1, 1, settings=CONTROLLER, broker_settings=BROKER, scram=users) as cluster:
        acl = ("--add", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders")
        refused = run("org.apache.kafka.tools.AclCommand", "alice", *acl)
        created = run("org.apache.kafka.tools.AclCommand", "admin", *acl)
        added = asyncio.run(add_user(int(cluster.voters.rpartition(":")[2]), "bob"))
        tried = run("org.apache.kafka.tools.FeatureCommand", "admin", "downgrade", "--metadata", "4.2", "--dry-run")
        downgraded = run("org.apache.kafka.tools.FeatureCommand", "admin", "downgrade", "--feature", "share.version=0")
        server = ("--bootstrap-server", cluster.bootstrap)
        acls = run_tool_of_kafka_4("org.apache.kafka.tools.AclCommand", *server, "--list").stdout
        described = ("--describe", "--entity-type", "users", "--entity-name", "bob")
        known = run_tool_of_kafka_4("kafka.admin.ConfigCommand", *server, *described).stdout

    assert "ClusterAuthorizationException" in refused
    assert "Adding ACLs for resource" in created
    assert [(result["user"], result["error_code"]) for result in added["results"]] == [("bob", 0)]
    assert "it might delete metadata information" in tried
    assert "share.version was downgraded to 0" in downgraded
    assert "principal=User:bob" in acls
    assert "SCRAM-SHA-256=iterations=" in known
