"""The driver of a node: when it ends, and how."""

import asyncio
import logging
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Never

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.inputs import Request, Response
from controller_core.quorum.messages import (
    NONE,
    DescribeQuorumRequest,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ResponseBody,
)
from controller_core.quorum.ready import Outgoing
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.storage import Storage
from kafka_log.files.snapshots import write_snapshot
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_log.format.roll import LogSettings
from kafka_wire.net.failures import CloseConnection
from tests.controller_core.quorum import nodes
from tests.kafka_log.batches import fast_folder
from tests.waiting import until

SHUTDOWN_TIMEOUT_MS = 10
"""The other voters are not there, so that the node waits until its end."""


@pytest.fixture
async def driver() -> AsyncIterator[Driver]:
    """A running voter of three, whose requests reach no one."""
    with fast_folder() as folder:
        log = MetadataLog(folder / "__cluster_metadata-0")
        found = Driver(Storage(log, segment_bytes=LogSettings().segment_bytes))
        found.start(nodes.settings(), nodes.history(level=0).voters, 1, lambda _: None)
        yield found
        await found.close()


async def test_a_node_that_shuts_down_has_ended_without_a_failure(driver: Driver) -> None:
    """KafkaRaftClientDriverTest.testShutdown."""
    assert not driver.ended.is_set()
    await driver.shut_down(SHUTDOWN_TIMEOUT_MS)

    assert (driver.ended.is_set(), driver.failure) == (True, None)


async def test_an_unexpected_error_ends_the_node(driver: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """KafkaRaftClientDriverTest.testUncaughtException: its state is unknown. The request that met the error is not answered."""
    defect = RuntimeError("a defect")

    def fail(*_: object) -> Never:
        raise defect

    monkeypatch.setattr("controller_core.shell.quorum.driver.step", fail)
    with pytest.raises(CloseConnection, match="has stopped"):
        await driver.ask(nodes.LISTENER, DescribeQuorumRequest())

    assert (driver.ended.is_set(), driver.failure) == (True, defect)
    with pytest.raises(CloseConnection, match="does not run"):
        await asyncio.wait_for(driver.ask(nodes.LISTENER, DescribeQuorumRequest()), 1)


async def test_the_start_of_an_election_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """QuorumState logs each transition to ProspectiveState; a voter that goes on asking writes no further line."""
    clock = SimpleNamespace(now_ms=0)
    with fast_folder() as folder, caplog.at_level(logging.INFO):
        log = MetadataLog(folder / "__cluster_metadata-0")
        driver = Driver(Storage(log, segment_bytes=LogSettings().segment_bytes), lambda: clock.now_ms)
        driver.start(nodes.settings(), nodes.history(level=0).voters, 1, lambda _: None)
        for clock.now_ms in (0, 10_000, 10_001):
            await driver.ask(nodes.LISTENER, DescribeQuorumRequest())
        await driver.close()

    started = [record for record in caplog.records if record.message == "Started an election"]
    assert [record.__dict__["epoch"] for record in started] == [0]


async def test_a_node_starts_after_a_crash_between_a_fetched_snapshot_and_the_change_of_the_log() -> None:
    """KafkaRaftLogTest.testTruncateFullyToLatestSnapshot: the log, which ends before the snapshot, starts at its end."""
    with fast_folder() as folder:
        path = folder / "__cluster_metadata-0"
        MetadataLog(path).close()
        batches = snapshot_batches([b"value"], epoch=3, timestamp_ms=0, last_contained_timestamp_ms=0)
        write_snapshot(path, SnapshotId(100, 3), batches)
        driver = Driver(Storage(MetadataLog(path), segment_bytes=LogSettings().segment_bytes))
        driver.start(nodes.settings(), nodes.history(level=0).voters, 1, lambda _: None)

        assert driver.node is not None
        assert (driver.failure, driver.node.log.end) == (None, Position(100, 3))
        await driver.close()


async def test_the_next_bytes_of_a_snapshot_are_requested_before_the_last_ones_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The leader reads them in the meantime; a request for bytes of a snapshot promises nothing about the disk."""
    done: list[object] = []
    snapshot = Position(9, 1)
    with fast_folder() as folder:
        storage = Storage(MetadataLog(folder / "__cluster_metadata-0"), segment_bytes=LogSettings().segment_bytes)
        monkeypatch.setattr(storage, "write_chunk", lambda chunk: done.append(("written", chunk.position)))
        driver = Driver(storage)

        def send(outgoing: Outgoing) -> None:
            if isinstance(outgoing.body, FetchSnapshotRequest):
                done.append(("requested", outgoing.body.position))
            if isinstance(outgoing.body, FetchRequest):
                answer(outgoing, FetchResponse(leadership=nodes.FROM_LEADER, snapshot=snapshot))
            elif len(done) < 3:
                chunk = FetchSnapshotResponse(NONE, nodes.FROM_LEADER, snapshot, 3, len(done) // 2, data=b"x")
                answer(outgoing, chunk)

        def answer(outgoing: Outgoing, body: ResponseBody) -> None:
            response = Response(outgoing.destination.id, outgoing.correlation_id, body)
            asyncio.get_running_loop().call_soon(asyncio.get_running_loop().call_soon, driver.handle, response)

        driver.start(nodes.settings(), nodes.history(level=0).voters, 1, send)
        driver.handle(Request(1, nodes.LISTENER, nodes.begin(nodes.LEADER, nodes.EPOCH)))
        await until(lambda: ("written", 1) in done)
        await driver.close()

    assert done == [("requested", 0), ("requested", 1), ("written", 0), ("requested", 2), ("written", 1)]
