"""Process of a quorum's node: its files, its listeners, its connections to other nodes, and HTTP endpoints for probes and metrics.

The process elects and replicates; what the log means is the state machine's (`state_machine`), which `steward quorum` adds for the metadata
of a cluster (`shell.kraft`). ACLs and SCRAM users are not applied yet: it refuses to start where these are required.
"""

import asyncio
import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry

from controller_core import model
from controller_core.quorum import elections, rules, voters
from controller_core.quorum.retention import CLEANING_INTERVAL_MS, Retention
from controller_core.shell.front.front import DEFAULT_SERVER_LIMITS, Features, Front, open_front
from controller_core.shell.memory_limit import buffer_bytes
from controller_core.shell.quorum import apis, rehearsal, wire_requests
from controller_core.shell.quorum.directories import (
    StartError,
    check_directories,
    complete_directory_ids,
    lock_directories,
)
from controller_core.shell.quorum.driver import Driver
from controller_core.shell.quorum.metadata_log import METADATA_TOPIC_ID, MetadataLog
from controller_core.shell.quorum.peers import Peers
from controller_core.shell.quorum.raft_metrics import RaftMetrics
from controller_core.shell.quorum.settings import QuorumSettings
from controller_core.shell.quorum.state_machine import MakeStateMachine, Place, StateMachine
from controller_core.shell.quorum.storage import Storage
from kafka_log.errors import CorruptLogError, LogError, UnreadableFileError
from kafka_log.format import roll, text_files
from kafka_node.freed_memory import keep_freed_memory
from kafka_node.listener_limits import DynamicLimits, listener_limits
from kafka_node.probes import ProbeServer
from kafka_node.security import listeners
from kafka_node.security.credentials import CredentialSource
from kafka_node.security.renewal import Renewal
from kafka_wire import codec, records
from kafka_wire.net.client import NodeSettings
from kafka_wire.net.server import Buffers
from kafka_wire.sasl import scram_decoy, scram_keys

METADATA_TOPIC = wire_requests.LogTopic("__cluster_metadata", METADATA_TOPIC_ID)

SHUTDOWN_TIMEOUT_MS = 5_000
"""Time for handing over to another leader (Kafka's default for its quorum)."""

CLOSE_GRACE_MS = 500
"""Time for sending the last responses; at that time all requests are answered or refused."""

CONNECT_INTERVAL_S = 1.0
"""Between two checks of the connections to the other voters: the shortest time between two elections with Kafka's default timeouts."""

LARGE_BUFFER_BYTES = 2 * rules.RESPONSE_BYTES_MAX
"""Size up to which freed memory stays in the process: a response of the largest size, and its copy with a header."""

SEED_BITS = 64


def listener_demands(settings: QuorumSettings, scram: CredentialSource) -> dict[str, listeners.Demands]:
    """Make TLS and SASL of each listener, by its name. `scram` has the users of SCRAM. Raises ValueError for unusable files."""
    return {
        endpoint.listener: listeners.demands_of_listener(
            settings.security[endpoint.listener], endpoint.security_protocol, scram
        )
        for endpoint in settings.listeners
    }


def member_settings(settings: QuorumSettings, base: NodeSettings) -> NodeSettings:
    """Return the settings of connections to other controllers: those of the first controller listener. Raises ValueError."""
    name = settings.controller_listener_names[0]
    protocol = next(listener.security_protocol for listener in settings.listeners if listener.listener == name)
    return listeners.connection_settings(settings.security[name], protocol, base)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOptions:
    """What the properties file does not have."""

    topic: wire_requests.LogTopic = METADATA_TOPIC
    """The topic of the log: another one only for tests with other programs on Kafka's quorum."""
    metrics_host: str = "127.0.0.1"
    metrics_port: int = 9404
    shutdown_timeout_ms: int = SHUTDOWN_TIMEOUT_MS
    cleaning_interval_ms: int = CLEANING_INTERVAL_MS


