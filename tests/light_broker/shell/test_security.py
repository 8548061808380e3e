"""TLS, SASL and the authorizer of a broker, from Kafka's settings."""

import ssl
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kafka_node.authorization.acl import Operation, PatternType, Permission, ResourceType
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import AuthenticationFailed, ConnectionFailed, Node, NodeSettings, SaslCredentials
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256
from lab.peers.authority import Authority
from light_broker.shell.process import BrokerProcess
from tests.light_broker.serving import HOST, TIMEOUT_MS, client_of, create_topic, standalone, topics_of

PLAIN_USERS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_admin="secret" user_alice="hers";'
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SASL = {
    "listeners": f"SASL_PLAINTEXT://{HOST}:0",
    "security.inter.broker.protocol": "SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": PLAIN_USERS,
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin",
}
ADMIN = NodeSettings(client_id="test", sasl=SaslCredentials("PLAIN", "admin", "secret"))
ALICE = NodeSettings(client_id="test", sasl=SaslCredentials("PLAIN", "alice", "hers"))


def tls_settings(authority: Authority, folder: Path) -> Mapping[str, str]:
    """Return the settings of a listener that asks for certificates."""
    certificate, key = authority.sign("broker", "/CN=broker")
    store = folder / "broker-store.pem"
    store.write_text(key.read_text() + certificate.read_text())
    return {
        "listeners": f"SSL://{HOST}:0",
        "security.inter.broker.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        "ssl.client.auth": "required",
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:CN=root",
    }


def acl(principal: str, operation: Operation, name: str) -> dict[str, Any]:
    """Return an ACL of a CreateAcls request."""
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": PatternType.LITERAL,
        "principal": principal,
        "host": "*",
        "operation": operation,
        "permission_type": Permission.ALLOW,
    }


async def topics_seen_by(process: BrokerProcess, settings: NodeSettings) -> list[str]:
    """Return the topics that a client sees."""
    async with client_of(process, "SASL_PLAINTEXT", settings) as client:
        return sorted(await topics_of(client))


@pytest.mark.shows("F64")
async def test_a_client_shows_its_certificate_and_is_its_subject(authority: Authority, tmp_path: Path) -> None:
    """SSL with ssl.client.auth=required; the subject is a super user here."""
    settings = tls_settings(authority, tmp_path)
    context = authority.client_context("root", "/CN=root")
    context.check_hostname = False
    async with standalone(tmp_path / "data", settings) as process:
        async with client_of(process, "SSL", NodeSettings(client_id="test", ssl=context)) as client:
            await create_topic(client, "orders")
        stranger = ssl.create_default_context(cafile=str(authority.certificate))
        node = Node(HOST, process.ports["SSL"], NodeSettings(client_id="test", ssl=stranger))
        with pytest.raises(ConnectionFailed):
            await node.call(ApiKey.METADATA, {"topics": []}, timeout_ms=TIMEOUT_MS)
        await node.close()


@pytest.mark.shows("F64")
async def test_a_user_does_what_the_acls_allow(tmp_path: Path) -> None:
    """StandardAuthorizer's rules: a super user everything, others what an ACL allows; the ACLs survive a restart."""
    async with standalone(tmp_path, SASL) as process, client_of(process, "SASL_PLAINTEXT", ADMIN) as admin:
        for name in ("mine", "yours"):
            await create_topic(admin, name)
        assert await topics_seen_by(process, ALICE) == []
        answer = await admin.call(
            ApiKey.CREATE_ACLS, {"creations": [acl("User:alice", Operation.READ, "mine")]}, timeout_ms=TIMEOUT_MS
        )
        assert [result["error_code"] for result in answer["results"]] == [ErrorCode.NONE]
        assert await topics_seen_by(process, ALICE) == ["mine"]
    async with standalone(tmp_path, SASL) as process:
        assert await topics_seen_by(process, ALICE) == ["mine"]


async def test_a_user_without_the_right_changes_nothing(tmp_path: Path) -> None:
    """A topic that it may not create, a config that it may not change, an ACL."""
    async with standalone(tmp_path, SASL) as process, client_of(process, "SASL_PLAINTEXT", ALICE) as client:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": []}
        created = await client.call(ApiKey.CREATE_TOPICS, {"topics": [topic], "timeout_ms": 1}, timeout_ms=TIMEOUT_MS)
        config = {"name": "log.retention.ms", "config_operation": 0, "value": "1"}
        resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
        altered = await client.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, {"resources": [resource], "validate_only": False}, timeout_ms=TIMEOUT_MS
        )
        acls = await client.call(
            ApiKey.CREATE_ACLS, {"creations": [acl("User:alice", Operation.ALL, "t")]}, timeout_ms=TIMEOUT_MS
        )

    assert [topic["error_code"] for topic in created["topics"]] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert [response["error_code"] for response in altered["responses"]] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert [result["error_code"] for result in acls["results"]] == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]


async def test_a_scram_user_that_was_created_logs_in_also_after_a_restart(tmp_path: Path) -> None:
    """AlterUserScramCredentials (KIP-554)."""
    salt = b"some-salt-of-this-user"
    upsertion = {
        "name": "bob",
        "mechanism": SCRAM_SHA_256.type_id,
        "iterations": 4096,
        "salt": salt,
        "salted_password": SCRAM_SHA_256.salted_password("bobs", salt, 4096),
    }
    bob = replace(ADMIN, sasl=SaslCredentials("SCRAM-SHA-256", "bob", "bobs"))
    async with standalone(tmp_path, SASL) as process:
        with pytest.raises(AuthenticationFailed):
            await topics_seen_by(process, bob)
        async with client_of(process, "SASL_PLAINTEXT", ADMIN) as admin:
            answer = await admin.call(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
                {"deletions": [], "upsertions": [upsertion]},
                timeout_ms=TIMEOUT_MS,
            )
            assert [result["error_code"] for result in answer["results"]] == [ErrorCode.NONE]
        assert await topics_seen_by(process, bob) == []
    async with standalone(tmp_path, SASL) as process:
        assert await topics_seen_by(process, bob) == []


async def test_acls_are_refused_without_an_authorizer(tmp_path: Path) -> None:
    """SECURITY_DISABLED, as a broker of Kafka."""
    async with standalone(tmp_path) as process, client_of(process) as client:
        answer = await client.call(
            ApiKey.CREATE_ACLS, {"creations": [acl("User:alice", Operation.READ, "t")]}, timeout_ms=TIMEOUT_MS
        )

    assert [result["error_code"] for result in answer["results"]] == [ErrorCode.SECURITY_DISABLED]
