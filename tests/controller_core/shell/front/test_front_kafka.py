"""The front with real brokers: it is listed as a broker and as the controller, and clients work through it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic

from controller_core.shell.front.front import Front, open_front
from controller_core.shell.front.route import BrokerEndpoint
from controller_core.zookeeper_mode.apis import NOT_ADVERTISED, SERVED
from kafka_node.context import RequestContext
from kafka_node.versions import BETWEEN_SERVERS
from kafka_wire import ApiKey, Body, codec
from kafka_wire.net.client import Connection, Node
from lab.peers.cluster import KafkaCluster
from lab.peers.cluster import kafka_cluster as new_kafka_cluster
from lab.peers.kafka import CLIENT, KafkaBroker
from lab.peers.kafka_tools import kafka_topics

pytestmark = pytest.mark.kafka

CONTROLLER_ID = 1000


def _endpoint(broker: KafkaBroker) -> BrokerEndpoint:
    return BrokerEndpoint(broker.broker_id, "127.0.0.1", broker.ports[CLIENT])


class Advertised:
    """A front that every Metadata response lists as broker 1000 and as the controller."""

    def __init__(self, live: list[BrokerEndpoint]) -> None:
        self.live = live
        self._node = Node(live[0].host, live[0].port)
        self.front: Front

    async def start(self) -> "Advertised":
        """Listen on loopback."""
        handlers = {ApiKey.METADATA: self._metadata}
        self.front = await open_front(
            CLIENT, "127.0.0.1", 0, handlers, lambda: self.live, served=SERVED, not_advertised=NOT_ADVERTISED
        )
        return self

    async def close(self) -> None:
        """Close the front and the broker connection."""
        await self.front.close()
        await self._node.close()

    @property
    def bootstrap(self) -> str:
        """Address of the front."""
        return f"127.0.0.1:{self.front.port}"

    async def connect(self) -> Connection:
        """Open a connection to the front."""
        return await Connection.open("127.0.0.1", self.front.port, client_id="tests")

    async def _metadata(self, context: RequestContext, body: Body) -> Body:
        answer = await self._node.call(ApiKey.METADATA, body, version=context.api_version)
        node = {"node_id": CONTROLLER_ID, "host": "127.0.0.1", "port": self.front.port, "rack": None}
        return {**answer, "brokers": [*answer["brokers"], node], "controller_id": CONTROLLER_ID}


@pytest.fixture
async def advertise() -> AsyncIterator[Callable[[list[KafkaBroker]], Awaitable[Advertised]]]:
    """Start fronts with these brokers as the live ones; closed after the test."""
    started: list[Advertised] = []

    async def start(brokers: list[KafkaBroker]) -> Advertised:
        started.append(await Advertised([_endpoint(broker) for broker in brokers]).start())
        return started[-1]

    yield start
    for process in started:
        await process.close()


async def test_offered_versions_are_those_of_the_brokers(kafka_cluster: KafkaCluster, advertise) -> None:
    """Without requests between servers; the front answers Metadata in the versions of the same Kafka."""
    broker = kafka_cluster.broker(1)
    direct = await Connection.open("127.0.0.1", broker.ports[CLIENT], client_id="tests")
    relayed = await (await advertise(list(kafka_cluster.brokers.values()))).connect()
    offered_by_broker, offered_by_front = await direct.api_versions(), await relayed.api_versions()
    await direct.close()
    await relayed.close()

    assert {key: at for key, at in offered_by_broker.items() if key not in BETWEEN_SERVERS} == offered_by_front


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (ApiKey.LIST_GROUPS, {}),
        (ApiKey.DESCRIBE_CLUSTER, {}),
        (ApiKey.DESCRIBE_CONFIGS, {"resources": [{"resource_type": 4, "resource_name": "1"}]}),
        (ApiKey.DESCRIBE_LOG_DIRS, {"topics": []}),
        (ApiKey.LIST_TRANSACTIONS, {}),
        (ApiKey.DESCRIBE_CLIENT_QUOTAS, {"components": []}),
    ],
    ids=lambda value: value.name if isinstance(value, ApiKey) else "",
)
async def test_relayed_answer_equals_the_direct_answer(kafka_cluster: KafkaCluster, advertise, key, body) -> None:
    """The same call to the broker and through the front."""
    broker = kafka_cluster.broker(1)
    direct = await Connection.open("127.0.0.1", broker.ports[CLIENT], client_id="tests")
    relayed = await (await advertise([broker])).connect()
    answers = [await connection.call(key, body) for connection in (direct, relayed)]
    await direct.close()
    await relayed.close()

    assert _steady(answers[0]) == _steady(answers[1])


def _steady(answer: Body) -> Body:
    """Remove the disk usage, which changes between calls."""
    folders = [
        {**result, "total_bytes": 0, "usable_bytes": 0} if "usable_bytes" in result else result
        for result in answer.get("results", [])
    ]
    return {**answer, "results": folders}


async def test_produce_with_acks_0_does_not_delay_later_requests(kafka_cluster: KafkaCluster, advertise) -> None:
    """A real broker does not answer Produce with acks=0, but it answers the next request."""
    connection = await (await advertise([kafka_cluster.broker(1)])).connect()
    produce = {"acks": 0, "timeout_ms": 1_000, "topic_data": []}
    await connection.send_raw(codec.encode_request(ApiKey.PRODUCE, 9, 0, "tests", produce))
    answer = await connection.call(ApiKey.LIST_GROUPS, {})
    await connection.close()

    assert answer["error_code"] == 0


async def test_an_admin_client_manages_topics_through_the_front(kafka_cluster: KafkaCluster, advertise) -> None:
    """The client uses the controller, which is the front; the live broker behind it is Kafka's active controller."""
    controller_id = kafka_cluster.controller_id()
    assert controller_id is not None
    over = await advertise([kafka_cluster.broker(controller_id)])
    admin = AdminClient({"bootstrap.servers": over.bootstrap})
    created = admin.create_topics([NewTopic("through-the-front", 2, 2, config={"retention.ms": "1234567"})])
    await asyncio.to_thread(created["through-the-front"].result, 30)
    resource = ConfigResource(ConfigResource.Type.TOPIC, "through-the-front")
    configs = await asyncio.to_thread(admin.describe_configs([resource])[resource].result, 30)
    shown = await asyncio.to_thread(
        kafka_topics, "--bootstrap-server", over.bootstrap, "--describe", "--topic", "through-the-front"
    )

    assert configs["retention.ms"].value == "1234567"
    assert "PartitionCount: 2" in shown.stdout, shown.stderr


