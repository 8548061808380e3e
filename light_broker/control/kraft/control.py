"""Control plane of a broker in KRaft mode: it follows the metadata log, and asks the active controller for changes.

    controllers ── metadata log ──► image ──► view, roles of partitions, ACLs, users
    broker ── BrokerRegistration, BrokerHeartbeat, AlterPartition, AllocateProducerIds, AssignReplicasToDirs, Envelope ──► active controller

A start reads the metadata, registers, takes the roles of its partitions while it is fenced, and then asks to serve. Source: BrokerServer,
BrokerMetadataPublisher and BrokerLifecycleManager of Kafka 4.3.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from kafka_metadata.described_quotas import describe_client_quotas
from kafka_metadata.failures import MetadataError
from kafka_metadata.followed_acls import FollowedAcls
from kafka_metadata.image import MetadataImage
from kafka_metadata.security_records import scram_configs_of, scram_credentials_of
from kafka_node.authorization.acl_requests import describe_acls, describe_refused
from kafka_node.configs.layered_settings import Settings
from kafka_node.context import RequestContext
from kafka_node.scram_requests import describe_users
from kafka_node.security.settings import SecurityProtocol
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode, Failure
from kafka_wire.failures import WireError
from kafka_wire.net.client import NodeSettings
from kafka_wire.sasl.scram_keys import SCRAM_MECHANISMS
from kafka_wire.topic_partition import TopicPartition
from light_broker.control.alter_partition import alter_partition_body, check, isr_answer
from light_broker.control.creation import CREATION_WAIT_S, with_defaults
from light_broker.control.kraft.controllers import Controllers
from light_broker.control.kraft.directories import DirectoryReports, unreported
from light_broker.control.kraft.envelopes import VERSIONS as ENVELOPE_VERSIONS
from light_broker.control.kraft.envelopes import envelope, opened
from light_broker.control.kraft.followed_log import FollowedLog
from light_broker.control.kraft.heartbeats import Heartbeats
from light_broker.control.kraft.observer import Observer, Reader
from light_broker.control.kraft.options import KRaftOptions
from light_broker.control.kraft.registration import feature_problem, registration_body
from light_broker.control.kraft.roles import role_changes, stray_logs
from light_broker.control.kraft.views import Views
from light_broker.control.port import BrokerSide, ControlPlaneError, IsrAnswer, IsrProposal, ProducerIdBlock
from light_broker.core.metadata_view import NO_EPOCH, BrokerView, MetadataView

log = logging.getLogger(__name__)

REQUEST_TIMEOUT_MS = 30_000
"""Time for a request to the controller, with its repetitions (Kafka's request.timeout.ms)."""
REGISTRATION_RETRY_S = 0.5
"""Pause before a registration is tried again: the session of an earlier process with this id may not have expired."""
SHUTDOWN_TIMEOUT_S = 300.0
"""Time for a controlled shutdown (BrokerServer.shutdown)."""

FORWARDED: Mapping[ApiKey, VersionRange] = {
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.UNREGISTER_BROKER: (0, 0),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
}
"""Requests that the active controller answers as the client's principal, with the versions of Kafka 4.3."""
DESCRIBED: Mapping[ApiKey, VersionRange] = {
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
}
"""Requests that this broker answers from its image."""
NO_AUTHORIZER = Failure(ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the control plane gets from the process. The logs are open when it starts."""

    broker: Callable[[], BrokerView]
    """This broker as clients see it."""
    settings: Callable[[], Settings]
    has_authorizer: bool
    protocols: Mapping[str, SecurityProtocol]
    """By listener."""
    node_settings: NodeSettings
    """Connections to controllers."""
    directory_ids: Callable[[], Collection[UUID]]
    """Log directories that are online."""
    previous_epoch: Callable[[], int | None]
    """The broker's epoch at its last clean shutdown, where that is known."""
    logs: Callable[[], Iterable[tuple[TopicPartition, UUID | None]]]
    """The logs in the directories, with the ids of their topics."""
    mark_stray: Callable[[TopicPartition], Awaitable[None]]
    directory_id: Callable[[TopicPartition], UUID | None]
    """Directory of a partition's log."""


class KRaftControl:
    """Implements ControlPlane."""

    def __init__(self, options: KRaftOptions, cluster_id: str, broker_id: int, parts: Parts) -> None:
        self.cluster_id = cluster_id
        self.broker_epoch = NO_EPOCH
        self._options = options
        self._broker_id = broker_id
        self._parts = parts
        self._incarnation_id = uuid4()
        self._side: BrokerSide | None = None
        self._followed = FollowedLog()
        self._controllers = Controllers(options.voters, options.servers, parts.node_settings)
        self._observer = Observer(self._controllers, self._followed, self._reader(), self._metadata_changed)
        self._heartbeats = Heartbeats(
            self._send_heartbeat,
            interval_s=options.heartbeat_interval_ms / 1000,
            body=self._heartbeat_body,
            offline_directories=lambda: self._offline,
        )
        self._reports = DirectoryReports(self._send_report)
        self._views = Views(cluster_id, broker_id)
        self._acls = FollowedAcls()
        self._image = MetadataImage()
        """The image whose roles are taken."""
        self._offset = -1
        """Offset of the last metadata record that has taken effect in this broker."""
        self._offline: set[UUID] = set()
        self._loaded = asyncio.Event()
        self._takes_roles = False
        self._lock = asyncio.Lock()
        self._news = asyncio.Event()
        """Set by the next change of the metadata, and then replaced."""
        self._failure: asyncio.Future[None] | None = None
        self._refusal = ""
        """Why the last registration was refused."""
        self._tasks: list[asyncio.Task[None]] = []

    def _reader(self) -> Reader:
        options = self._options
        return Reader(
            cluster_id=self.cluster_id,
            broker_id=self._broker_id,
            directory_id=lambda: min(self._parts.directory_ids(), default=UUID(int=0)),
            request_timeout_ms=options.request_timeout_ms,
            retry_backoff_ms=options.retry_backoff_ms,
            fetch_max_bytes=options.fetch_max_bytes,
            fetch_snapshot_max_bytes=options.fetch_snapshot_max_bytes,
        )

    @property
    def forwarded(self) -> Mapping[ApiKey, VersionRange]:
        """Requests of clients that `forward` answers."""
        return {**FORWARDED, **DESCRIBED}

    @property
    def of_brokers(self) -> Mapping[ApiKey, VersionRange]:
        """No requests: controllers of KRaft mode send none to brokers."""
        return {}

    @property
    def view(self) -> MetadataView:
        """The current metadata."""
        return self._views.view

    # Start and end

    async def start(self, broker: BrokerSide) -> None:
        """Read the metadata, register, take the roles, and wait until the controller lets this broker serve."""
        self._side = broker
        self._failure = asyncio.get_running_loop().create_future()
        self._begin(self._observe(), "follow the metadata log")
        await self._in_time(self._loaded.wait(), lambda: f"no metadata from the controllers: {self._observer.failure}")
        await self._in_time(self._register(), lambda: self._refusal or self._observer.failure)
        await self._remove_strays()
        self._takes_roles = True
        await self._take_over()
        self._begin(self._heartbeats.run(), "heartbeats")
        self._begin(self._reports.run(), "directories of replicas")
        await self._unless_failed(self._heartbeats.is_caught_up.wait())
        self._heartbeats.serve()
        await self._unless_failed(self._until_alive())

    def _begin(self, work: Awaitable[None], name: str) -> None:
        self._tasks.append(asyncio.ensure_future(work))
        self._tasks[-1].set_name(name)

    async def _in_time(self, work: Awaitable[object], reason: Callable[[], str]) -> None:
        """Wait for a step of the start. Raises ControlPlaneError after initial.broker.registration.timeout.ms."""
        timeout_s = self._options.registration_timeout_ms / 1000
        try:
            await asyncio.wait_for(self._unless_failed(work), timeout_s)
        except TimeoutError:
            message = f"The broker could not register within {timeout_s:g} s: {reason()}"
            raise ControlPlaneError(ErrorCode.REQUEST_TIMED_OUT, message) from None

    async def _unless_failed(self, work: Awaitable[object]) -> None:
        """Wait for something that the metadata log brings. Raises what has ended the observer."""
        assert self._failure is not None
        waiting: asyncio.Future[object] = asyncio.ensure_future(work)
        ends: set[asyncio.Future[Any]] = {waiting, self._failure}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if self._failure.done():
                self._failure.result()
            await waiting
        finally:
            waiting.cancel()

    async def _observe(self) -> None:
        assert self._failure is not None
        try:
            await self._observer.run()
        except (MetadataError, WireError, ControlPlaneError) as error:
            message = f"The metadata of the cluster cannot be applied: {error}"
            self._failure.set_exception(ControlPlaneError(ErrorCode.UNKNOWN_SERVER_ERROR, message))

    async def failed(self) -> None:
        """Wait until the metadata cannot be applied any more."""
        assert self._failure is not None
        await asyncio.shield(self._failure)

    async def controlled_shutdown(self) -> None:
        """Let the controller move the leaders of this broker."""
        if self.broker_epoch == NO_EPOCH:
            return
        self._heartbeats.stop_serving()
        try:
            await asyncio.wait_for(self._heartbeats.may_stop.wait(), SHUTDOWN_TIMEOUT_S)
        except TimeoutError:
            message = f"The controller did not move all leaders in {SHUTDOWN_TIMEOUT_S:g} s."
            raise ControlPlaneError(ErrorCode.REQUEST_TIMED_OUT, message) from None
        log.info("Controlled shutdown is complete", extra={"broker": self._broker_id})

    async def close(self) -> None:
        """End the tasks and the connections."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failure is not None and self._failure.done() and not self._failure.cancelled():
            self._failure.exception()  # It was raised by `start` or `failed`, or the process ends for another reason.
        await self._controllers.close()

    # Registration and heartbeats

    async def _register(self) -> None:
        while True:
            body = registration_body(
                self._parts.broker(),
                self._parts.protocols,
                cluster_id=self.cluster_id,
                incarnation_id=self._incarnation_id,
                directories=self._parts.directory_ids(),
                previous_epoch=self._parts.previous_epoch(),
            )
            answer = await self._call(ApiKey.BROKER_REGISTRATION, body, (0, 4))
            error = ErrorCode.of(answer["error_code"])
            if error is ErrorCode.NONE:
                self.broker_epoch = answer["broker_epoch"]
                extra = {"broker": self._broker_id, "broker_epoch": self.broker_epoch}
                log.info("Registered the broker with the controllers", extra=extra)
                return
            self._refused(error)
            await asyncio.sleep(REGISTRATION_RETRY_S)

    def _refused(self, error: ErrorCode) -> None:
        levels = {name: record.feature_level for name, record in self._followed.applied.image.features.items()}
        problem = feature_problem(levels) if error is ErrorCode.UNSUPPORTED_VERSION else None
        message = f"The controller answered {error.name}: {problem or error.message}"
        if message != self._refusal:
            log.warning("The controller refused the registration; retrying", extra={"error": message})
        self._refusal = message

    def _heartbeat_body(self) -> Body:
        return {
            "broker_id": self._broker_id,
            "broker_epoch": self.broker_epoch,
            "current_metadata_offset": self._offset,
        }

    async def _send_heartbeat(self, body: Body) -> Body:
        return await self._call(ApiKey.BROKER_HEARTBEAT, body, (0, 2), self._options.heartbeat_interval_ms * 2)

    async def _send_report(self, body: Body) -> Body:
        request = {**body, "broker_id": self._broker_id, "broker_epoch": self.broker_epoch}
        return await self._call(ApiKey.ASSIGN_REPLICAS_TO_DIRS, request, (0, 0))

    async def log_directory_failed(self, directory_id: UUID | None, _partitions: Iterable[TopicPartition]) -> None:
        """Report a failed log directory with the next heartbeat, which is sent now (KIP-858)."""
        if directory_id is not None:
            self._offline.add(directory_id)
            self._heartbeats.notify()

    # Metadata

    async def _metadata_changed(self) -> None:
        if self._followed.is_caught_up:
            self._loaded.set()
        if self._takes_roles:
            await self._take_over()

    async def _take_over(self) -> None:
        """Let the broker follow the image: the view first, then the roles of partitions."""
        async with self._lock:
            followed = self._followed.applied
            before, image = self._image, followed.image
            if image is not before:
                view = self._views.follow(followed, self._followed.kraft_version)
                self._require_side().set_view(view)
                self._set_users(before, image)
                await self._take_roles(before, image, view)
                self._image = image
                self._news.set()
                self._news = asyncio.Event()
            self._offset = followed.end_offset - 1

    def _set_users(self, before: MetadataImage, image: MetadataImage) -> None:
        side = self._require_side()
        is_first = not self._image.features
        if is_first or image.acls is not before.acls:
            for record in self._acls.follow(image.acls):
                message = "Unknown kind of ACL; denying access to its resource for all but super users"
                log.error(message, extra={"path": str(record.id)})
            side.set_acls(self._acls.acls)
        if is_first or image.scram_credentials is not before.scram_credentials:
            side.set_credentials(
                {name: scram_credentials_of(image, mechanism) for name, mechanism in SCRAM_MECHANISMS.items()}
            )

    async def _take_roles(self, before: MetadataImage, image: MetadataImage, view: MetadataView) -> None:
        side, changes = self._require_side(), role_changes(before, image, self._broker_id)
        for partition in changes.deleted:
            await side.stop(partition, delete=True)
        for role in changes.taken:
            state = view.partition(role.partition)
            assert state is not None, role
            take = side.lead if role.leads else side.follow
            await take(role.partition, role.topic_id, state, is_new=role.is_new)
        hosted = [role.partition for role in changes.taken]
        self._reports.add(unreported(image, self._broker_id, hosted, self._parts.directory_id))

    async def _remove_strays(self) -> None:
        """Take logs out whose topics were deleted or moved away while the broker was stopped."""
        for partition in stray_logs(self._followed.applied.image, self._parts.logs(), self._broker_id):
            log.warning(
                "No assignment explains a log; renaming its folder to -stray", extra={"partition": str(partition)}
            )
            await self._parts.mark_stray(partition)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self._news.wait()

    async def _until_alive(self) -> None:
        """Wait until the broker is unfenced, also in its own metadata, so that clients of it see it."""
        await self._heartbeats.is_unfenced.wait()
        await self._until(lambda: self.view.is_alive(self._broker_id))

    # Requests to the controller

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Propose an ISR."""

        async def body(version: int) -> Body:
            return alter_partition_body(self._broker_id, self.broker_epoch, proposal, version)

        answer = await self._controllers.call(ApiKey.ALTER_PARTITION, body, (2, 3), timeout_ms=REQUEST_TIMEOUT_MS)
        return isr_answer(answer, self.view.partition(proposal.partition))

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Get a block of producer ids."""
        request = {"broker_id": self._broker_id, "broker_epoch": self.broker_epoch}
        answer = await self._call(ApiKey.ALLOCATE_PRODUCER_IDS, request, (0, 0))
        check(answer["error_code"])
        return ProducerIdBlock(answer["producer_id_start"], answer["producer_id_len"])

    async def create_topics(self, request: Body) -> Body:
        """Let the controller create topics with this broker's defaults and rights."""
        answer = await self._call(ApiKey.CREATE_TOPICS, with_defaults(request, self._parts.settings()), (2, 7))
        made = {topic["name"] for topic in answer["topics"] if topic["error_code"] == ErrorCode.NONE}
        with suppress(TimeoutError):
            await asyncio.wait_for(self._until(lambda: made <= self.view.topics.keys()), CREATION_WAIT_S)
        return answer

    async def forward(self, key: ApiKey, context: RequestContext, body: Body) -> Body:
        """Answer a client's request: from the image, or by the controller, in an Envelope."""
        if key is ApiKey.DESCRIBE_ACLS:
            return (
                describe_acls(self._acls.acls, body) if self._parts.has_authorizer else describe_refused(NO_AUTHORIZER)
            )
        if key is ApiKey.DESCRIBE_CLIENT_QUOTAS:
            return describe_client_quotas(self._image, body)
        if key is ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS:
            return describe_users(body, scram_configs_of(self._image))
        return opened(key, context, await self._call(ApiKey.ENVELOPE, envelope(key, context, body), ENVELOPE_VERSIONS))

    async def _call(
        self, key: ApiKey, body: Body, versions: VersionRange, timeout_ms: int = REQUEST_TIMEOUT_MS
    ) -> Body:
        return await self._controllers.call(key, body, versions, timeout_ms=timeout_ms)

    def _require_side(self) -> BrokerSide:
        assert self._side is not None, "start comes first"
        return self._side
