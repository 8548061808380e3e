"""Processes of a quorum's nodes: elections, replication, restarts, snapshots and errors of the disk, over real sockets and files."""

import asyncio
import platform
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Never

import pytest

from controller_core.quorum.batches import Position
from controller_core.quorum.inputs import SnapshotCreated
from controller_core.quorum.messages import FetchRequest
from controller_core.quorum.retention import Retention
from controller_core.quorum.voters import ReplicaKey
from controller_core.shell.quorum.apis import SERVED
from controller_core.shell.quorum.directories import StartError
from controller_core.shell.quorum.metadata_log import MetadataLog
from controller_core.shell.quorum.peers import Peers
from controller_core.shell.quorum.process import NodeOptions, QuorumProcess, log_settings, node_settings
from controller_core.shell.quorum.settings_reading import read_settings
from kafka_log.errors import FlushFailedError, LogWriteError
from kafka_log.files.pending_flush import PendingFlush
from kafka_log.files.text_files import read_meta_properties, write_meta_properties
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_log.format.roll import LogSettings
from kafka_log.format.text_files import MetaProperties
from kafka_node.configs.setting_rules import SettingError
from kafka_wire import ApiKey, ErrorCode, codec
from kafka_wire.net.client import Node
from tests.controller_core.shell.quorum import members as made
from tests.controller_core.shell.quorum.members import Member, committed, leader_of, members
from tests.controller_core.shell.quorum.properties import STATIC
from tests.waiting import until

DESCRIBE = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """Three running members."""
    running = members(tmp_path, 3)
    for member in running:
        member.start()
    yield running
    for member in running:
        if member.process is not None:
            await member.crash()


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Member]:
    """The only member of a quorum, which leads and has committed its first record."""
    (member,) = members(tmp_path, 1)
    member.start()
    await leader_of([member])
    await until(lambda: committed(member) > 0)
    yield member
    if member.process is not None:
        await member.crash()