async def test_idempotent_producers_and_groups_work_through_the_front(kafka_cluster: KafkaCluster, advertise) -> None:
    """Clients such as aiokafka send requests for producer ids and coordinators to any listed node."""
    over = await advertise(list(kafka_cluster.brokers.values()))
    topic, sent = "seen-by-all", [b"%d" % number for number in range(200)]
    async with AIOKafkaProducer(bootstrap_servers=over.bootstrap, enable_idempotence=True, acks="all") as producer:
        for value in sent:
            await producer.send(topic, value)
        await producer.flush()
    received: list[bytes] = []
    async with AIOKafkaConsumer(
        topic, bootstrap_servers=over.bootstrap, group_id="seen-by-all", auto_offset_reset="earliest"
    ) as consumer:
        while len(received) < len(sent):
            received.append((await consumer.getone()).value)
        await consumer.commit()

    assert sent == sorted(received, key=int)


async def test_read_requests_succeed_while_their_broker_is_killed(advertise) -> None:
    """SIGKILL of the client's broker during a stream of read requests: none fails."""
    with new_kafka_cluster((1, 2)) as cluster:
        over = await advertise(list(cluster.brokers.values()))
        connection = await over.connect()
        assert (await connection.call(ApiKey.LIST_GROUPS, {}))["error_code"] == 0
        killed = asyncio.ensure_future(asyncio.to_thread(cluster.broker(1).kill))
        answers = [(await connection.call(ApiKey.LIST_GROUPS, {}))["error_code"]]
        while not killed.done() or len(answers) < 50:
            answers.append((await connection.call(ApiKey.LIST_GROUPS, {}))["error_code"])
        await killed
        answers.append((await connection.call(ApiKey.LIST_GROUPS, {}))["error_code"])
        await connection.close()

    assert set(answers) == {0}
