"""Multi-reads on a real ZooKeeper, and on one that is too old for them."""

import asyncio
import struct

import pytest

from kafka_zookeeper.protocol import GET_CHILDREN, GET_DATA, MULTI_READ
from kafka_zookeeper.session import SessionState, ZooKeeperSession
from kafka_zookeeper.writes import Committed, Create, plan_batches
from lab.peers.zookeeper import zookeeper_server
from tests.kafka_zookeeper.conftest import OpenSession
from tests.kafka_zookeeper.fake_zookeeper import UNIMPLEMENTED, FakeZooKeeper, Response

ZNODES = 5_000


async def create(session: ZooKeeperSession, operations: list[Create]) -> None:
    """Create many znodes."""
    batches = plan_batches([[operation] for operation in operations], None)
    results = await asyncio.gather(*(session.multi(batch.operations) for batch in batches))
    assert {type(result) for result in results} == {Committed}


@pytest.mark.zookeeper
async def test_a_multi_read_equals_single_reads(session: ZooKeeperSession):
    """5,000 znodes of many sizes, some without data, some missing."""
    sizes = [None, 0, 1, 70, 700, 7_000]
    await create(
        session,
        [
            Create(f"/n{number}", None if (size := sizes[number % 6]) is None else b"x" * size)
            for number in range(ZNODES)
            if number % 7
        ],
    )
    paths = [f"/n{number}" for number in range(ZNODES)]

    many = await session.multi_get(paths)
    one_by_one = await asyncio.gather(*(session.get(path) for path in paths))

    assert one_by_one == many
    assert sum(node is not None for node in many) == ZNODES - len(range(0, ZNODES, 7))


@pytest.mark.zookeeper
async def test_multi_children_equals_single_reads(session: ZooKeeperSession):
    """For parents with many, one or no children, and for a missing one."""
    await create(session, [Create(f"/p{number}", None) for number in range(300)])
    await create(
        session, [Create(f"/p{parent}/c{child}", None) for parent in range(300) for child in range(parent % 5)]
    )
    paths = [f"/p{number}" for number in range(310)]

    many = await session.multi_children(paths)

    assert await asyncio.gather(*(session.children(path) for path in paths)) == many
    assert [many[2], many[5], many[305]] == [["c0", "c1"], [], None]


@pytest.mark.zookeeper
async def test_large_znodes_do_not_break_the_connection(open_session: OpenSession):
    """20 znodes of 900 kB: in one response they would have 18 MB, more than a ZooKeeper client must accept."""
    with zookeeper_server(heap="256m") as server:
        session = await open_session(server.address)
        for number in range(20):
            assert isinstance(await session.multi([Create(f"/n{number}", b"x" * 900_000)]), Committed)
        states: list[SessionState] = []
        session.on_state(states.append)

        nodes = await session.multi_get([f"/n{number}" for number in range(20)])

        assert [len(node.data or b"") for node in nodes if node] == [900_000] * 20
        assert states == []
        await session.close()


@pytest.mark.zookeeper
async def test_long_paths_do_not_break_the_connection(session: ZooKeeperSession):
    """500 paths of 5 kB exceed a server's limit of a request."""
    states: list[SessionState] = []
    session.on_state(states.append)

    assert await session.multi_get([f"/{'n' * 5_000}{number}" for number in range(600)]) == [None] * 600
    assert states == []


@pytest.fixture
def old_server(fake: FakeZooKeeper) -> FakeZooKeeper:
    """Return a server before 3.6: it returns an error for an unknown opcode, and closes the connection."""
    fake.close_after_error = True

    def path_of(body: bytes) -> str:
        return body[4 : 4 + struct.unpack_from("!i", body)[0]].decode()

    def get_data(body: bytes) -> Response:
        data = path_of(body).encode()
        return 0, struct.pack("!i", len(data)) + data + bytes(68)

    def get_children(body: bytes) -> Response:
        name = path_of(body)[1:].encode()
        return 0, struct.pack("!ii", 1, len(name)) + name

    fake.responses = {GET_DATA: get_data, GET_CHILDREN: get_children, MULTI_READ: lambda _body: (UNIMPLEMENTED, b"")}
    return fake


async def test_after_one_multi_read_an_old_server_receives_single_reads(
    old_server: FakeZooKeeper, open_session: OpenSession
):
    """ZooKeeper 3.4 and 3.5, which older Kafka clusters use."""
    session = await open_session(old_server.address)
    paths = [f"/n{number}" for number in range(50)]

    nodes = await session.multi_get(paths)
    children = await session.multi_children(paths)

    assert [path.encode() for path in paths] == [node.data for node in nodes if node]
    assert [[path[1:]] for path in paths] == children
    requests = old_server.seen.count(MULTI_READ)
    assert 1 <= requests <= 4
    await session.multi_get(paths)
    assert requests == old_server.seen.count(MULTI_READ)
