"""A controller process whose listener asks for SASL and whose requests are authorized by the metadata, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller_core.shell.kraft.state_machine import KRaftStateMachine
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess
from kafka_metadata.records import ResourceType
from kafka_node.authorization.settings import STANDARD_AUTHORIZER
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node, NodeSettings, SaslCredentials
from lab.peers.quorum_security import sasl_plaintext
from lab.processes.ports import free_port
from tests.controller_core.shell.kraft.admin.test_security import acl_filter, creation
from tests.controller_core.shell.quorum.members import Member

TIMEOUT_MS = 20_000
SETTINGS = {
    **sasl_plaintext().settings,
    "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "authorizer.class.name": STANDARD_AUTHORIZER,
    "super.users": "User:member;User:admin",
}


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[int]:
    """Port of a controller whose cluster was formatted with the SCRAM users admin and alice."""
    found = free_port()
    member = Member(tmp_path, 101, {101: found}, SETTINGS)
    users = tuple(f"SCRAM-SHA-256=[name={name},password={name}s]" for name in ("admin", "alice"))
    member.format(scram=users)
    process = QuorumProcess(member.settings, NodeOptions(metrics_port=0), KRaftStateMachine)
    running = asyncio.create_task(process.run())
    yield found
    process.stop()
    await running


async def sent(port: int, user: str, key: ApiKey, body: Body) -> Body:
    """Send a request as a SCRAM user, whose credential is known once the first records are committed."""
    while True:
        node = Node("127.0.0.1", port, NodeSettings(sasl=SaslCredentials("SCRAM-SHA-256", user, f"{user}s")))
        try:
            return await node.call(key, body, timeout_ms=TIMEOUT_MS)
        except ConnectionFailed:
            await asyncio.sleep(0.05)  # The process starts; the test's time limit ends the loop.
        finally:
            await node.close()


@pytest.mark.shows("F69")
async def test_a_scram_user_of_the_format_logs_in_and_has_the_rights_of_the_acls(port: int) -> None:
    """StandardAuthorizer: a super user may do everything, others what ACLs in the metadata allow, from their commit on."""
    denied = await sent(port, "alice", ApiKey.DESCRIBE_ACLS, acl_filter(None))
    allow = creation("kafka-cluster", principal="User:alice") | {"resource_type": 4, "operation": 8}
    created = await sent(port, "admin", ApiKey.CREATE_ACLS, {"creations": [allow]})
    allowed = await sent(port, "alice", ApiKey.DESCRIBE_ACLS, acl_filter(None))
    refused = await sent(port, "alice", ApiKey.CREATE_ACLS, {"creations": [creation("orders")]})

    assert denied["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    assert created["results"][0]["error_code"] == ErrorCode.NONE
    assert [resource["resource_name"] for resource in allowed["resources"]] == ["kafka-cluster"]
    assert refused["results"][0]["error_code"] == ErrorCode.CLUSTER_AUTHORIZATION_FAILED


async def test_a_dynamic_limit_of_connections_takes_effect_without_a_restart(port: int) -> None:
    """Dynamic configs of the controller itself (KIP-226, KIP-919): at most one connection of an address, and that is open."""
    change = {"name": "max.connections.per.ip", "config_operation": 0, "value": "1"}
    resource = {"resource_type": ResourceType.BROKER, "resource_name": "", "configs": [change]}
    body: Body = {"resources": [resource], "validate_only": False}
    await sent(port, "admin", ApiKey.DESCRIBE_ACLS, acl_filter(None))
    _, kept = await asyncio.open_connection("127.0.0.1", port)
    altered = await sent(port, "admin", ApiKey.INCREMENTAL_ALTER_CONFIGS, body)

    assert altered["responses"][0]["error_code"] == ErrorCode.NONE
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            assert await asyncio.wait_for(reader.read(), 0.05) == b""
            break
        except TimeoutError:
            continue  # Not applied yet; the test's time limit ends the loop.
        finally:
            writer.close()
    kept.close()
