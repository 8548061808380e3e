"""Sizes of multi-reads, and connection losses."""

from collections import deque
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_zookeeper import reads
from kafka_zookeeper.errors import ConnectionLostError, ZooKeeperError
from kafka_zookeeper.protocol import GET_DATA, MultiReadResponse, Node, ResultError
from kafka_zookeeper.reads import (
    MAX_LOSSES,
    MultiReadUnsupportedError,
    RequestSize,
    multi_children,
    multi_get,
    take_request,
)


class FakeSender:
    """Znodes that contain their paths; some are missing, and requests of more than `most` paths break the connection."""

    chroot = "/k"

    def __init__(self, most: int = 10**9, size_bytes: int = 100, *, supported: bool = True) -> None:
        self.most, self.size_bytes, self.supported = most, size_bytes, supported
        self.request_sizes: list[int] = []
        self.singles = 0

    async def read_many(self, kind: int, paths: Sequence[str]) -> MultiReadResponse:
        if not self.supported:
            raise MultiReadUnsupportedError
        self.request_sizes.append(len(paths))
        if len(paths) > self.most:
            raise ConnectionLostError
        return MultiReadResponse([self._result(kind, path) for path in paths], self.size_bytes * len(paths))

    def _result(self, kind: int, path: str) -> Node | list[str] | ResultError:
        if path.endswith("/missing"):
            return ResultError(-101)
        if path.endswith("/secret"):
            return ResultError(-102)
        return Node(path.encode(), 0, 1, 1, 0) if kind == GET_DATA else [f"{path}/b", f"{path}/a"]

    async def get(self, path: str) -> Node | None:
        self.singles += 1
        result = self._result(GET_DATA, path)
        return result if isinstance(result, Node) else None

    async def children(self, path: str) -> list[str] | None:
        self.singles += 1
        result = self._result(0, path)
        return result if isinstance(result, list) else None


PATHS = [f"/{number}" for number in range(3_000)]


async def test_results_are_in_the_order_of_the_paths():
    """For any batches; a missing znode is None."""
    nodes = await multi_get(FakeSender(), [*PATHS, "/missing"])

    assert [path.encode() for path in PATHS] == [node.data for node in nodes[:-1] if node]
    assert nodes[-1] is None


async def test_children_are_sorted():
    """ZooKeeper returns them in no order."""
    assert await multi_children(FakeSender(), ["/x", "/missing"]) == [["/x/a", "/x/b"], None]


@pytest.mark.parametrize("sender", [FakeSender(), FakeSender(supported=False)])
async def test_no_paths_send_no_request(sender: FakeSender):
    """A cluster without topics."""
    assert await multi_get(sender, []) == []
    assert sender.request_sizes == []


async def test_requests_start_small_and_grow():
    """The size of znodes is only known from the first ones."""
    sender = FakeSender()
    await multi_get(sender, PATHS)

    assert sender.request_sizes[0] == reads.FIRST_PATHS_PER_REQUEST
    assert max(sender.request_sizes) == reads.MAX_PATHS_PER_REQUEST


async def test_large_znodes_are_read_few_at_a_time():
    """50 znodes of 900 kB in one response exhausted the memory of a small server."""
    sender = FakeSender(size_bytes=900_000)
    await multi_get(sender, PATHS[:200])

    assert set(sender.request_sizes) == {reads.FIRST_PATHS_PER_REQUEST, 1}


async def test_a_connection_loss_makes_requests_smaller():
    """Perhaps the request was too large for this server."""
    sender = FakeSender(most=20)

    nodes = await multi_get(sender, PATHS)

    assert [path.encode() for path in PATHS] == [node.data for node in nodes if node]


async def test_repeated_connection_losses_fail_the_read():
    """The number of retries is limited."""
    sender = FakeSender(most=0)

    with pytest.raises(ConnectionLostError):
        await multi_get(sender, PATHS)
    assert MAX_LOSSES < len(sender.request_sizes) <= MAX_LOSSES + reads.REQUESTS_IN_FLIGHT


async def test_other_errors_than_a_missing_znode_are_raised():
    """An unreadable znode is not a missing one."""
    with pytest.raises(ZooKeeperError, match="rejected the read of /a/secret"):
        await multi_get(FakeSender(), ["/x", "/a/secret"])


async def test_an_old_server_receives_single_reads():
    """ZooKeeper before 3.6."""
    sender = FakeSender(supported=False)

    nodes = await multi_get(sender, [*PATHS[:300], "/missing"])

    assert [path.encode() for path in PATHS[:300]] == [node.data for node in nodes if node]
    assert nodes[-1] is None
    assert await multi_children(sender, ["/x"]) == [["/x/a", "/x/b"]]
    assert sender.singles == 302


@given(lengths=st.lists(st.integers(1, 300_000), max_size=8), most=st.integers(1, 5), accent=st.booleans())
def test_a_request_is_within_the_byte_limit(lengths: list[int], most: int, accent: bool):
    """A server closes the connection at 1 MiB; a single path is sent with any size."""
    paths = [("é" if accent else "e") * length for length in lengths]
    waiting, taken = deque(range(len(paths))), []
    while waiting:
        taken.append(take_request(waiting, paths, most, 10))

    assert list(range(len(paths))) == [place for places in taken for place in places]
    for places in taken:
        size = sum(len(paths[place].encode()) + 10 + reads.REQUEST_OVERHEAD_BYTES for place in places)
        assert len(places) <= most
        assert len(places) == 1 or size <= reads.MAX_REQUEST_BYTES


@given(responses=st.lists(st.tuples(st.integers(1, 500), st.integers(1, 10**7)), max_size=10))
def test_sizes_stay_within_their_limits(responses: list[tuple[int, int]]):
    """For any responses."""
    size = RequestSize()
    for paths, size_bytes in responses:
        size.record_response(paths, size_bytes)
        assert 1 <= size.paths <= reads.MAX_PATHS_PER_REQUEST
        assert size.paths == 1 or size.paths * size_bytes / paths <= reads.TARGET_RESPONSE_BYTES
    size.record_loss(paths=80)
    size.record_response(20, 20)
    assert 1 <= size.paths <= 20
