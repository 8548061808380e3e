"""ACLs of a Steward controller and of a real broker with Kafka's AclAuthorizer: each enforces those that the other writes."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from kafka_node.authorization.acl import Operation, PatternType, Permission, ResourceType
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import Connection
from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as start_kafka_cluster
from lab.peers.steward import StewardController
from lab.peers.zookeeper import ZooKeeperServer
from lab.processes.folder import lab_folder
from tests.integration.conftest import PATIENCE_S

pytestmark = pytest.mark.kafka

CHROOT = "/kafka/acls"
BROKER = {
    "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
    "super.users": "User:ANONYMOUS",
}
"""The broker's own authorization does not matter here: all clients are anonymous, and its super user."""
Address = str


@pytest.fixture(scope="module")
def guarded(zookeeper: ZooKeeperServer) -> Iterator[tuple[KafkaCluster, StewardController]]:
    """A broker with ACLs under a controller with ACLs; resources without an ACL are open."""
    zookeeper.make_chroot(CHROOT)
    with (
        lab_folder() as folder,
        start_kafka_cluster((1,), start=False, zookeeper=zookeeper, chroot=CHROOT, settings=BROKER) as cluster,
    ):
        arguments = ["--authorizer", "--allow-everyone-if-no-acl"]
        controller = StewardController(cluster.zookeeper_connect, folder, arguments=arguments)
        try:
            controller.start()
            cluster.start_brokers()
            yield cluster, controller
        finally:
            controller.close()


@pytest.fixture
async def connect() -> AsyncIterator[Callable[[Address], Awaitable[Connection]]]:
    """Connect to an address; closed after the test."""
    opened: list[Connection] = []

    async def one(address: Address) -> Connection:
        host, _, port = address.rpartition(":")
        opened.append(await Connection.open(host, int(port), client_id="tests"))
        return opened[-1]

    yield one
    for connection in opened:
        await connection.close()


def acl(name: str, pattern_type: PatternType) -> Body:
    """An ACL for alice."""
    return {
        "resource_type": ResourceType.TOPIC,
        "resource_name": name,
        "resource_pattern_type": pattern_type,
        "principal": "User:alice",
        "host": "*",
        "operation": Operation.READ,
        "permission_type": Permission.ALLOW,
    }


def every_acl() -> Body:
    """A filter for all ACLs of topics."""
    return {
        "resource_type_filter": ResourceType.TOPIC,
        "resource_name_filter": None,
        "pattern_type_filter": PatternType.ANY,
        "principal_filter": None,
        "host_filter": None,
        "operation": Operation.ANY,
        "permission_type": Permission.ANY,
    }


async def known(connection: Connection) -> set[tuple[str, int]]:
    """The patterns of the ACLs that a node knows."""
    answer = await connection.call(ApiKey.DESCRIBE_ACLS, every_acl())
    assert answer["error_code"] == 0, answer
    return {(resource["resource_name"], resource["pattern_type"]) for resource in answer["resources"]}


async def until_known(connection: Connection, expected: set[tuple[str, int]]) -> None:
    """Ask until a node knows the pattern; the test's timeout ends a wait without success."""
    while await known(connection) != expected:
        pass


async def create(connection: Connection, *topics: str) -> None:
    """Create topics."""
    new = [{"name": topic, "num_partitions": 1, "replication_factor": 1} for topic in topics]
    answer = await connection.call(ApiKey.CREATE_TOPICS, {"topics": new, "timeout_ms": int(PATIENCE_S * 1000)})
    assert {topic["error_code"] for topic in answer["topics"]} == {0}


async def deleted(connection: Connection, topic: str) -> int:
    """Delete a topic; returns the error code."""
    body = {"topic_names": [topic], "timeout_ms": int(PATIENCE_S * 1000)}
    answer = await connection.call(ApiKey.DELETE_TOPICS, body, version=5)
    return int(answer["responses"][0]["error_code"])


async def shown(connection: Connection) -> set[str]:
    """The topics that the node lists for this test's user, who is not alice."""
    return {topic["name"] for topic in (await connection.call(ApiKey.METADATA, {"topics": None}))["topics"]}


async def test_each_enforces_the_acls_that_the_other_writes(
    guarded: tuple[KafkaCluster, StewardController], connect: Callable[[Address], Awaitable[Connection]]
) -> None:
    """KIP-290: literal and prefixed ACLs, created here, deleted there."""
    cluster, steward = guarded
    controller, broker = await connect(steward.address()), await connect(cluster.broker(1).address())
    both = [acl("secret", PatternType.LITERAL), acl("hidden-", PatternType.PREFIXED)]
    patterns = {("secret", int(PatternType.LITERAL)), ("hidden-", int(PatternType.PREFIXED))}
    guarded_by_them = ("secret", "hidden-orders")
    await create(controller, "open", *guarded_by_them)

    made = await controller.call(ApiKey.CREATE_ACLS, {"creations": both})
    assert [result["error_code"] for result in made["results"]] == [0, 0]
    await until_known(broker, patterns)
    assert await shown(controller) == {"open"}
    for name in guarded_by_them:
        assert await deleted(controller, name) == ErrorCode.TOPIC_AUTHORIZATION_FAILED

    deleted_acls = await broker.call(ApiKey.DELETE_ACLS, {"filters": [every_acl()]})
    assert [len(result["matching_acls"]) for result in deleted_acls["filter_results"]] == [2]
    await until_known(controller, set())
    assert await shown(controller) == {"open", *guarded_by_them}

    again = await broker.call(ApiKey.CREATE_ACLS, {"creations": both})
    assert [result["error_code"] for result in again["results"]] == [0, 0]
    await until_known(controller, patterns)
    assert await shown(controller) == {"open"}
    cleared = await controller.call(ApiKey.DELETE_ACLS, {"filters": [every_acl()]})
    assert [len(result["matching_acls"]) for result in cleared["filter_results"]] == [2]
    await until_known(broker, set())
    assert await deleted(controller, "secret") == ErrorCode.NONE
