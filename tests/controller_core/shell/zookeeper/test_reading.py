"""Reading of the cluster's state: a znode that cannot be decoded or is invalid affects nothing else."""

import logging
from uuid import UUID

import numpy as np
import pytest

from controller_core.model import Broker, Cluster, Endpoint
from controller_core.model.ids import MAX_BROKER_ID
from controller_core.model.zookeeper_changes import StatesObserved
from controller_core.model.zookeeper_events import StoredTopic
from controller_core.shell.zookeeper import reading
from controller_core.shell.zookeeper.reading import ProducerIds, decode_brokers, read_states, read_topics
from controller_core.zookeeper_mode.transitions import apply
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE
from kafka_zookeeper import paths
from kafka_zookeeper.formats.producer_ids import INT64_MAX
from kafka_zookeeper.session import Node
from tests.controller_core.shell.zookeeper.fake_zookeeper import FakeSession, FakeZooKeeper
from tests.controller_core.shell.zookeeper.vocabulary import read_change

REGISTRATION = (
    b'{"features":{},"listener_security_protocol_map":{"INTERNAL":"PLAINTEXT"},"endpoints":["INTERNAL://host1:9092"],'
    b'"rack":"a","jmx_port":-1,"port":9092,"host":"host1","version":5,"timestamp":"1"}'
)
STATE = b'{"controller_epoch":3,"leader":%d,"version":1,"leader_epoch":4,"isr":[%s]}'


@pytest.fixture
def server() -> FakeZooKeeper:
    """An empty ZooKeeper."""
    return FakeZooKeeper()


@pytest.fixture
def session(server: FakeZooKeeper) -> FakeSession:
    """A session with the server."""
    return server.session()


def node(data: bytes | None, czxid: int = 7) -> Node:
    """A znode as read."""
    return Node(data, 0, czxid, czxid, 1)


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Messages of errors in the log."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]


def test_the_broker_epoch_is_the_czxid_of_the_registration() -> None:
    """Protocol notes, Z1: the registration's czxid is the broker epoch (KIP-380)."""
    expected = Broker(1, 7, (Endpoint("INTERNAL", "host1", 9092, "PLAINTEXT"),), "a")

    assert decode_brokers({"1": node(REGISTRATION)}, 1000) == (expected,)


@pytest.mark.parametrize(
    "name", ["seqid", "-1", "1.5", "", "²", str(MAX_BROKER_ID + 1)], ids=lambda name: f"name {name!r}"
)
def test_a_name_that_is_no_broker_id_is_ignored(name: str) -> None:
    """Any process may write below /brokers/ids; memory is allocated for ids up to a maximum."""
    assert decode_brokers({name: node(REGISTRATION)}, 1000) == ()


def test_a_broker_that_cannot_be_decoded_affects_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """The others are known; the log names the broker."""
    found = decode_brokers({"1": node(b"garbage"), "2": node(REGISTRATION), "3": None}, 1000)

    assert [broker.id for broker in found] == [2]
    assert errors(caplog) == ["Ignoring broker; failed to decode its registration"]


def test_a_broker_with_the_controllers_id_is_ignored_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The controller needs an id that no broker has (protocol notes, Z20)."""
    assert decode_brokers({"1000": node(REGISTRATION)}, 1000) == ()
    assert errors(caplog) == ["Ignoring broker that has the controller's id; give the controller another one"]


async def test_topics_are_read_with_their_moves_and_versions(server: FakeZooKeeper, session: FakeSession) -> None:
    """`/brokers/topics/T` (TopicZNode in kafka.zk.ZkData)."""
    server.put("/brokers/topics/a", b'{"partitions":{"1":[2],"0":[1,2]},"version":1}')
    moving = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAABw","partitions":{"0":[2,1]},"adding_replicas":{"0":[2]},"removing_replicas":{"0":[1]}}'
    server.put("/brokers/topics/b", b"{}")
    server.put("/brokers/topics/b", moving)

    expected = (
        StoredTopic("a", None, {0: (1, 2), 1: (2,)}, {}, {}, 0),
        StoredTopic("b", UUID(int=7), {0: (2, 1)}, {0: (2,)}, {0: (1,)}, 1),
    )
    assert await read_topics(session, ["a", "b"]) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"garbage",
        b"[]",
        b'{"partitions":{"0":[1,1]}}',
        b'{"partitions":{"0":["1"]}}',
        b'{"partitions":{"0":[20000000]}}',
    ],
)
async def test_an_invalid_topic_affects_no_other(
    server: FakeZooKeeper, session: FakeSession, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    """Bad input never loses anything, and never stops a loop."""
    server.put("/brokers/topics/bad", data)
    server.put("/brokers/topics/good", b'{"partitions":{"0":[1]}}')

    assert [record.name for record in await read_topics(session, ["bad", "missing", "good"])] == ["good"]
    assert errors(caplog) == ["Ignoring topic; failed to decode its assignment"]


def cluster_with_topic(partitions: int = 4) -> Cluster:
    """A topic whose partitions have replicas 1 and 2."""
    cluster = Cluster(1000, 9)
    apply(cluster, read_change(cluster, "topic t " + " ".join(f"{number}=1,2" for number in range(partitions))))
    return cluster


async def states_of(session: FakeSession, cluster: Cluster) -> StatesObserved | None:
    """Read the states of all partitions."""
    return await read_states(session, cluster, cluster.columns.used())


async def test_states_are_read_into_columns_with_their_versions(server: FakeZooKeeper, session: FakeSession) -> None:
    """The znode's version is the partition epoch; a partition without a znode is omitted."""
    server.put(paths.partition_state("t", 0), STATE % (1, b"1,2"))
    server.put(paths.partition_state("t", 2), STATE % (-1, b"2"))
    server.put(paths.partition_state("t", 2), STATE % (-1, b"2"))

    states = await states_of(session, cluster_with_topic())

    assert states is not None
    assert states.rows.tolist() == [0, 2]
    assert states.leader.tolist() == [1, -1]
    assert states.leader_epoch.tolist() == [4, 4]
    assert states.isr.tolist() == [[1, 2], [2, -1]]
    assert states.partition_epoch.tolist() == [0, 1]
    assert states.controller_epoch.tolist() == [3, 3]


