"""A quorum in memory: one log, which a test commits, and the controllers that follow it. One of them at a time leads."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from controller_core.model import Endpoint, events, quorum_events
from controller_core.model.broker import FeatureRange
from controller_core.quorum.batches import Position
from controller_core.quorum.ready import AppendResult
from controller_core.shell.kraft.controller import Identity, KRaftController
from controller_core.shell.quorum.settings import ControllerSettings
from kafka_log.files.snapshots import SnapshotReader, write_snapshot
from kafka_log.format.batches import with_offsets
from kafka_log.format.control_records import snapshot_batches
from kafka_log.format.names import SnapshotId
from kafka_metadata import records
from kafka_metadata.metadata_versions import ELR_VERSION, METADATA_VERSION
from kafka_metadata.records import MetadataRecord
from kafka_wire import ErrorCode
from tests.controller_core.quorum_mode.driver import directory

CLUSTER_ID = "quorum"
SETTINGS = ControllerSettings(
    broker_session_timeout_ms=9_000,
    disconnected_session_timeout_ms=3_000,
    num_partitions=1,
    default_replication_factor=1,
    min_insync_replicas=1,
    unclean_leader_election_enable=False,
    unclean_leader_election_interval_ms=300_000,
    auto_leader_rebalance_enable=True,
    leader_imbalance_check_interval_s=300,
)
BOOTSTRAP: tuple[MetadataRecord, ...] = (
    records.FeatureLevelRecord(METADATA_VERSION, 30),
    records.FeatureLevelRecord(ELR_VERSION, 1),
)


@dataclass(frozen=True)
class Batch:
    """A batch of the log."""

    data: bytes
    base_offset: int
    end_offset: int


class SharedLog:
    """The log, and which of its controllers leads."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.high_watermark = 0
        self.epoch = 0
        self.leader_id: int | None = None
        self.now_ms = 0
        self.kraft_version = 0
        self.commits_at_once = True
        self.members: dict[int, Member] = {}

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self.batches[-1].end_offset if self.batches else 0

    def add(self, node_id: int, bootstrap: tuple[MetadataRecord, ...] = BOOTSTRAP) -> "Member":
        """Add a controller, which gets what is committed."""
        self.members[node_id] = Member(self, node_id, bootstrap)
        self.deliver()
        return self.members[node_id]

    def elect(self, node_id: int | None) -> None:
        """Begin an epoch; what the leader before has not committed is truncated."""
        self.batches = [batch for batch in self.batches if batch.end_offset <= self.high_watermark]
        self.epoch += 1
        self.leader_id = node_id
        for member in self.members.values():
            member.abandon()
        self.deliver()
        for member in self.members.values():
            member.controller.follower.handle_leader_change(self.epoch, node_id)

    def commit(self) -> None:
        """Commit everything."""
        self.high_watermark = self.end_offset
        self.deliver()

    def deliver(self) -> None:
        """Deliver what is committed."""
        for member in self.members.values():
            member.deliver()


class Member:
    """One controller and its node. Implements `active_term.Quorum`."""

    def __init__(self, log: SharedLog, node_id: int, bootstrap: tuple[MetadataRecord, ...]) -> None:
        self.log = log
        self.id = node_id
        self.failure: Exception | None = None
        self._applied_offset = 0
        self._waiting: list[tuple[int, asyncio.Future[bool]]] = []
        endpoint = Endpoint("CONTROLLER", "127.0.0.1", 9_093, "PLAINTEXT")
        identity = Identity(node_id=node_id, cluster_id=CLUSTER_ID, endpoints=lambda: (endpoint,), bootstrap=bootstrap)
        self.controller = KRaftController(self, identity, SETTINGS, lambda: None)

    @property
    def now_ms(self) -> int:
        """The time that the test sets."""
        return self.log.now_ms

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return self.log.end_offset

    @property
    def kraft_version(self) -> int:
        """Level of kraft.version."""
        return self.log.kraft_version

    def leads_in(self, epoch: int) -> bool:
        """Whether this controller is the leader of the epoch."""
        return self.log.leader_id == self.id and self.log.epoch == epoch

    def append_now(self, epoch: int, payload: bytes, record_count: int) -> AppendResult:
        """Append a batch; it is committed at once or by the test."""
        if not self.leads_in(epoch):
            return AppendResult(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        begin = self.log.end_offset
        self.log.batches.append(Batch(with_offsets(payload, begin, epoch), begin, begin + record_count))
        if self.log.commits_at_once:
            asyncio.get_running_loop().call_soon(self.log.commit)
        return AppendResult(ErrorCode.NONE, begin)

    async def committed(self, offset: int) -> bool:
        """Wait for the commit of a record."""
        if self.log.leader_id != self.id:
            return False
        if offset < self.log.high_watermark:
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((offset, future))
        return await future

    def fail(self, error: Exception) -> None:
        """Keep the error that ended the node."""
        self.failure = error

    def abandon(self) -> None:
        """End all waits for commits."""
        waiting, self._waiting = self._waiting, []
        for _, future in waiting:
            future.set_result(False)

    def deliver(self) -> None:
        """Give the controller what is committed, and end the waits for it."""
        for batch in self.log.batches:
            if self._applied_offset <= batch.base_offset and batch.end_offset <= self.log.high_watermark:
                self._applied_offset = batch.end_offset
                self.controller.follower.handle_commit(batch.data)
        for append in [append for append in self._waiting if append[0] < self.log.high_watermark]:
            self._waiting.remove(append)
            if not append[1].done():
                append[1].set_result(True)

    def load(self, folder: Path, values: Iterable[bytes], end: Position) -> None:
        """Give the controller a snapshot of these records."""
        snapshot = SnapshotId(end.offset, end.epoch)
        batches = snapshot_batches(values, epoch=end.epoch, timestamp_ms=0, last_contained_timestamp_ms=7)
        write_snapshot(folder, snapshot, batches)
        with SnapshotReader(folder, snapshot) as reader:
            self.controller.follower.handle_snapshot(reader)

    async def start_broker(self, broker: int, incarnation: int = 1) -> int:
        """Register a broker and bring it into service; return its epoch."""
        event = registration(broker, incarnation)
        epoch: int = (await self.controller.submit(event)).broker_epoch
        await self.controller.submit(quorum_events.Heartbeat(broker, epoch, self.log.end_offset))
        return epoch


def registration(broker: int, incarnation: int = 1) -> quorum_events.RegisterBroker:
    """Return the registration of a broker with one directory."""
    return quorum_events.RegisterBroker(
        broker,
        CLUSTER_ID,
        UUID(int=100 * broker + incarnation),
        (Endpoint("PLAINTEXT", f"host{broker}", 9_092, "PLAINTEXT"),),
        None,
        (FeatureRange(METADATA_VERSION, 7, 30), FeatureRange(ELR_VERSION, 0, 1)),
        (directory(broker),),
    )


def new_topic(name: str, *replicas: tuple[int, ...]) -> events.CreateTopics:
    """Return the creation of a topic with given replicas of each partition."""
    assignment = dict(enumerate(replicas))
    return events.CreateTopics((events.NewTopic(name, uuid4(), assignment=assignment),))
