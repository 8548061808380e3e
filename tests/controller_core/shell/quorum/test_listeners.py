"""State machines on a running node: they get the snapshot, whole committed batches and leaders, in order."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Never

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.inputs import SnapshotCreated
from kafka_log.files.snapshots import SnapshotReader
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_wire.records import decode_batches
from tests.controller_core.shell.quorum.members import Member, committed, leader_of, members
from tests.waiting import until


class Recorder:
    """A state machine that keeps what it gets. Implements Listener."""

    def __init__(self) -> None:
        self.got: list[object] = []
        self.is_busy = False

    def handle_snapshot(self, snapshot: SnapshotReader) -> None:
        """Keep the snapshot's offset, and that it can be read."""
        self.got.append(("snapshot", snapshot.snapshot.offset, len(snapshot.read(0, 10))))

    def handle_commit(self, batches: bytes) -> None:
        """Keep the values of data records."""
        for batch in decode_batches(batches):
            if not batch.header.is_control:
                self.got += [record.value for record in batch.records]

    def handle_leader_change(self, epoch: int, leader_id: int | None) -> None:
        """Keep the leader."""
        self.got.append(("leader", epoch, leader_id))


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Member]:
    """The only member of a quorum, which leads and has committed its first record."""
    (member,) = members(tmp_path, 1)
    member.start()
    await leader_of([member])
    await until(lambda: committed(member) > 0)
    yield member
    await member.crash()


async def test_a_listener_gets_what_was_committed_before_then_the_leader_and_what_is_committed_later(
    alone: Member,
) -> None:
    """KafkaRaftClientTest.testLateRegisteredListenerCatchesUp, testReregistrationChangesListenerContext."""
    listener = Recorder()
    offset = await alone.append(b"early")
    await until(lambda: committed(alone) > offset)
    alone.driver.listeners.register(listener)
    await until(lambda: len(listener.got) == 2)
    await alone.append(b"late")
    await until(lambda: len(listener.got) == 3)
    alone.driver.listeners.unregister(listener)
    again = Recorder()
    alone.driver.listeners.register(again)
    await until(lambda: len(again.got) == 3)
    epoch = alone.node.epoch if alone.node else 0

    assert listener.got == [b"early", ("leader", epoch, 1), b"late"]
    assert again.got == [b"early", b"late", ("leader", epoch, 1)]


async def test_a_new_listener_gets_the_latest_snapshot_and_the_records_after_it(alone: Member) -> None:
    """KafkaRaftClientSnapshotTest.testLeaderListenerNotified."""
    offset = await alone.append(b"in the snapshot")
    await until(lambda: committed(alone) > offset)
    assert alone.node is not None
    snapshot = SnapshotId(offset + 1, alone.node.epoch)
    log = alone.driver._storage.log
    writer = log.create_snapshot(snapshot, committed(alone))
    assert writer is not None
    for batch in snapshot_batches([b"x"], epoch=snapshot.epoch, timestamp_ms=0, last_contained_timestamp_ms=0):
        writer.append(batch)
    log.finish_snapshot(writer)
    alone.driver.handle(SnapshotCreated(Position(snapshot.offset, snapshot.epoch), writer.size_bytes))
    listener = Recorder()
    alone.driver.listeners.register(listener)
    await alone.append(b"after it")
    await until(lambda: b"after it" in listener.got)

    assert listener.got == [("snapshot", offset + 1, 10), ("leader", alone.node.epoch, 1), b"after it"]


async def test_an_error_of_a_listener_ends_the_node(alone: Member) -> None:
    """Its state is unknown then; Kafka's fault handler ends the process."""
    defect = RuntimeError("a defect")

    class Failing(Recorder):
        def handle_commit(self, batches: bytes) -> Never:
            assert batches
            raise defect

    alone.driver.listeners.register(Failing())
    await until(alone.driver.ended.is_set)

    assert alone.driver.failure is defect