async def test_what_an_election_sends_is_compiled_before_the_node_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P6. At the first use, in most cases of a hand-over, each message would take a millisecond more."""
    prepared = []
    monkeypatch.setattr(codec, "prepare", lambda *api: prepared.append(api))
    (member,) = members(tmp_path, 1)
    member.start()
    await leader_of([member])
    await member.crash()

    assert prepared == [(key, served.highest) for key, served in SERVED.items()]


async def test_a_voter_keeps_connections_to_the_other_voters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """P6. Without them the next election would begin with name resolution, handshakes and the exchange of versions."""
    connected: set[int] = set()
    monkeypatch.setattr(
        Peers, "connect", lambda _, destinations: connected.update(destination.id for destination in destinations)
    )
    member = members(tmp_path, 3)[0]
    member.start()
    await until(lambda: bool(connected))
    await member.crash()

    assert connected == {2, 3}


@pytest.mark.slow
async def test_records_of_the_leader_are_committed_and_equal_on_all_members(three: list[Member]) -> None:
    """Each member has them before the leader counts them, and the logs have the same bytes."""
    leader = await leader_of(three)
    offset = await leader.append(b"one", b"two")
    await until(lambda: all(committed(member) == offset + 2 for member in three))

    assert len({member.log_bytes() for member in three}) == 1


async def test_an_append_above_eight_mebibytes_is_refused_and_the_node_goes_on(alone: Member) -> None:
    """KafkaRaftClient.MAX_BATCH_SIZE_BYTES: the caller gets the error, and splits or gives up."""
    driver = alone.driver
    epoch = driver.node.epoch if driver.node else 0
    refused = await driver.append(epoch, [bytes(1 << 20)] * 8)
    offset = await alone.append(*[bytes(1 << 20)] * 7)

    await until(lambda: committed(alone) == offset + 7)
    assert refused.error is ErrorCode.RECORD_LIST_TOO_LARGE


async def test_followers_that_wait_for_the_same_records_get_one_answer_that_is_encoded_once(alone: Member) -> None:
    """P7 with observers: each of them has the bytes of the log."""
    node = alone.node
    assert node is not None
    fetched = [
        FetchRequest(None, node.epoch, ReplicaKey(observer), node.log.end, max_wait_ms=60_000) for observer in (7, 8)
    ]
    asked = [asyncio.create_task(alone.driver.ask("CONTROLLER", request)) for request in fetched]
    offset = await alone.append(b"value")
    first, second = await asyncio.gather(*asked)

    assert second is first
    assert (node.log.end_offset, first.data) == (offset, alone.log_bytes()[-len(first.data) :])


async def test_an_append_needs_a_record(alone: Member) -> None:
    """KafkaRaftClient.append throws IllegalArgumentException."""
    with pytest.raises(ValueError, match="needs a record"):
        await alone.append()


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the threshold is glibc's")
def test_freed_memory_of_large_messages_stays_in_the_process() -> None:
    """mallopt(3): by default, each of these buffers is new memory of the system, with a page fault for every 4 KiB."""
    program = (
        "import resource\n"
        "from controller_core.shell.quorum.process import LARGE_BUFFER_BYTES, keep_freed_memory\n"
        "def faults(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt\n"
        "def use():\n"
        "    for _ in range(20): kept = [bytearray(1 << 20) for _ in range(3)]\n"
        "{}"
        "use(); before = faults(); use(); print(faults() - before)\n"
    )
    default, kept = (
        int(subprocess.run([sys.executable, "-c", program.format(first)], capture_output=True, check=True).stdout)
        for first in ("", "keep_freed_memory(LARGE_BUFFER_BYTES)\n")
    )

    assert kept < default / 10


def test_the_node_has_the_limits_of_its_log() -> None:
    """A batch may not be larger than a segment; only internal settings, for tests, are below 8 MiB."""

    def limits(**values: str) -> tuple[int, int]:
        settings = read_settings(
            {**STATIC, **{name.replace("_", "."): value for name, value in values.items()}}
        ).settings
        node = node_settings(settings, MetaProperties("cluster", 1, None), ())
        return node.append_max_bytes, node.batch_max_bytes

    assert limits() == (8 << 20, 8 << 20)
    assert limits(internal_metadata_log_segment_bytes="1000") == (8 << 20, 1000)
    assert limits(internal_metadata_max_batch_size_in_bytes="2000") == (2000, 8 << 20)


@pytest.mark.slow
@pytest.mark.shows("Q7", "Q16")
async def test_the_others_elect_a_leader_after_a_crash_and_the_crashed_member_catches_up(three: list[Member]) -> None:
    """No committed record is lost."""
    first = await leader_of(three)
    assert first.node is not None
    epoch = first.node.epoch
    offset = await first.append(b"before")
    await until(lambda: committed(first) > offset)
    await first.crash()
    others = [member for member in three if member is not first]
    second = await leader_of(others, after_epoch=epoch)
    last = await second.append(b"after")
    first.start()
    await until(lambda: all(committed(member) > last for member in three))

    assert len({member.log_bytes() for member in three}) == 1


@pytest.mark.slow
async def test_a_leader_that_stops_hands_over(three: list[Member]) -> None:
    """EndQuorumEpoch: the others do not wait for their fetch timeout."""
    first = await leader_of(three)
    assert first.node is not None
    epoch = first.node.epoch
    await first.stop()

    second = await leader_of([member for member in three if member is not first], after_epoch=epoch)
    assert second.node is not None
    assert second.node.epoch > epoch


@pytest.mark.slow
async def test_a_member_without_its_log_fetches_the_snapshot_of_the_leader(tmp_path: Path) -> None:
    """The snapshot arrives in parts, is checked, and replaces the log; then records follow."""
    leader, follower, snapshot = await leader_with_snapshot(tmp_path)
    follower.start()
    await until(lambda: follower.node is not None and follower.node.log.start_offset == snapshot.offset)
    await until(lambda: committed(follower) >= snapshot.offset)

    name = snapshot_path(snapshot)
    assert (follower.folder / name).read_bytes() == (leader.folder / name).read_bytes()
    await leader.crash()
    await follower.crash()


@pytest.mark.slow
async def test_a_fetched_snapshot_with_a_wrong_checksum_is_rejected(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is deleted, and fetched again; the follower goes on without it."""
    leader, follower, snapshot = await leader_with_snapshot(tmp_path)
    path = leader.folder / snapshot_path(snapshot)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.chmod(0o600)
    path.write_bytes(content)
    follower.start()
    await until(lambda: "Rejected a fetched snapshot" in caplog.text)

    assert not (follower.folder / snapshot_path(snapshot)).exists()
    assert follower.node is not None
    assert follower.node.log.end_offset == 0
    await leader.crash()
    await follower.crash()


def snapshot_path(snapshot: Position) -> str:
    """Return the path of a snapshot in a member's folder."""
    return f"__cluster_metadata-0/{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"


async def leader_with_snapshot(folder: Path) -> tuple[Member, Member, Position]:
    """Return a running leader with a snapshot of 2 MB, and a stopped follower that has only its quorum-state."""
    two = members(folder, 2)
    for member in two:
        member.start()
    leader = await leader_of(two)
    offset = await leader.append(*[bytes(1000)] * 2000)
    await until(lambda: all(committed(member) > offset for member in two))
    follower = next(member for member in two if member is not leader)
    await follower.stop()
    snapshot = take_snapshot(leader)
    for path in (follower.folder / "__cluster_metadata-0").iterdir():
        if path.name != "quorum-state":
            path.unlink()
    return leader, follower, snapshot


