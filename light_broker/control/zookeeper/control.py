"""Control plane of a broker in ZooKeeper mode: it registers in ZooKeeper, obeys the controller, and asks it for changes.

    ZooKeeper ── configs, ACLs, SCRAM users ──► view, ACLs, credentials
    controller ── LeaderAndIsr, StopReplica, UpdateMetadata ──► roles of partitions, view
    broker ── AlterPartition, AllocateProducerIds, CreateTopics, ControlledShutdown ──► controller

After a lost session the broker goes on serving, opens another one, and registers again with another epoch. Source: KafkaServer and
KafkaController of Kafka 3.9.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from uuid import UUID

from kafka_node.authorization.guard import Ask
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.context import RequestContext
from kafka_node.security.settings import SecurityProtocol
from kafka_node.versions import VersionRange
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import NodeSettings
from kafka_wire.topic_partition import TopicPartition
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import EntityType
from kafka_zookeeper.session import SessionState, ZooKeeperError, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings
from kafka_zookeeper.writes import Create
from light_broker.control.creation import CREATION_WAIT_S, with_defaults
from light_broker.control.port import BrokerSide, ControlPlaneError, IsrAnswer, IsrProposal, ProducerIdBlock
from light_broker.control.zookeeper.config_changes import ConfigChanges
from light_broker.control.zookeeper.controller_client import ControllerClient
from light_broker.control.zookeeper.controller_requests import VERSIONS, ControllerRequests
from light_broker.control.zookeeper.entity_configs import (
    brokers_resources,
    read_all_topics,
    read_configs,
    resource_of,
    topic_resources,
)
from light_broker.control.zookeeper.notifications import Notifications, changed_entities
from light_broker.control.zookeeper.options import ZooKeeperOptions
from light_broker.control.zookeeper.registration import cluster_id, ensure_paths, register
from light_broker.control.zookeeper.state import with_configs
from light_broker.control.zookeeper.users import read_acls, read_credentials
from light_broker.core.metadata_view import (
    NO_EPOCH,
    BrokerView,
    ConfigResource,
    MetadataView,
)

log = logging.getLogger(__name__)

METADATA_WAIT_S = 2.0
"""Longest time from the registration until the controller has sent the metadata and the roles. After it clients get responses as from Kafka, which does not wait."""
RETRY_S = 1.0
"""Pause before another session is opened, or a failed read is repeated."""
SESSION_GRACE_S = 1.0
"""Time in addition to the session's timeout for which a start waits until the znode of an earlier process is gone."""

OF_CONTROLLER: Mapping[ApiKey, VersionRange] = {
    ApiKey.CREATE_TOPICS: (2, 7),
    ApiKey.DELETE_TOPICS: (1, 6),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.UPDATE_FEATURES: (0, 1),
}
"""Requests that only the controller answers: clients find it by Metadata, and are refused here with NOT_CONTROLLER."""
RELAYED: Mapping[ApiKey, VersionRange] = {
    ApiKey.DESCRIBE_ACLS: (1, 3),
    ApiKey.CREATE_ACLS: (1, 3),
    ApiKey.DELETE_ACLS: (1, 3),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
}
"""Requests that clients send to any broker, which the controller answers for this one."""
OWN: Mapping[ApiKey, VersionRange] = {ApiKey.ALTER_CONFIGS: (0, 2), ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1)}
"""Requests whose changes this broker writes to ZooKeeper."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the control plane gets from the process."""

    broker: Callable[[], BrokerView]
    """This broker as clients see it; its epoch is added here."""
    settings: Callable[[], Settings]
    judge: Callable[[RequestContext], Ask]
    listener: str
    """Listener of brokers, on which the controller is asked."""
    protocols: Mapping[str, SecurityProtocol]
    """By listener."""
    node_settings: NodeSettings
    """Connections to the controller."""