class QuorumProcess:
    """One process: `run` serves until `stop` is called."""

    def __init__(
        self, settings: QuorumSettings, options: NodeOptions, make_state_machine: MakeStateMachine | None = None
    ) -> None:
        """Check the settings, read the files of TLS, and resolve names of hosts.

        Raises StartError, SettingError for values that cannot be used, and ValueError for unusable files of TLS.
        """
        if make_state_machine is None:
            _check_supported(settings)
        self.settings = settings
        self.options = options
        self.driver: Driver | None = None
        self.state_machine: StateMachine | None = None
        self._make_state_machine = make_state_machine
        self._scram_users = _ScramUsers()
        self._demands = listener_demands(settings, self._scram_users)
        self._limits = listener_limits(settings.values, [listener.listener for listener in settings.listeners])
        self._members = member_settings(settings, NodeSettings())
        first = settings.controller_listener_names[0]
        self._renewal = Renewal(
            [
                *((demands.tls, settings.security[name].tls) for name, demands in self._demands.items()),
                (self._members.ssl, settings.security[first].tls),
            ]
        )
        self._registry = CollectorRegistry()
        self._metrics = RaftMetrics(self._registry)
        self._fronts: dict[str, Front] = {}
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Make `run` end gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`. Raises StartError, OSError (a port is taken), and the error that ended the node."""
        keep_freed_memory(LARGE_BUFFER_BYTES)
        async with AsyncExitStack() as stack:
            for key, served in apis.SERVED.items():
                codec.prepare(key, served.highest)  # Else a first election would wait for it.
            rehearsal.rehearse()
            check_directories(self.settings)
            lock_directories(stack.enter_context(ExitStack()), self.settings.all_directories)
            identity = complete_directory_ids(self.settings)
            driver = self.driver = self._open(stack)
            if self._make_state_machine is not None:
                dynamic = DynamicLimits(self._limits, self._fronts)
                stack.callback(dynamic.close)
                place = Place(
                    driver, self.settings, identity, self._advertised, self._members, self._registry, dynamic.follow
                )
                self.state_machine = self._make_state_machine(place)
                self._scram_users.source = self.state_machine.scram_users
            await self._listen(stack, driver, str(identity.cluster_id))
            self._start(stack, driver, identity)
            if self.state_machine is not None:
                stack.push_async_callback(self.state_machine.close)
                self.state_machine.start()
            stack.callback(asyncio.create_task(self._renewal.follow(), name="renew certificates").cancel)
            await self._until_end(driver)
            if driver.failure is not None:
                raise driver.failure

    def _open(self, stack: AsyncExitStack) -> Driver:
        """Open the log and make its driver, which is closed after the listeners."""
        folder = self.settings.metadata_log_directory / self.options.topic.folder_name
        segments, retention = log_settings(self.settings)
        try:
            opened = MetadataLog(folder, segments, retention=retention, topic_id=self.options.topic.id)
        except (LogError, OSError) as error:
            raise _unreadable(error) from error
        storage = Storage(opened, segment_bytes=segments.segment_bytes)
        driver = Driver(
            storage,
            append_linger_ms=self.settings.times.append_linger_ms,
            cleaning_interval_ms=self.options.cleaning_interval_ms,
        )
        stack.push_async_callback(driver.close)
        return driver

    async def _listen(self, stack: AsyncExitStack, driver: Driver, cluster_id: str) -> None:
        probes = ProbeServer(self._registry, self._not_ready_reason, before_scrape=self._before_scrape)
        stack.push_async_callback(probes.close)
        await probes.listen(self.options.metrics_host, self.options.metrics_port)
        own, served = apis.handlers(driver, self.options.topic, cluster_id), apis.SERVED
        listed: Features = partial(apis.features, driver)
        is_active: Callable[[], bool] | None = None
        if self.state_machine is not None:
            is_active = self.state_machine.is_active
            own, served = {**own, **self.state_machine.handlers}, {**served, **self.state_machine.served}
            listed = self.state_machine.features
        buffers = Buffers(buffer_bytes(DEFAULT_SERVER_LIMITS.max_buffered_bytes))
        for endpoint in self.settings.listeners:
            front = await open_front(
                endpoint.listener,
                endpoint.host,
                endpoint.port,
                own,
                None,
                served=served,
                demands=self._demands[endpoint.listener],
                guard=None if self.state_machine is None else self.state_machine.guard,
                features=listed,
                is_active=is_active,
                buffers=buffers,
                limits=self._limits.by_listener[endpoint.listener],
                quotas=self._limits.quotas,
            )
            self._fronts[endpoint.listener] = front
            stack.push_async_callback(front.close, CLOSE_GRACE_MS)

    def _start(self, stack: AsyncExitStack, driver: Driver, identity: text_files.MetaProperties) -> None:
        """Start the node and its connections to others, which are closed before the listeners."""
        settings = node_settings(self.settings, identity, self._endpoints())
        peers = Peers(self._members, self.options.topic, driver.handle, request_timeout_ms=settings.request_timeout_ms)
        stack.push_async_callback(peers.close)
        try:
            driver.start(settings, static_voters(self.settings), secrets.randbits(SEED_BITS), peers.send)
        except (LogError, records.CorruptBatch) as error:
            raise _unreadable(error) from error
        stack.callback(asyncio.create_task(_stay_connected(driver, peers), name="connect to voters").cancel)

    async def _until_end(self, driver: Driver) -> None:
        """Wait for `stop`, and hand over; or for the end of the node by itself."""
        waiting = [asyncio.create_task(event.wait()) for event in (self._stopping, driver.ended)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        if not driver.ended.is_set():
            await driver.shut_down(self.options.shutdown_timeout_ms)

    def _endpoints(self) -> voters.Endpoints:
        """Return the addresses for other nodes; port 0 is the bound one, an empty host the name of this machine."""
        return tuple(
            voters.Endpoint(
                listener.listener,
                listener.host or socket.getfqdn(),
                listener.port or self._fronts[listener.listener].port,
            )
            for listener in self.settings.advertised_listeners
        )

    def _advertised(self) -> tuple[model.Endpoint, ...]:
        """Return the same addresses with their security protocols, as a registration has them."""
        protocols = {listener.listener: listener.security_protocol.value for listener in self.settings.listeners}
        return tuple(
            model.Endpoint(endpoint.listener, endpoint.host, endpoint.port, protocols[endpoint.listener])
            for endpoint in self._endpoints()
        )

    def _before_scrape(self) -> None:
        driver = self.driver
        if driver is not None and driver.node is not None:
            self._metrics.update(driver.node)
            self._metrics.update_measurements(driver.measurements, driver.now_ms)
        if self.state_machine is not None:
            self.state_machine.update_metrics()

    def _not_ready_reason(self) -> str | None:
        """Return why this process cannot serve; None if it can. A quorum without a leader is not this process's failure."""
        if self.driver is None or self.driver.node is None:
            return "the log has not been loaded yet"
        return "the node has stopped" if self.driver.ended.is_set() else None


class _ScramUsers:
    """SCRAM users of the metadata; none in a process that does not apply it. Implements CredentialSource."""

    def __init__(self) -> None:
        self.source: CredentialSource | None = None

    async def credential(self, mechanism: str, user: str) -> scram_keys.ScramCredential | None:
        """Return a user's credential."""
        return None if self.source is None else await self.source.credential(mechanism, user)

    async def shapes(self, mechanism: str) -> Mapping[scram_decoy.CredentialShape, int]:
        """Count the users' credentials by shape."""
        return {} if self.source is None else await self.source.shapes(mechanism)


async def _stay_connected(driver: Driver, peers: Peers) -> None:
    """Keep connections to the other voters: a follower else has one only to its leader, and the next election begins with the others."""
    while True:
        if driver.node is not None:
            peers.connect(elections.electorate(driver.node))
        await asyncio.sleep(CONNECT_INTERVAL_S)


def node_settings(
    settings: QuorumSettings, identity: text_files.MetaProperties, endpoints: voters.Endpoints
) -> rules.Settings:
    """Return the settings of the node. Bootstrap servers are those of the file, else the other static voters."""
    times = settings.times
    own = {(endpoint.host, endpoint.port) for endpoint in endpoints}
    servers = settings.bootstrap_servers or tuple(settings.voters.values())
    others = [(server.host, server.port) for server in servers if (server.host, server.port) not in own]
    return rules.Settings(
        str(identity.cluster_id),
        voters.ReplicaKey(settings.node_id, identity.directory_id),
        endpoints,
        settings.controller_listener_names[0],
        tuple(rules.Destination(-2 - place, *address) for place, address in enumerate(others)),
        election_timeout_ms=times.election_timeout_ms,
        fetch_timeout_ms=times.fetch_timeout_ms,
        fetch_timeout_spread_ms=int(times.fetch_timeout_ms * rules.FETCH_TIMEOUT_SPREAD),
        election_backoff_max_ms=times.election_backoff_max_ms,
        request_timeout_ms=times.request_timeout_ms,
        retry_backoff_ms=times.retry_backoff_ms,
        fetch_max_bytes=times.fetch_max_bytes,
        fetch_snapshot_max_bytes=times.fetch_snapshot_max_bytes,
        auto_join=times.auto_join_enable,
        append_max_bytes=min(rules.BATCH_BYTES_MAX, settings.log.max_batch_size_bytes),
        batch_max_bytes=min(rules.BATCH_BYTES_MAX, settings.log.segment_bytes),
    )


def log_settings(settings: QuorumSettings) -> tuple[roll.LogSettings, Retention]:
    """Return the settings of the log, and when its snapshots are deleted."""
    log = settings.log
    segments = roll.LogSettings(segment_bytes=log.segment_bytes, segment_ms=log.segment_ms)
    return segments, Retention(log.max_retention_bytes, log.max_retention_ms)


def static_voters(settings: QuorumSettings) -> voters.VoterSet:
    """Return the configured voters; none where the voters are in the log."""
    name = settings.controller_listener_names[0]
    return voters.VoterSet.of(
        voters.Voter(voters.ReplicaKey(node_id), (voters.Endpoint(name, address.host, address.port),))
        for node_id, address in settings.voters.items()
    )


def _check_supported(settings: QuorumSettings) -> None:
    """Refuse settings whose effect needs the metadata: without it, peers would have other rights than the file asks for."""
    if settings.authorizer is not None:
        raise StartError(
            "authorizer.class.name is set, but this process does not apply metadata and knows no ACLs. Remove the setting, and "
            "protect the listener by a network policy or by TLS with ssl.client.auth=required."
        )
    for listener, security in settings.security.items():
        scram = [name for name in security.sasl_mechanisms if name.startswith("SCRAM")]
        if scram:
            raise StartError(
                f"Listener {listener} enables {', '.join(scram)}, but this process does not apply metadata and knows no SCRAM "
                "users. Set sasl.enabled.mechanisms to PLAIN, or use TLS."
            )


def _unreadable(error: Exception) -> StartError:
    """Return the error of a log or of quorum-state; that of quorum-state already has what to do."""
    if isinstance(error, UnreadableFileError):
        return StartError(str(error))
    advice = "Remove this voter from the quorum, format an empty directory, and add it again."
    if isinstance(error, CorruptLogError | records.CorruptBatch):
        return StartError(f"{error} Records that this voter acknowledged may be lost. {advice}")
    return StartError(f"{error} Check the disk and the owner of the directory.")