def take_snapshot(leader: Member) -> Position:
    """Write a snapshot of what is committed, as a state machine does."""
    assert leader.process is not None
    driver = leader.process.driver
    assert driver is not None
    assert leader.node is not None
    log: MetadataLog = driver._storage.log
    end = SnapshotId(committed(leader), leader.node.log.last_epoch)
    writer = log.create_snapshot(end, committed(leader))
    assert writer is not None
    values = [bytes([number % 256]) * 1000 for number in range(2000)]
    for batch in snapshot_batches(values, epoch=end.epoch, timestamp_ms=1, last_contained_timestamp_ms=1):
        writer.append(batch)
    log.finish_snapshot(writer)
    driver.handle(SnapshotCreated(Position(*end), writer.size_bytes))
    return Position(*end)


async def test_old_snapshots_and_the_log_below_them_are_deleted_at_each_interval(tmp_path: Path) -> None:
    """metadata.max.retention.bytes, KafkaRaftClient's RaftMetadataLogCleanerManager: the newest snapshot and all behind it stay."""
    (member,) = members(tmp_path, 1, {"metadata.max.retention.bytes": "1000"})
    member.start(cleaning_interval_ms=50)
    await leader_of([member])
    ends = []
    for value in (b"one", b"two"):
        offset = await member.append(value)
        await until(lambda offset=offset: committed(member) > offset)
        ends.append(take_snapshot(member))
    await until(lambda: member.node is not None and member.node.log.start_offset == ends[-1].offset)
    offset = await member.append(b"three")
    await until(lambda: committed(member) > offset)
    kept = [path.name for path in (member.folder / "__cluster_metadata-0").glob("*.checkpoint")]
    await member.stop()
    member.start()
    await leader_of([member], after_epoch=1)

    assert kept == [Path(snapshot_path(ends[-1])).name]
    assert member.node is not None
    assert [snapshot.id for snapshot in member.node.log.snapshots] == [ends[-1]]
    await member.crash()


