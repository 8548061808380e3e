"""Process of a broker: its logs and replicas, its control plane, its listeners, and HTTP endpoints for probes and metrics.

    open the files ──► listen ──► metadata, partitions ──► serve … stop ──► close the listeners ──► close the logs, marked as clean

Connections are accepted while the logs are loaded; their requests wait until the broker serves.
"""

import asyncio
import gc
import logging
import socket
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from uuid import UUID

from prometheus_client import CollectorRegistry

from kafka_node.authorization.authorizer import Rules
from kafka_node.authorization.guard import Guard
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.http_probes import LightProbeServer
from kafka_node.listener_limits import DynamicLimits, listener_limits, request_channel
from kafka_node.network_metrics import NetworkMetrics
from kafka_node.security.endpoints import Endpoint
from kafka_node.security.listeners import connection_settings, demands_of_listener
from kafka_node.security.renewal import Renewal
from kafka_wire import ApiKey, schema
from kafka_wire.net.client import NodeSettings
from kafka_wire.net.request_channel import RequestChannel
from kafka_wire.net.sasl_server import AUTHENTICATE_VERSIONS, HANDSHAKE_VERSIONS
from kafka_wire.net.server import Buffers, Server, ServerLimits, serve
from light_broker.control.kraft.options import KRaftOptions
from light_broker.control.port import ControlPlane, ControlPlaneError
from light_broker.core.fetch_sessions import FetchSessions
from light_broker.core.groups.settings import group_settings
from light_broker.core.log_jobs import log_manager_settings
from light_broker.core.metadata_view import BrokerView, ConfigResource, MetadataView
from light_broker.core.metadata_view import Endpoint as ClientEndpoint
from light_broker.core.partition import IsrRules
from light_broker.core.replica_fetch import replica_fetch_settings
from light_broker.shell.apis.table import APIS
from light_broker.shell.binding import naming_address
from light_broker.shell.broker import Broker
from light_broker.shell.control_planes import Host, OpenedControl, open_control
from light_broker.shell.control_side import ControlSide
from light_broker.shell.dispatch import Dispatch, needs
from light_broker.shell.groups.coordinators import GroupCoordinators
from light_broker.shell.known_users import CurrentAcls, CurrentCredentials
from light_broker.shell.logs.directory import FailedDirectory
from light_broker.shell.logs.manager import LogManager
from light_broker.shell.producer_ids import ProducerIds
from light_broker.shell.replicas.fetcher import FetcherContext
from light_broker.shell.replicas.fetchers import ReplicaFetchers, fetcher_settings
from light_broker.shell.replicas.manager import ReplicaManager
from light_broker.shell.replicas.throttles import ReplicationThrottles
from light_broker.shell.settings_reading import BrokerSettings
from light_broker.shell.topic_settings import TopicSettings

log = logging.getLogger(__name__)

CLOSE_GRACE_MS = 1_000
"""Time for the responses to running requests when the process stops. A fetch that waits for records is cut off: clients repeat it."""

ISR_CHECKS_PER_LAG = 2
"""Lagging followers are detected at half of replica.lag.time.max.ms, as in Kafka (ReplicaManager.startup)."""

MIN_ISR_CHECK_MS = 100
"""Shortest time between two such checks: Kafka permits a replica.lag.time.max.ms of 0."""

AUTHENTICATION = {ApiKey.SASL_HANDSHAKE: HANDSHAKE_VERSIONS, ApiKey.SASL_AUTHENTICATE: AUTHENTICATE_VERSIONS}


def inter_broker_settings(settings: BrokerSettings) -> NodeSettings:
    """Return the settings of connections to the listener of brokers. Raises ValueError for TLS files that cannot be used."""
    listener = settings.inter_broker_listener
    protocol = next(endpoint.security_protocol for endpoint in settings.listeners if endpoint.listener == listener)
    return connection_settings(settings.security[listener], protocol, _base_settings(settings))