class ZooKeeperControl:
    """Implements ControlPlane. `open` connects to ZooKeeper, `start` registers the broker."""

    def __init__(self, options: ZooKeeperOptions, session: ZooKeeperSession, cluster: str, broker_id: int) -> None:
        self._options = options
        self._session = session
        self._broker_id = broker_id
        self.cluster_id = cluster
        self.broker_epoch = NO_EPOCH
        self.view = MetadataView(cluster)
        self._side: BrokerSide | None = None
        self._requests: ControllerRequests | None = None
        self._parts: Parts | None = None
        self._client: ControllerClient | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_closed = False
        self._configured: set[str] = set()
        """Topics whose configs were read."""
        self._news = asyncio.Event()
        """Set by the next change of the metadata or of a role, and then replaced."""
        self._registered = asyncio.Event()
        """Requests of the controller wait for it: before it they are for an earlier process with this broker id."""

    @classmethod
    async def open(cls, options: ZooKeeperOptions, broker_id: int) -> "ZooKeeperControl":
        """Connect, and read the cluster's id. Raises ControlPlaneError."""
        try:
            settings = _session_settings(options)
            await ensure_chroot(settings)
            session = await ZooKeeperSession.connect(settings)
        except (ValueError, ZooKeeperError) as error:
            raise ControlPlaneError(ErrorCode.NETWORK_EXCEPTION, f"Failed to connect to ZooKeeper: {error}") from error
        try:
            return cls(options, session, await cluster_id(session), broker_id)
        except BaseException as error:
            await session.close()
            if isinstance(error, ZooKeeperError):
                raise ControlPlaneError(ErrorCode.NETWORK_EXCEPTION, f"Failed to read ZooKeeper: {error}") from error
            raise

    def connect(self, parts: Parts) -> None:
        """Receive what the process has made since `open`."""
        self._parts = parts
        self._client = ControllerClient(
            self._broker_id, parts.listener, parts.node_settings, lambda: self.view, lambda: self.broker_epoch
        )

    @property
    def forwarded(self) -> Mapping[ApiKey, VersionRange]:
        """Requests of clients that are answered by `forward`."""
        return {**OF_CONTROLLER, **RELAYED, **OWN}

    @property
    def of_brokers(self) -> Mapping[ApiKey, VersionRange]:
        """Requests of the controller, which `forward` answers too."""
        return VERSIONS

    async def start(self, broker: BrokerSide) -> None:
        """Read the configs, ACLs and users, register, and wait for what the controller sends.

        Without it clients would read that a topic does not exist or has no leader, and some ask again only seconds later.
        """
        self._side = broker
        self._requests = ControllerRequests(broker, self, self._broker_id)
        try:
            await ensure_paths(self._session)
            notifications = await self._load(self._session)
            patience_s = self._options.session_timeout_ms / 1000 + SESSION_GRACE_S
            await self._register(patience_s)
        except ZooKeeperError as error:
            raise ControlPlaneError(ErrorCode.NETWORK_EXCEPTION, f"Failed to register in ZooKeeper: {error}") from error
        self._registered.set()
        if not await self._until(self._requests.is_complete, METADATA_WAIT_S):
            message = "Serving before the controller has sent the metadata and the roles of all partitions here"
            log.warning(message, extra={"waited_s": METADATA_WAIT_S})
        self._following = asyncio.create_task(self._follow(notifications), name="follow ZooKeeper")

    async def failed(self) -> None:
        """Wait without end: a lost session is replaced by another one."""
        await asyncio.Event().wait()

    async def close(self) -> None:
        """End the session, which removes the registration. May be called twice."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
        await self._session.close()

    async def controlled_shutdown(self) -> None:
        """Ask the controller to move the leaders of this broker, as often as controlled.shutdown.max.retries."""
        options = self._options
        if not options.shuts_down_controlled or self.broker_epoch == NO_EPOCH:
            return
        done = await self._require_client().shut_down(
            attempts=options.shutdown_retries,
            backoff_s=options.shutdown_backoff_ms / 1000,
            timeout_ms=options.controller_timeout_ms,
        )
        if not done:
            message = f"The controller did not move all leaders in {options.shutdown_retries} attempts."
            raise ControlPlaneError(ErrorCode.REQUEST_TIMED_OUT, message)
        log.info("Controlled shutdown is complete", extra={"broker": self._broker_id})

    # Requests to the controller

    async def alter_partition(self, proposal: IsrProposal) -> IsrAnswer:
        """Propose an ISR to the controller."""
        return await self._require_client().alter_partition(proposal)

    async def allocate_producer_ids(self) -> ProducerIdBlock:
        """Get a block from the controller."""
        return await self._require_client().allocate_producer_ids()

    async def create_topics(self, request: Body) -> Body:
        """Let the controller create topics with this broker's defaults; a failure on the way is one that clients retry."""
        try:
            answer = await self._require_client().create_topics(
                with_defaults(request, self._require_parts().settings())
            )
        except ControlPlaneError as error:
            raise ControlPlaneError(ErrorCode.LEADER_NOT_AVAILABLE, str(error)) from error
        results = [
            {**topic, "error_code": ErrorCode.LEADER_NOT_AVAILABLE}
            if topic["error_code"] == ErrorCode.NOT_CONTROLLER
            else topic
            for topic in answer["topics"]
        ]
        created = {result["name"] for result in results if result["error_code"] == ErrorCode.NONE}
        await self._until(lambda: created <= self.view.topics.keys(), CREATION_WAIT_S)
        return {**answer, "topics": results}

    async def _until(self, is_known: Callable[[], bool], wait_s: float) -> bool:
        """Wait for metadata, and return whether it came."""
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                while not is_known():
                    await self._news.wait()
                return True
        return False

    async def forward(self, key: ApiKey, context: RequestContext, body: Body) -> Body:
        """Answer a request of a client, or of the controller."""
        if key in VERSIONS:
            await self._registered.wait()
            assert self._requests is not None
            answer = await self._requests.handle(key, context.api_version, body)
            self._notify()
            return answer
        parts = self._require_parts()
        if key in OWN:
            changes = ConfigChanges(self._session, self.view, parts.settings())
            is_incremental = key is ApiKey.INCREMENTAL_ALTER_CONFIGS
            return await changes.alter(body, parts.judge(context), incremental=is_incremental)
        # A controller that relays to brokers itself would send the request back here.
        if key in OF_CONTROLLER or context.client_id == parts.node_settings.client_id:
            raise ControlPlaneError(ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER.message)
        return await self._require_client().relay(key, context.api_version, body)

    # Metadata, for the controller's requests

    def own(self) -> BrokerView:
        """Return this broker with its epoch."""
        return replace(self._require_parts().broker(), epoch=self.broker_epoch)

    def publish(self, view: MetadataView) -> None:
        """Replace the metadata."""
        self.view = view
        if self._side is not None:
            self._side.set_view(view)
        self._notify()

    def _notify(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def read_topics(self, names: Collection[str]) -> None:
        """Read the configs of topics that are new to this broker. What ZooKeeper does not return now is read in the next session."""
        self._configured &= self.view.topics.keys() | set(names)
        missing = set(names) - self._configured
        if not missing:
            return
        try:
            self.publish(with_configs(self.view, await read_configs(self._session, topic_resources(missing))))
        except ZooKeeperError as error:
            log.warning("Failed to read configs of topics", extra={"topics": len(missing), "error": str(error)})
        else:
            self._configured |= missing

    async def log_directory_failed(self, _directory_id: UUID | None, partitions: Iterable[TopicPartition]) -> None:
        """Notify the controller of a failed log directory: it asks by LeaderAndIsr which partitions are offline (KIP-112)."""
        if self._requests is not None:
            self._requests.directory_failed(partitions)
        event = Create(paths.LOG_DIR_EVENT_PREFIX, formats.encode_log_dir_event(self._broker_id), sequential=True)
        await self._session.multi([event])

    # Session

    async def _register(self, patience_s: float) -> None:
        parts = self._require_parts()
        self.broker_epoch = await register(self._session, parts.broker(), parts.protocols, patience_s=patience_s)

    async def _load(self, session: ZooKeeperSession) -> Notifications:
        """Read everything, and return the notifications from then on."""
        notifications = Notifications(session)
        await notifications.start()
        await self._read_all_configs(session)
        await self._read_users(session)
        return notifications

    async def _read_all_configs(self, session: ZooKeeperSession) -> None:
        topics = await read_all_topics(session)
        brokers = await read_configs(session, brokers_resources(self._broker_id))
        self._configured = {resource.name for resource in topics}
        self.publish(with_configs(replace(self.view, configs={}), {**topics, **brokers}))

    async def _read_users(self, session: ZooKeeperSession) -> None:
        assert self._side is not None
        self._side.set_acls(await read_acls(session))
        self._side.set_credentials(await read_credentials(session))

    async def _follow(self, notifications: Notifications) -> None:
        """Apply changes until this is cancelled, in one session after another."""
        while True:
            try:
                await notifications.wait()
                await self._take_over(await notifications.new())
            except ZooKeeperError as error:
                if self._session.state is SessionState.LOST:
                    notifications = await self._reconnected()
                else:
                    log.warning("Failed to read changes from ZooKeeper; retrying", extra={"error": str(error)})
                    await asyncio.sleep(RETRY_S)
                    with suppress(ZooKeeperError):
                        notifications = await self._load(self._session)

    async def _take_over(self, new: Mapping[str, list[str]]) -> None:
        if paths.ACL_CHANGES in new or paths.EXTENDED_ACL_CHANGES in new:
            await self._read_users(self._session)
        if paths.CONFIG_CHANGES not in new:
            return
        entities = await changed_entities(self._session, new[paths.CONFIG_CHANGES])
        if entities is None:
            await self._read_all_configs(self._session)
            await self._read_users(self._session)
            return
        named = [resource_of(entity, self._broker_id) for entity in entities]
        resources = [resource for resource in named if isinstance(resource, ConfigResource)]
        self.publish(with_configs(self.view, await read_configs(self._session, resources)))
        self._configured |= {resource.name for resource in resources if resource.type is ConfigResourceType.TOPIC}
        if EntityType.USERS in named:
            await self._read_users(self._session)

    async def _reconnected(self) -> Notifications:
        """Open another session and register in it, as often as needed."""
        while True:
            await self._session.close()
            try:
                self._session = await ZooKeeperSession.connect(_session_settings(self._options))
                notifications = await self._load(self._session)
                await self._register(self._options.session_timeout_ms / 1000 + SESSION_GRACE_S)
            except (
                ValueError,
                ZooKeeperError,
                ControlPlaneError,
            ) as error:  # a ValueError names a TLS file that cannot be read
                log.error("Failed to register in ZooKeeper again; retrying", extra={"error": str(error)})
                await asyncio.sleep(RETRY_S)
            else:
                return notifications

    def _require_parts(self) -> Parts:
        assert self._parts is not None, "connect comes first"
        return self._parts

    def _require_client(self) -> ControllerClient:
        assert self._client is not None, "connect comes first"
        return self._client


def _session_settings(options: ZooKeeperOptions) -> ZooKeeperSettings:
    """Return the settings of one session. TLS files are read for each, so that renewed certificates need no restart. Raises ValueError."""
    security = options.security
    return ZooKeeperSettings(
        options.connect,
        session_timeout_ms=options.session_timeout_ms,
        connect_timeout_ms=options.connect_timeout_ms,
        tls=None if security.tls is None else security.tls.context(),
        set_acl=security.set_acl,
    )