async def test_a_snapshot_that_cannot_be_deleted_does_not_end_the_node(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's cleaner logs the error and repeats the cleaning after its interval."""
    (member,) = members(tmp_path, 1)
    tries = []

    def fail(_log: MetadataLog, _high_watermark: int) -> Never:
        tries.append(1)
        raise LogWriteError("Failed to delete")

    monkeypatch.setattr(MetadataLog, "clean", fail)
    member.start(cleaning_interval_ms=10)
    await leader_of([member])
    await until(lambda: len(tries) > 1)
    offset = await member.append(b"still")
    await until(lambda: committed(member) > offset)

    assert "Failed to delete old snapshots; retrying later" in caplog.text
    await member.crash()


@pytest.mark.shows("Q2")
async def test_a_restarted_member_leads_in_a_later_epoch_with_its_records(alone: Member) -> None:
    """It does not use an offset twice in an epoch."""
    assert alone.node is not None
    epoch, offset = alone.node.epoch, await alone.append(b"kept")
    await until(lambda: committed(alone) > offset)
    await alone.crash()
    alone.start()
    await leader_of([alone], after_epoch=epoch)

    assert b"kept" in alone.log_bytes()


@pytest.mark.shows("Q6")
async def test_a_failed_flush_ends_the_process_and_nothing_is_committed(
    alone: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A flush is never tried again (ADR 26)."""

    def fail(_: PendingFlush) -> None:
        raise FlushFailedError("Failed to flush")

    monkeypatch.setattr(PendingFlush, "run", fail)
    before = committed(alone)
    offset = await alone.append(b"lost")

    assert alone._task is not None
    with pytest.raises(FlushFailedError, match="Failed to flush"):
        await alone._task
    assert committed(alone) == before == offset


@pytest.mark.shows("Q2", "Q15")
async def test_an_election_that_cannot_be_stored_ends_the_process_before_anything_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A vote that is not on disk could be given twice."""

    def fail(*_: object, **__: object) -> None:
        raise LogWriteError("Failed to write quorum-state: No space left on device")

    (member,) = members(tmp_path, 1)
    monkeypatch.setattr("controller_core.shell.quorum.storage.write_quorum_state", fail)
    member.start()

    assert member._task is not None
    with pytest.raises(LogWriteError, match="No space left"):
        await member._task
    assert member.log_bytes() == b""


async def test_requests_of_another_cluster_and_for_another_topic_get_kafkas_errors(alone: Member) -> None:
    """Source: KafkaRaftClient.handleVoteRequest and handleFetchRequest."""
    port = alone.settings.listeners[0].port
    partition = {"replica_epoch": 9, "replica_id": 2}
    topics = [{"topic_name": "__cluster_metadata", "partitions": [partition]}]
    client = Node("127.0.0.1", port)
    wrong_cluster = await client.call(ApiKey.VOTE, {"cluster_id": "other", "topics": topics})
    wrong_topic = await client.call(ApiKey.VOTE, {"topics": [{**topics[0], "topic_name": "other"}]})
    fetched = {"topic_id": uuid.UUID(int=9), "partitions": [{"partition": 0, "fetch_offset": 0}]}
    wrong_fetch = await client.call(ApiKey.FETCH, {"max_wait_ms": 0, "min_bytes": 0, "topics": [fetched]})
    described = await client.call(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 1})
    await client.close()

    assert wrong_cluster["error_code"] == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert wrong_topic["error_code"] == ErrorCode.INVALID_REQUEST
    assert wrong_fetch["error_code"] == ErrorCode.INVALID_REQUEST
    assert described["error_code"] == ErrorCode.MISMATCHED_ENDPOINT_TYPE


async def test_describe_cluster_lists_the_voters_and_the_leader(alone: Member) -> None:
    """KIP-919: a tool that is given a controller finds the others."""
    port = alone.settings.listeners[0].port
    client = Node("127.0.0.1", port)
    described = await client.call(ApiKey.DESCRIBE_CLUSTER, {"endpoint_type": 2})
    await client.close()

    assert (described["cluster_id"], described["controller_id"]) == (made.CLUSTER_ID, 1)
    assert [(broker["broker_id"], broker["port"]) for broker in described["brokers"]] == [(1, port)]


async def test_a_second_process_of_the_same_directory_is_refused(alone: Member) -> None:
    """Two processes with one log would both vote."""
    second = Member(alone.folder.parent, 1, {1: alone.settings.listeners[0].port})
    second.start()

    assert second._task is not None
    with pytest.raises(StartError, match="another process uses this folder"):
        await second._task


async def test_a_start_adds_missing_directory_ids(alone: Member) -> None:
    """KafkaRaftServer.initializeLogDirs: directories that Kafka formatted before 3.7 have none. The id stays from then on."""
    await alone.stop()
    meta = read_meta_properties(alone.folder)
    assert meta is not None
    write_meta_properties(alone.folder, replace(meta, version=0, directory_id=None))
    keys = []
    for _ in range(2):
        alone.start()
        await leader_of([alone])
        assert alone.node is not None
        keys.append(alone.node.key)
        await alone.stop()

    assert keys[0] == keys[1]
    assert keys[0].directory_id is not None
    assert read_meta_properties(alone.folder) == replace(meta, version=0, directory_id=keys[0].directory_id)


def test_the_log_has_the_settings_of_the_file() -> None:
    """KafkaRaftLogTest.testConfig and testSegmentMsConfigIsSetInMetadataLog."""
    values = {
        "metadata.log.segment.bytes": "10485760",
        "metadata.log.segment.ms": "10240",
        "metadata.max.retention.bytes": "1000",
        "metadata.max.retention.ms": "2000",
    }
    settings = read_settings(STATIC | values).settings

    expected = (LogSettings(segment_bytes=10485760, segment_ms=10240), Retention(max_bytes=1000, max_age_ms=2000))
    assert log_settings(settings) == expected


@pytest.mark.parametrize(
    "limit",
    [{"max.connections.per.ip": "1"}, {"max.connections": "1"}, {"listener.name.controller.max.connections": "1"}],
)
async def test_connections_over_a_limit_are_closed_and_the_others_served(
    tmp_path: Path, limit: Mapping[str, str]
) -> None:
    """KIP-402: Kafka's limits of a process, of an address, and of a listener."""
    (member,) = members(tmp_path, 1, limit)
    member.start()
    await leader_of([member])
    address = "127.0.0.1", member.settings.listeners[0].port
    first = Node(*address)
    await first.call(ApiKey.DESCRIBE_QUORUM, DESCRIBE)
    reader, writer = await asyncio.open_connection(*address)

    assert await reader.read() == b""
    await first.call(ApiKey.DESCRIBE_QUORUM, DESCRIBE)

    writer.close()
    await first.close()
    await member.crash()


def test_a_limit_that_accepts_no_connection_is_refused_at_the_start(tmp_path: Path) -> None:
    """A controller without connections serves no client."""
    (member,) = members(tmp_path, 1, {"max.connections": "0"})

    with pytest.raises(SettingError, match=r"max.connections is 0, which accepts no connection\."):
        QuorumProcess(member.settings, NodeOptions(metrics_port=0))