def controller_settings(settings: BrokerSettings, options: KRaftOptions) -> NodeSettings:
    """Return the settings of connections to KRaft controllers. Raises ValueError for TLS files that cannot be used."""
    return connection_settings(options.security, options.protocol, _base_settings(settings))


def _base_settings(settings: BrokerSettings) -> NodeSettings:
    return NodeSettings(client_id=f"light-broker-{settings.values.node_id}-to-controller")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """What the properties file does not have."""

    metrics_host: str = "127.0.0.1"
    metrics_port: int | None = None
    """None: no HTTP endpoints."""


class BrokerProcess:
    """One broker, standalone or in a cluster: `run` serves until `stop` is called."""

    def __init__(self, settings: BrokerSettings, options: ProcessOptions) -> None:
        """Read the files of TLS, and resolve names of hosts. Raises ValueError for files and SettingError for values that cannot be used."""
        self.settings = settings
        self.options = options
        self._acls, self._credentials = CurrentAcls(), CurrentCredentials()
        self._demands = {
            listener.listener: demands_of_listener(
                settings.security[listener.listener], listener.security_protocol, self._credentials
            )
            for listener in settings.listeners
        }
        self._limits = listener_limits(settings.values, [listener.listener for listener in settings.listeners])
        self._groups = group_settings(settings.values)
        self._renewal = Renewal((demand.tls, settings.security[name].tls) for name, demand in self._demands.items())
        self._servers: dict[str, Server] = {}
        self._registry = CollectorRegistry()
        self._probes: LightProbeServer | None = None
        self._started, self._stopping = asyncio.Event(), asyncio.Event()
        self._broker: Broker | None = None
        self._previous_epoch: int | None = None
        """The broker epoch of the last clean shutdown."""
        self._background: set[asyncio.Task[None]] = set()
        self._inter_broker = inter_broker_settings(settings)
        self._to_controllers = None if settings.kraft is None else controller_settings(settings, settings.kraft)

    @property
    def is_serving(self) -> bool:
        """Whether requests are answered."""
        return self._started.is_set() and not self._stopping.is_set()

    @property
    def ports(self) -> Mapping[str, int]:
        """Bound ports by listener name."""
        return {name: server.port for name, server in self._servers.items()}

    @property
    def metrics_port(self) -> int | None:
        """Bound port of the HTTP endpoints."""
        return None if self._probes is None else self._probes.port

    def stop(self) -> None:
        """Make `run` end gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`.

        Raises StateFileError, BindError, ControlPlaneError, and the LogManager's errors: WrongFolderError, FolderLockedError,
        NoLogDirectoryError.
        """
        schema.names()  # loads the tables now, since the first request would block the event loop for it
        async with AsyncExitStack() as stack:
            opened = await self._open_control()
            control = opened.control
            stack.push_async_callback(control.close)
            broker = self._make(opened)
            await self._listen_for_probes(stack)
            await self._open_listeners(stack, broker)
            self._previous_epoch = await self.logs.open_all()
            stack.push_async_callback(self._close_logs, control)
            stack.push_async_callback(broker.replicas.close)
            stack.push_async_callback(broker.groups.close)
            stack.push_async_callback(self._replicate(broker).close)
            if opened.state_file is not None:
                opened.state_file.count_start()
            limits = DynamicLimits(self._limits, self._servers)
            stack.callback(limits.close)
            side = ControlSide(broker, self.logs, self.settings.values, self._acls, self._credentials, limits)
            stack.push_async_callback(control.close)
            await control.start(side)
            stack.push_async_callback(self._close_listeners)
            stack.push_async_callback(self._shut_down, control)
            await self._serve()

    async def _open_control(self) -> OpenedControl:
        host = Host(
            settings=self.settings,
            own_view=self._own_view,
            broker=lambda: self.broker,
            previous_epoch=lambda: self._previous_epoch,
            to_brokers=self._inter_broker,
            to_controllers=self._to_controllers,
        )
        return await open_control(host)

    def _make(self, opened: OpenedControl) -> Broker:
        values, rules, control = self.settings.values, self.settings.authorizer, opened.control
        self.logs = LogManager(
            self.settings.log_directories,
            log_manager_settings(values),
            cluster_id=control.cluster_id,
            node_id=values.node_id,
            partition_settings=lambda topic: self._topic(topic).partition,
            on_failed_directory=self._directory_failed,
            high_watermarks=lambda: dict(self.broker.replicas.high_watermarks().items()),
            meta_version=opened.meta_version,
        )
        replicas = ReplicaManager(
            values.node_id,
            self.logs,
            control,
            view=lambda: self.broker.view,
            isr_rules=self._isr_rules,
        )
        self._control = control
        self._broker = Broker(
            settings=values,
            view=MetadataView(control.cluster_id),
            control=control,
            logs=self.logs,
            replicas=replicas,
            producer_ids=ProducerIds(control),
            fetch_sessions=FetchSessions(values.number("max.incremental.fetch.session.cache.slots")),
            groups=GroupCoordinators(replicas, self._groups, view=lambda: self.broker.view),
            guard=None if rules is None else self._guard(opened, rules),
        )
        return self._broker

    def _replicate(self, broker: Broker) -> ReplicaFetchers:
        """Let the broker fetch what it follows, from leaders on the listener of brokers."""

        def address_of(broker_id: int) -> ClientEndpoint | None:
            known = broker.view.brokers.get(broker_id)
            return None if known is None else known.endpoints.get(self.settings.inter_broker_listener)

        throttles = ReplicationThrottles(
            self.settings.values.node_id, lambda: broker.view, lambda: broker.settings, broker.replicas.now_ms
        )
        broker.replicas.reads.throttle_by(throttles)
        fetchers = ReplicaFetchers(
            FetcherContext(
                broker_id=self.settings.values.node_id,
                broker_epoch=lambda: broker.control.broker_epoch,
                settings=lambda: replica_fetch_settings(broker.settings),
                address_of=address_of,
                connection=fetcher_settings(self._inter_broker, broker.settings),
                writes=broker.replicas.follower_writes,
                now_ms=broker.replicas.now_ms,
                throttles=throttles,
            )
        )
        broker.replicas.replicate_by(fetchers)
        return fetchers

    def _guard(self, opened: OpenedControl, rules: Rules) -> Guard:
        return Guard(self._acls, rules, self._topic_name, {**needs(APIS, opened.control.forwarded), **opened.needs})

    def _topic_name(self, topic_id: UUID) -> str | None:
        return self.broker.view.topic_name(topic_id)

    @property
    def broker(self) -> Broker:
        """The broker."""
        assert self._broker is not None
        return self._broker

    # Listeners

    async def _listen_for_probes(self, stack: AsyncExitStack) -> None:
        if self.options.metrics_port is None:
            return
        self._probes = LightProbeServer(self._registry, self._not_ready_reason)
        with naming_address("--metrics-port", self.options.metrics_host, self.options.metrics_port):
            await self._probes.listen(self.options.metrics_host, self.options.metrics_port)
        stack.push_async_callback(self._probes.close)

    def _not_ready_reason(self) -> str | None:
        if self._stopping.is_set():
            return "the broker is stopping"
        return None if self._started.is_set() else "the broker is starting"

    async def _open_listeners(self, stack: AsyncExitStack, broker: Broker) -> None:
        buffers, channel = Buffers(ServerLimits().max_buffered_bytes), request_channel(self.settings.values)
        stack.push_async_callback(self._close_listeners)
        for endpoint in self.settings.listeners:
            await self._open_listener(broker, endpoint, buffers, channel)
        self._registry.register(NetworkMetrics(self._servers, channel, self._limits.quotas))

    async def _open_listener(
        self, broker: Broker, endpoint: Endpoint, buffers: Buffers, channel: RequestChannel
    ) -> None:
        demands = self._demands[endpoint.listener]
        authentication = AUTHENTICATION if demands.sasl is not None else {}
        dispatch = Dispatch(
            broker,
            endpoint.listener,
            self._started,
            authentication=authentication,
            of_controller=self._control.of_brokers if endpoint.listener == self.settings.inter_broker_listener else {},
        )
        is_protected = endpoint.listener == self.settings.inter_broker_listener and len(self.settings.listeners) > 1
        with naming_address("listeners", endpoint.host, endpoint.port):
            self._servers[endpoint.listener] = await serve(
                dispatch.handle,
                endpoint.host,
                endpoint.port,
                limits=self._limits.by_listener[endpoint.listener],
                large_handler=dispatch.handle,
                starts_at_once=dispatch.starts_at_once,
                ssl=demands.tls,
                sasl=demands.sasl,
                principal_rules=demands.principal_rules,
                buffers=buffers,
                channel=channel,
                quotas=self._limits.quotas,
                is_protected=is_protected,
            )

    async def _close_listeners(self) -> None:
        servers, self._servers = self._servers, {}
        await asyncio.gather(*(server.close(CLOSE_GRACE_MS) for server in servers.values()))

    def _own_view(self) -> BrokerView:
        """Return this broker as clients see it; port 0 is the bound one, an empty host the name of this machine."""
        endpoints = {
            listener.listener: ClientEndpoint(
                listener.host or socket.getfqdn(),
                listener.port if listener.port > 0 else self._servers[listener.listener].port,
            )
            for listener in self.settings.advertised_listeners
        }
        rack = self.settings.values.text("broker.rack")
        return BrokerView(self.settings.values.node_id, self._control.broker_epoch, rack, endpoints)

    # Running

    async def _serve(self) -> None:
        """Serve until `stop`, or until the last log directory fails."""
        self._started.set()
        gc.freeze()  # Modules and loaded logs stay: a collection over them would block the event loop.
        log.info("Started the broker", extra={"broker": self.settings.values.node_id, "listeners": dict(self.ports)})
        tasks = {
            asyncio.create_task(self._stopping.wait(), name="stop"),
            asyncio.create_task(self.logs.run(), name="logs"),
            asyncio.create_task(self._shrink_isrs(), name="lagging followers"),
            asyncio.create_task(self.broker.groups.run(), name="expired offsets"),
            asyncio.create_task(self._renewal.follow(), name="renew certificates"),
            asyncio.create_task(self._control.failed(), name="control plane"),
        }
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()
        finally:
            self._stopping.set()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        log.info("Stopping the broker", extra={"broker": self.settings.values.node_id})

    async def _shrink_isrs(self) -> None:
        while True:
            lag_ms = self.broker.settings.number("replica.lag.time.max.ms")
            await asyncio.sleep(max(lag_ms / ISR_CHECKS_PER_LAG, MIN_ISR_CHECK_MS) / 1000)
            self.broker.replicas.shrink_isrs()

    async def _shut_down(self, control: ControlPlane) -> None:
        """Move the leaders away while this broker still serves. If that fails it stops all the same, as in Kafka."""
        try:
            await control.controlled_shutdown()
        except ControlPlaneError as error:
            log.warning("Stopping without a controlled shutdown", extra={"error": str(error)})

    async def _close_logs(self, control: ControlPlane) -> None:
        await self.logs.close(control.broker_epoch)

    def _directory_failed(self, failed: FailedDirectory) -> None:
        self.broker.replicas.log_directory_failed(failed.partitions)
        task = asyncio.create_task(self._control.log_directory_failed(failed.directory_id, failed.partitions))
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    # Settings

    def _topic(self, name: str) -> TopicSettings:
        overrides = self.broker.view.dynamic_configs(ConfigResource(ConfigResourceType.TOPIC, name))
        return TopicSettings(overrides, self.broker.settings)

    def _isr_rules(self, topic: str) -> IsrRules:
        settings = self._topic(topic)
        return IsrRules(settings.number("min.insync.replicas"), self.broker.settings.number("replica.lag.time.max.ms"))