async def test_the_leader_recovery_state_is_read(server: FakeZooKeeper, session: FakeSession) -> None:
    """KIP-704: the next controller sends it to brokers."""
    server.put(paths.partition_state("t", 0), STATE % (1, b"1,2"))
    recovering = (STATE % (1, b"1")).replace(b'"version":1,', b'"version":1,"leader_recovery_state":1,')
    server.put(paths.partition_state("t", 1), recovering)

    states = await states_of(session, cluster_with_topic())

    assert states is not None
    assert states.recovering.tolist() == [False, True]


async def test_topics_without_states_are_no_change(session: FakeSession) -> None:
    """A topic that a broker has just created."""
    assert await states_of(session, cluster_with_topic()) is None
    assert await states_of(session, Cluster(1000, 9)) is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"garbage", "Ignoring partition state that cannot be decoded"),
        (STATE % (2, b"1"), "Ignoring invalid partition state"),
        (STATE % (1, b""), "Ignoring invalid partition state"),
    ],
)
async def test_an_invalid_state_affects_no_other(
    server: FakeZooKeeper, session: FakeSession, caplog: pytest.LogCaptureFixture, data: bytes, message: str
) -> None:
    """The other partitions of the topic are available."""
    server.put(paths.partition_state("t", 0), data)
    server.put(paths.partition_state("t", 1), STATE % (1, b"1,2"))

    states = await states_of(session, cluster_with_topic())

    assert states is not None
    assert states.rows.tolist() == [1]
    assert errors(caplog) == [message]


async def test_an_isr_of_thousands_does_not_make_the_columns_wide(server: FakeZooKeeper, session: FakeSession) -> None:
    """The longest list determines the width of the columns for all partitions."""
    server.put(paths.partition_state("t", 0), STATE % (1, ",".join(map(str, range(1, 5000))).encode()))
    server.put(paths.partition_state("t", 1), STATE % (1, b"1,2"))
    cluster = cluster_with_topic()

    states = await states_of(session, cluster)

    assert states is not None
    assert states.rows.tolist() == [1]
    assert states.isr.shape[1] <= cluster.columns.width


async def test_topics_that_allow_unclean_leaders_are_read(
    server: FakeZooKeeper, session: FakeSession, caplog: pytest.LogCaptureFixture
) -> None:
    """C7; Kafka ignores case and blanks of a boolean; a configuration that cannot be decoded does not allow unclean leaders."""
    for name, value in {"yes": "true", "shout": " TRUE ", "no": "false"}.items():
        server.put(
            paths.topic_config(name), b'{"version":1,"config":{"unclean.leader.election.enable":"%s"}}' % value.encode()
        )
    server.put(paths.topic_config("bad"), b'{"version":1,"config":{"unclean.leader.election.enable":true}}')
    server.put(paths.topic_config("null"))

    found = await reading.read_unclean_topics(session, ["yes", "shout", "no", "bad", "null", "none"])

    assert found == {"yes": True, "shout": True, "no": False, "bad": False}
    assert errors(caplog) == ["Failed to decode topic configuration"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, ProducerIds(-1, 0)),
        (b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}', ProducerIds(999, 0)),
        (b"garbage", ProducerIds(INT64_MAX, 0)),
        (b"", ProducerIds(INT64_MAX, 0)),
    ],
)
async def test_the_last_block_of_producer_ids_is_read_or_no_ids_are_left(
    server: FakeZooKeeper, session: FakeSession, data: bytes | None, expected: ProducerIds
) -> None:
    """KIP-730: an id is allocated once, so none is allocated if the last one is unknown."""
    server.put(paths.PRODUCER_ID_BLOCK, data)

    assert await reading.read_producer_ids(session) == expected


async def test_there_is_no_znode_before_the_first_block_of_producer_ids(session: FakeSession) -> None:
    """A cluster in which no broker has started."""
    assert await reading.read_producer_ids(session) == ProducerIds(-1, NO_ZNODE)


def test_concatenated_lists_become_padded_rows() -> None:
    """An empty list becomes a row of -1."""
    flat, offsets = np.array([1, 2, 3, 4], dtype=np.int32), np.array([0, 2, 2, 4], dtype=np.int64)

    expected = [[1, 2], [-1, -1], [3, 4]]
    assert reading._rectangle(flat, offsets, np.diff(offsets)).tolist() == expected
