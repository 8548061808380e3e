"""Reads of a light broker from a real ZooKeeper, and its registration there."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from kafka_node.authorization import acl
from kafka_node.authorization.acls import Acls
from kafka_node.authorization.guard import EVERYTHING
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.context import RequestContext
from kafka_node.security.settings import SecurityProtocol
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.sasl.scram_keys import SCRAM_SHA_256, ScramCredential, encode_credential, make_credential
from kafka_zookeeper import formats, paths
from kafka_zookeeper.session import ZooKeeperSession
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.writes import Committed, Create, Operation
from lab.peers.zookeeper import ZooKeeperServer
from light_broker.control.port import ControlPlaneError
from light_broker.control.zookeeper.control import Parts, ZooKeeperControl
from light_broker.control.zookeeper.options import read_options
from light_broker.core.metadata_view import (
    CLUSTER_DEFAULT,
    BrokerView,
    ConfigResource,
    Endpoint,
    MetadataView,
)
from tests.light_broker.control.zookeeper.test_controller_requests import Recording

pytestmark = pytest.mark.zookeeper

BROKER_ID = 7
CREDENTIAL = make_credential(SCRAM_SHA_256, b"salted", b"salt", 4096)


class Side(Recording):
    """Records metadata, ACLs and credentials. Implements BrokerSide."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()
        self.acls = Acls()
        self.credentials: Mapping[str, Mapping[str, ScramCredential]] = {}

    def set_view(self, view: MetadataView) -> None:
        self.view = view
        self.changed.set()

    def set_acls(self, acls: Acls) -> None:
        self.acls = acls
        self.changed.set()

    def set_credentials(self, credentials: Mapping[str, Mapping[str, ScramCredential]]) -> None:
        self.credentials = credentials
        self.changed.set()


