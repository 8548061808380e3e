"""Model brokers: processes that register, send heartbeats, read the metadata, and change ISRs of partitions that they lead.

A process may be killed at any time and started again at once, with the same directories or with one that has failed. It knows of the
cluster only what it has read.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from controller_core.model import NO_EPOCH, Endpoint, TopicPartition, events, quorum_events
from controller_core.model.broker import FeatureRange
from controller_core.quorum_mode.registration import Registered
from controller_core.shell.kraft.broker_apis import heartbeat
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.kraft.features import SUPPORTED
from kafka_metadata.directory_ids import UNASSIGNED_DIRECTORY
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_metadata.records import PartitionRecord
from kafka_node.context import RequestContext
from kafka_wire import ErrorCode

if TYPE_CHECKING:
    from tests.sim.kraft.cluster import KRaftCluster

FIRST_ID = 101
"""Ids of brokers are not those of controllers."""

REQUEST_TIMEOUT_MS = 600
"""Time after which a broker asks another controller."""

HEARTBEAT_MS = 200
"""Several heartbeats within the shortest session."""

FEATURES = tuple(FeatureRange(name, lowest, highest) for name, (lowest, highest) in SUPPORTED.items())

CONTEXT = RequestContext("CONTROLLER", None, "broker", 0, 2)

Work = Callable[[KRaftController], Awaitable[Any]]


@dataclass
class Process:
    """One process of a broker."""

    incarnation_id: UUID
    previous_epoch: int
    """Epoch in the clean-shutdown file that it found; NO_EPOCH without one."""
    epoch: int = NO_EPOCH
    is_caught_up: bool = False
    is_fenced: bool = True
    wants_shutdown: bool = False
    read_offset: int = -1
    """Offset of the metadata that its last heartbeat named."""
    is_waiting: bool = False
    """Whether a registration or a heartbeat is not answered yet."""


class ModelBroker:
    """A broker: what outlives its processes, and the process that runs."""

    def __init__(self, cluster: "KRaftCluster", broker_id: int) -> None:
        self._cluster = cluster
        self.id = broker_id
        count = 1 + cluster.scheduler.random.randrange(2)
        self.directories = tuple(UUID(int=(1 << 64) + 10 * broker_id + place) for place in range(count))
        self._is_eager = cluster.scheduler.chance(0.3)
        """Whether its processes ask for service at once, and leave it to the controller to wait until they have read the metadata."""
        self.failed: set[UUID] = set()
        """Directories that have failed since the process started."""
        self.stopped: set[int] = set()
        """Epochs of processes that have reported the failure of their last directory: they stop."""
        self.process: Process | None = None
        self.view = MetadataLog()
        self._clean_epoch = NO_EPOCH
        self._controller_id = 1

    # Processes

    def start(self) -> None:
        """Start a process, whose directories work again. It has read nothing yet."""
        assert self.process is None, self.id
        random = self._cluster.scheduler.random
        self.process = Process(UUID(int=random.getrandbits(100) + 1), self._clean_epoch)
        self._cluster.metadata.clean_epochs[self.process.incarnation_id] = self._clean_epoch
        self.failed, self._clean_epoch, self.view = set(), NO_EPOCH, MetadataLog()

    def kill(self) -> None:
        """End the process at once. Its controller learns of the ended connection, or not."""
        if self._cluster.scheduler.chance(0.5):
            self.disconnect()
        self.process = None

    def disconnect(self) -> None:
        """End the connection with the heartbeats. The next heartbeat has another one."""
        process = self.process
        if process is not None and process.epoch != NO_EPOCH:
            event = quorum_events.HeartbeatConnectionEnded(self.id, process.epoch)
            work = partial(_end_connection, event=event)
            self._cluster.deliver(self.id, self._controller_id, work, None)

    def shut_down(self) -> None:
        """Ask for a controlled shutdown with the next heartbeat."""
        if self.process is not None:
            self.process.wants_shutdown = True

    def fail_directory(self) -> None:
        """Fail a directory. A process without any other ends soon after its next heartbeat."""
        if self.process is not None:
            self.failed.add(self._cluster.scheduler.random.choice(self.directories))

    @property
    def is_in_service(self) -> bool:
        """Whether a process runs that knows that it is not fenced."""
        return self.process is not None and not self.process.is_fenced

    # Requests

    def _ask(self, work: Work, done: Callable[[Any], None]) -> None:
        """Send a request to the controller that the process believes to be active; another one is asked after an error or no answer."""
        process, asked, is_answered = self.process, self._controller_id, False

        def answered(answer: Any) -> None:
            nonlocal is_answered
            if is_answered or self.process is not process:
                return
            is_answered = True
            failed = answer is None or isinstance(answer, Exception)
            if failed and self._controller_id == asked:
                self._controller_id = self._cluster.controller_after(asked)
            done(None if failed else answer)

        self._cluster.deliver(self.id, asked, work, answered)
        self._cluster.scheduler.after(REQUEST_TIMEOUT_MS, lambda: answered(None))

    def beat(self) -> None:
        """Register, or send a heartbeat."""
        process = self.process
        if process is None or process.is_waiting:
            return
        process.is_waiting = True
        if process.epoch == NO_EPOCH:
            self._ask(lambda one: one.submit(self._registration(process)), self._registered)
        else:
            self._beat(process)

    def _registration(self, process: Process) -> quorum_events.RegisterBroker:
        return quorum_events.RegisterBroker(
            self.id,
            self._cluster.cluster_id,
            process.incarnation_id,
            (Endpoint("PLAINTEXT", f"host{self.id}", 9_092, "PLAINTEXT"),),
            None,
            FEATURES,
            tuple(directory for directory in self.directories if directory not in self.failed),
            process.previous_epoch,
        )

    def _registered(self, answer: Any) -> None:
        process = self.process
        assert process is not None, self.id
        process.is_waiting = False
        if isinstance(answer, Registered):
            process.epoch = answer.broker_epoch

    def _beat(self, process: Process) -> None:
        process.read_offset = self.view.end_offset - 1
        if self.failed >= set(self.directories):
            self.stopped.add(process.epoch)
        body = {
            "broker_id": self.id,
            "broker_epoch": process.epoch,
            "current_metadata_offset": process.read_offset,
            "want_fence": not process.is_caught_up and not self._is_eager,
            "want_shut_down": process.wants_shutdown,
            "offline_log_dirs": sorted(self.failed),
            "cordoned_log_dirs": None,
        }

        self._ask(self._judged(process.epoch, lambda one: heartbeat(one, CONTEXT, body)), self._beaten)

    def _beaten(self, answer: Any) -> None:
        process = self.process
        assert process is not None, self.id
        process.is_waiting = False
        if answer is None:
            return
        if answer["error_code"] != ErrorCode.NONE:
            self.kill()  # Another incarnation is registered, or none: a person ends such a process.
            return
        process.is_caught_up = process.is_caught_up or answer["is_caught_up"]
        process.is_fenced = answer["is_fenced"]
        assert process.is_fenced or self.view.end_offset > process.epoch, (
            "unfenced before it has read so far",
            self.id,
        )
        if answer["should_shut_down"]:
            self._clean_epoch, self.process = process.epoch, None
        elif self.failed >= set(self.directories):
            self.kill()

    # Metadata

    def fetch(self) -> None:
        """Read the metadata of the controller."""
        if self.process is not None:
            self._ask(read_committed, self._fetched)

    def _fetched(self, answer: MetadataLog | None) -> None:
        if answer is not None and answer.end_offset > self.view.end_offset:
            self.view = answer

    def work(self) -> None:
        """Do what follows from the metadata: change ISRs, assign directories, get producer ids."""
        process, random = self.process, self._cluster.scheduler.random
        if process is None or process.epoch == NO_EPOCH or process.is_fenced:
            return
        image, epoch = self.view.image, process.epoch
        wanted = tuple(self._isr_changes(image))
        if wanted:
            request = events.AlterPartition(self.id, epoch, wanted)
            self._submit(request, epoch)
        if len(self.directories) > 1 and (assigned := self._unassigned(image)):
            self._submit(quorum_events.AssignReplicasToDirs(self.id, epoch, assigned), epoch)
        if random.random() < 0.1:
            self._submit(events.AllocateProducerIds(self.id, epoch), epoch)

    def _submit(self, request: events.Event, epoch: int) -> None:
        self._ask(self._judged(epoch, lambda one: one.submit(request)), lambda _answer: None)

    def _judged(self, epoch: int, work: Work) -> Work:
        """Return a request whose answer is checked where it is given."""

        async def judged(controller: KRaftController) -> Any:
            known = controller.cluster.brokers.get(self.id)
            is_registered = known is not None and known.epoch == epoch
            answer = await work(controller)
            self._cluster.metadata.answers_broker(self.id, epoch, is_registered=is_registered, answer=answer)
            return answer

        return judged

    def _isr_changes(self, image: MetadataImage) -> list[events.IsrChange]:
        changes = []
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                if partition.leader == self.id and (isr := self._wanted_isr(image, partition)) != partition.isr:
                    epochs = tuple(image.brokers[member].broker_epoch for member in isr)
                    name = TopicPartition(topic.name, partition.partition_id)
                    changes.append(
                        events.IsrChange(
                            name, partition.leader_epoch, isr, partition.partition_epoch, isr_epochs=epochs
                        )
                    )
        return changes

    def _wanted_isr(self, image: MetadataImage, partition: PartitionRecord) -> tuple[int, ...]:
        """Return the replicas that follow: all that run, but for one now and then which is slow."""
        cluster = self._cluster
        able = [
            replica
            for replica in partition.replicas
            if replica in image.brokers
            and not image.brokers[replica].fenced
            and not image.brokers[replica].in_controlled_shutdown
            and (replica == self.id or cluster.brokers[replica].is_in_service)
        ]
        if cluster.faults.is_on and len(able) > 1 and cluster.scheduler.random.random() < 0.1:
            slow = cluster.scheduler.random.choice(able)
            able = [broker for broker in able if broker == self.id or broker != slow]
        return tuple(able)

    def _unassigned(self, image: MetadataImage) -> dict[TopicPartition, UUID]:
        """Return the replicas of this broker without a directory, and a directory for each."""
        found = {}
        for topic in image.topics.values():
            for partition in topic.partitions.values():
                places = zip(partition.replicas, partition.directories, strict=False)
                if (self.id, UNASSIGNED_DIRECTORY) in places:
                    name = TopicPartition(topic.name, partition.partition_id)
                    found[name] = self._cluster.scheduler.random.choice(self.directories)
        return found


async def _end_connection(controller: KRaftController, event: quorum_events.HeartbeatConnectionEnded) -> None:
    work = controller.heartbeat_connection_ended(event)
    if work is not None:
        await work


async def read_committed(controller: KRaftController) -> MetadataLog:
    """Return what a controller has committed and applied, be it active or a standby."""
    return controller.committed
