"""A whole process with an authorizer: from ACLs in ZooKeeper to a client's answer, and from a client's ACL to ZooKeeper."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from controller_core.shell.front.front import Front
from controller_core.shell.process import ControllerProcess
from controller_core.shell.settings import AuthorizerSettings
from controller_core.shell.zookeeper.acls import encode_entries
from kafka_node.authorization.acl import ANONYMOUS, CLUSTER_NAME, Entry, Operation, Permission, ResourceType
from kafka_node.security.settings import SecuritySettings, TlsFiles
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Connection
from lab.peers.authority import Authority
from tests.controller_core.shell.running_process import INTERNAL, SETTINGS, RunningProcess
from tests.controller_core.shell.zookeeper.acls.acl_world import AclZooKeeper

CLUSTER = f"/kafka-acl/Cluster/{CLUSTER_NAME}"
ALL_ACLS = {
    "resource_type_filter": ResourceType.ANY,
    "resource_name_filter": None,
    "principal_filter": None,
    "host_filter": None,
    "operation": Operation.ANY,
    "permission_type": Permission.ANY,
}


def allowed(*operations: Operation) -> bytes:
    """ACLs for all unauthenticated clients."""
    return encode_entries(Entry(ANONYMOUS, "127.0.0.1", operation, Permission.ALLOW) for operation in operations)


@pytest.fixture
async def client(running: RunningProcess) -> AsyncIterator[Connection]:
    """A client of a process with an authorizer, and a cluster that allows anonymous clients to describe the cluster's ACLs."""
    running.server = AclZooKeeper()
    running.server.put("/controller_epoch", b"7")
    running.server.put(CLUSTER, allowed(Operation.DESCRIBE))
    running.start(authorizer=AuthorizerSettings(is_enabled=True))
    await running.until_active()
    front: Front = running.process._fronts[INTERNAL]
    client = await Connection.open("127.0.0.1", front.port, client_id="a client")
    yield client
    await client.close()
    await running.end()


def acl(topic: str) -> Body:
    """An ACL to be created."""
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": topic,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }


async def test_acls_in_zookeeper_are_in_force_and_followed(client: Connection, running: RunningProcess) -> None:
    """An ACL that a broker writes takes effect at once, for its principal and host."""
    described = await client.call(ApiKey.DESCRIBE_ACLS, ALL_ACLS)
    assert [resource["resource_name"] for resource in described["resources"]] == [CLUSTER_NAME]
    refused = await client.call(ApiKey.CREATE_ACLS, {"creations": [acl("orders")]})
    assert [result["error_code"] for result in refused["results"]] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    running.server.put(CLUSTER, allowed(Operation.DESCRIBE, Operation.ALTER))
    running.server.put("/kafka-acl-changes/acl_changes_9000000000", f"CLUSTER:{CLUSTER_NAME}".encode())
    known = running.process._authorizer.service.known
    await running.until(lambda: len(next(iter(dict(known.acls.patterns()).values()))) == 2)
    made = await client.call(ApiKey.CREATE_ACLS, {"creations": [acl("orders")]})
    assert [result["error_code"] for result in made["results"]] == [0]
    assert "/kafka-acl/Topic/orders" in running.server.znodes


async def test_a_client_without_an_acl_is_refused_all_guarded_requests(
    client: Connection, running: RunningProcess
) -> None:
    """An open port deletes no topic and takes no leadership."""
    topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
    created = await client.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 1000})
    assert [topic["error_code"] for topic in created["topics"]] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    deleted = await client.call(ApiKey.DELETE_TOPICS, {"topic_names": ["orders"], "timeout_ms": 1000}, version=5)
    assert [response["error_code"] for response in deleted["responses"]] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    shut_down = await client.call(ApiKey.CONTROLLED_SHUTDOWN, {"broker_id": 1, "broker_epoch": 1})
    assert shut_down["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert (await client.call(ApiKey.METADATA, {"topics": None}))["topics"] == []
    assert "/brokers/topics/orders" not in running.server.znodes


async def test_after_a_lost_session_the_acls_are_read_again(client: Connection, running: RunningProcess) -> None:
    """Including changes made in between."""
    running.lose_session()
    running.server.put("/kafka-acl/Topic/orders", allowed(Operation.READ))
    await running.until(lambda: len(running.sessions) == 2)
    known = running.process._authorizer.service.known
    await running.until(lambda: len(dict(known.acls.patterns())) == 2)
    described = await client.call(ApiKey.DESCRIBE_ACLS, ALL_ACLS)
    assert sorted(resource["resource_name"] for resource in described["resources"]) == [CLUSTER_NAME, "orders"]


async def test_a_login_at_brokers_without_an_authorizer_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A certificate is a login as much as a password: brokers take relayed requests for those of the controller."""
    certificate, key = Authority(tmp_path).sign("us", "/CN=controller")
    by_certificate = SecuritySettings(broker_tls=TlsFiles(certificate=certificate, key=key))
    password = tmp_path / "password"
    password.write_text("secret\n")
    password.chmod(0o600)
    by_password = SecuritySettings(
        broker_sasl_mechanism="PLAIN", broker_sasl_username="us", broker_sasl_password_file=password
    )

    for security, is_enabled, warnings in (
        (by_certificate, False, 1),
        (by_password, False, 1),
        (by_certificate, True, 0),
        (SecuritySettings(), False, 0),
    ):
        caplog.clear()
        ControllerProcess(replace(SETTINGS, security=security, authorizer=AuthorizerSettings(is_enabled=is_enabled)))
        assert warnings == sum("No authorizer" in record.message for record in caplog.records)