@pytest.fixture(autouse=True)
def no_wait_for_a_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here has a controller, for whose metadata a start waits."""
    monkeypatch.setattr("light_broker.control.zookeeper.control.METADATA_WAIT_S", 0)


@asynccontextmanager
async def started(connect: str, side: Side, broker_id: int = BROKER_ID) -> AsyncIterator[ZooKeeperControl]:
    """Yield a control plane whose broker is registered."""
    options = read_options({"zookeeper.connect": connect, "zookeeper.session.timeout.ms": "2000"})
    assert options is not None
    control = await ZooKeeperControl.open(options, broker_id)
    try:
        control.connect(
            Parts(
                broker=lambda: BrokerView(broker_id, endpoints={"PLAINTEXT": Endpoint("b.example", 9092)}),
                settings=lambda: Settings(broker_id),
                judge=lambda _: EVERYTHING,
                listener="PLAINTEXT",
                protocols={"PLAINTEXT": SecurityProtocol.PLAINTEXT},
                node_settings=NodeSettings(client_id="me"),
            )
        )
        await control.start(side)
        yield control
    finally:
        await control.close()


@asynccontextmanager
async def writing(connect: str) -> AsyncIterator[ZooKeeperSession]:
    """Yield another session, for the changes of other processes."""
    session = await ZooKeeperSession.connect(ZooKeeperSettings(connect))
    try:
        yield session
    finally:
        await session.close()


async def write(session: ZooKeeperSession, *operations: Operation) -> None:
    """Make changes in one transaction."""
    assert isinstance(await session.multi(operations), Committed)


def changed(entity: str) -> Create:
    """Return the notification of changed configs."""
    return Create(paths.CONFIG_CHANGE_PREFIX, formats.encode_config_change(entity), sequential=True)


async def test_configs_are_read_at_the_start_and_after_a_notification(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """ZkConfigManager: of topics, of all brokers and of this broker; those of other brokers are not read."""
    side, connect = Side(), zookeeper.connect(chroot)
    topic, own = ConfigResource(ConfigResourceType.TOPIC, "orders"), ConfigResource(ConfigResourceType.BROKER, "7")
    async with writing(connect) as session:
        for path in ("/config/topics", "/config/brokers", "/config/changes"):
            await session.ensure_path(path)
        await write(session, Create("/config/topics/orders", formats.encode_config({"retention.ms": "5"})))
        async with started(connect, side) as control:
            assert control.view.configs == {topic: {"retention.ms": "5"}}

            for name, value in (("<default>", "1"), ("7", "2"), ("8", "3")):
                config = Create(f"/config/brokers/{name}", formats.encode_config({"log.cleaner.threads": value}))
                await write(session, config, changed(f"brokers/{name}"))
            while len(side.view.configs) < 3:
                side.changed.clear()
                await side.changed.wait()

    assert side.view.configs == {
        topic: {"retention.ms": "5"},
        CLUSTER_DEFAULT: {"log.cleaner.threads": "1"},
        own: {"log.cleaner.threads": "2"},
    }


async def test_an_invalid_dynamic_config_is_left_out(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """Another tool may have written anything; a name that only Kafka 3.9 has stays, without effect."""
    side, connect = Side(), zookeeper.connect(chroot)
    async with writing(connect) as session:
        await session.ensure_path("/config/topics")
        given = {"retention.ms": "soon", "message.format.version": "3.0", "max.message.bytes": "2048"}
        await write(session, Create("/config/topics/orders", formats.encode_config(given)))
        async with started(connect, side):
            pass

    topic = ConfigResource(ConfigResourceType.TOPIC, "orders")
    assert side.view.configs == {topic: {"message.format.version": "3.0", "max.message.bytes": "2048"}}


async def test_acls_and_users_are_read_at_the_start_and_after_a_notification(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """`/kafka-acl` and `/config/users`; ACLs that cannot be decoded deny the resource to all (LOCKED)."""
    side, connect = Side(), zookeeper.connect(chroot)
    entry = formats.AclEntry("User:alice", "Allow", "Read", "*")
    async with writing(connect) as session:
        for path in ("/kafka-acl/Topic", "/config/users"):
            await session.ensure_path(path)
        await write(session, Create("/kafka-acl/Topic/orders", formats.encode_acls([entry])))
        async with started(connect, side):
            orders = acl.Pattern(acl.ResourceType.TOPIC, "orders")
            read = side.acls.of(orders)

            broken = formats.AclResource("Topic", "broken")
            notification = formats.encode_acl_change(broken)
            users = {"SCRAM-SHA-256": encode_credential(CREDENTIAL)}
            await write(
                session,
                Create("/kafka-acl/Topic/broken", b"{"),
                Create("/kafka-acl-changes/acl_changes_", notification, sequential=True),
                Create("/config/users/al%20ice", formats.encode_config(users)),
                changed("users/al%20ice"),
            )
            while not side.credentials["SCRAM-SHA-256"]:
                side.changed.clear()
                await side.changed.wait()
            denied = side.acls.of(acl.Pattern(acl.ResourceType.TOPIC, "broken"))

    assert read == {acl.Entry("User:alice", "*", acl.Operation.READ, acl.Permission.ALLOW)}
    assert [binding.permission for binding in denied] == [acl.Permission.DENY]
    assert {user: encode_credential(credential) for user, credential in side.credentials["SCRAM-SHA-256"].items()} == {
        "al ice": encode_credential(CREDENTIAL)
    }


async def test_the_broker_epoch_is_the_czxid_and_the_id_of_the_cluster_is_drawn_once(
    zookeeper: ZooKeeperServer, chroot: str
) -> None:
    """KafkaZkClient.registerBroker and createOrGetClusterId; the chroot is created."""
    connect = zookeeper.connect(f"{chroot}/new")
    async with started(connect, Side()) as first, started(connect, Side(), 8) as second, writing(connect) as session:
        node = await session.get("/brokers/ids/7")
        assert node is not None
        assert (first.broker_epoch, first.cluster_id) == (node.czxid, second.cluster_id)
        assert len(first.cluster_id) == 22


async def test_an_id_that_a_live_session_has_is_an_error(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """It names the znode and what to do."""
    connect = zookeeper.connect(chroot)
    async with started(connect, Side()):
        with pytest.raises(
            ControlPlaneError, match=r"Another process is registered with the broker id 7 at .*/brokers/ids/7"
        ):
            async with started(connect, Side()):
                pass


async def test_requests_of_the_controller_only_are_refused(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """NOT_CONTROLLER, with which clients look for the controller; also for a relayed request that comes back."""
    context = RequestContext("PLAINTEXT", "a client", "127.0.0.1", 1, 3)
    own = RequestContext("PLAINTEXT", "me", "127.0.0.1", 1, 3)
    async with started(zookeeper.connect(chroot), Side()) as control:
        refused = []
        for key, by in ((ApiKey.CREATE_TOPICS, context), (ApiKey.DESCRIBE_ACLS, own), (ApiKey.DESCRIBE_ACLS, context)):
            with pytest.raises(ControlPlaneError) as raised:
                await control.forward(key, by, {})
            refused.append(raised.value.code)

    assert refused == [ErrorCode.NOT_CONTROLLER] * 3


@pytest.mark.parametrize(
    ("kind", "name", "config", "error"),
    [
        (ConfigResourceType.TOPIC, "none", ("retention.ms", "1"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResourceType.BROKER, "8", ("log.cleaner.threads", "1"), ErrorCode.INVALID_REQUEST),
        (ConfigResourceType.BROKER, "7", ("log.dirs", "/tmp"), ErrorCode.INVALID_REQUEST),
        (ConfigResourceType.BROKER, "7", ("log.cleaner.threads", "many"), ErrorCode.INVALID_CONFIG),
        (ConfigResourceType.BROKER, "7", ("log.cleaner.threads", "2"), ErrorCode.NONE),
        (ConfigResourceType.GROUP, "g", ("a", "b"), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_change_of_configs_is_written_or_has_its_error(
    zookeeper: ZooKeeperServer, chroot: str, kind: int, name: str, config: tuple[str, str], error: ErrorCode
) -> None:
    """ZkAdminManager.incrementalAlterConfigs: a broker changes its own configs and those of topics."""
    resource: Body = {
        "resource_type": kind,
        "resource_name": name,
        "configs": [{"name": config[0], "config_operation": 0, "value": config[1]}],
    }
    context = RequestContext("PLAINTEXT", "a client", "127.0.0.1", 1, 1)
    connect = zookeeper.connect(chroot)
    async with started(connect, Side()) as control, writing(connect) as session:
        body = {"resources": [resource], "validate_only": False}
        answer = await control.forward(ApiKey.INCREMENTAL_ALTER_CONFIGS, context, body)
        node = await session.get("/config/brokers/7")

    assert [response["error_code"] for response in answer["responses"]] == [error]
    assert (node is None) == (error is not ErrorCode.NONE)


async def test_a_failed_log_directory_is_notified(zookeeper: ZooKeeperServer, chroot: str) -> None:
    """`/log_dir_event_notification` (KIP-112)."""
    connect = zookeeper.connect(chroot)
    async with started(connect, Side()) as control, writing(connect) as session:
        await control.log_directory_failed(None, [])
        names = await session.children(paths.LOG_DIR_EVENT_NOTIFICATION)
        node = await session.get(f"{paths.LOG_DIR_EVENT_NOTIFICATION}/{(names or [''])[0]}")

    assert node is not None
    assert formats.decode_log_dir_event("log_dir_event_0", node.data) == BROKER_ID
