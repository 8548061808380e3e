"""The controller process: listeners for brokers and clients, and HTTP endpoints, which stay open while the process runs.

A standby relays requests to live brokers, and answers NOT_CONTROLLER to requests for the active controller. On SIGTERM the session is
closed, so that a broker takes over at once.

The HTTP endpoints are those of every process (kafka_node.probes) and `/state`, which shows the controller's state and running work
(`views.debug_state`) to local callers only: it names topics, which a process that scrapes metrics need not know. A standby is ready: its
work is to wait. Whether a process is the active controller is a metric, and no reason to take a standby out of service.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from ipaddress import ip_address
from secrets import SystemRandom

from aiohttp import web

from controller_core.model import Broker, Cluster, Endpoint
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.front.front import DEFAULT_SERVER_LIMITS, Front, open_front
from controller_core.shell.live_brokers import LiveBrokers
from controller_core.shell.loop_watch import LoopWatch
from controller_core.shell.memory_limit import buffer_bytes
from controller_core.shell.metrics import Metrics
from controller_core.shell.settings import ControllerSettings, Listener, ZooKeeperSecurity
from controller_core.shell.zookeeper.authorizer import ProcessAuthorizer
from controller_core.shell.zookeeper.entity_configs import EntityConfigs
from controller_core.shell.zookeeper.features import Features
from controller_core.shell.zookeeper.scram_users import ScramUsers
from controller_core.shell.zookeeper.sessions import SessionSupervisor
from controller_core.views.debug_state import Document, cluster_document, standby_document, topic_document
from controller_core.zookeeper_mode.apis import NOT_ADVERTISED, SERVED
from kafka_node.authorization.authorizer import Rules
from kafka_node.probes import ProbeServer
from kafka_node.security import brokers, contexts, listeners, secret_files
from kafka_node.security.renewal import Renewal
from kafka_wire.net.server import Buffers
from kafka_zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

_RANDOM = SystemRandom()


def _authorizer(settings: ControllerSettings, cluster: Callable[[], Cluster | None]) -> ProcessAuthorizer | None:
    authorizer = settings.authorizer
    if not authorizer.is_enabled:
        return None
    return ProcessAuthorizer(Rules(authorizer.super_users, authorizer.allow_everyone_if_no_acl), cluster)


class ControllerProcess:
    """One process: `run` serves until `stop` is called."""

    def __init__(self, settings: ControllerSettings, *, random: Callable[[], float] = _RANDOM.random) -> None:
        """`random` returns numbers in [0, 1) for jitter. Raises ValueError for invalid security files."""
        self.settings = settings
        security = settings.security
        self.metrics = Metrics()
        self._brokers = brokers.broker_security(security)
        zookeeper = zookeeper_settings(settings.zookeeper, settings.session_timeout_ms, settings.zookeeper_security)
        protocols = {listener.security_protocol for listener in settings.listeners}
        self._demands = listeners.demands_of(protocols, security, ScramUsers(lambda: self._sessions.session))
        self._authorizer = _authorizer(settings, self._cluster)
        self._sessions = SessionSupervisor(
            settings,
            zookeeper,
            self._brokers,
            self.metrics,
            own_address=self._own_address,
            broker_left=self._broker_left,
            follow=None if self._authorizer is None else self._authorizer.follow,
            random=random,
        )
        self._live_brokers = LiveBrokers(settings.listeners, self._cluster, self._sessions.registered.list)
        self._renewal = Renewal(
            [
                *((demands.tls, security.tls) for demands in self._demands.values()),
                (self._brokers.tls, security.broker_tls),
                (zookeeper.tls, settings.zookeeper_security.tls),
            ]
        )
        if self._authorizer is None and security.logs_in_at_brokers:
            log.warning(
                "No authorizer: every client that the listeners accept acts on brokers with the controller's permissions"
            )
        self._loop_watch = LoopWatch(settings.session_timeout_ms / 1000 / 2, self._give_up_session)
        self._fronts: dict[str, Front] = {}
        self._stopping = asyncio.Event()

    @property
    def active(self) -> Controller | None:
        """The active term; None while another process is the active controller."""
        return self._sessions.active

    def _cluster(self) -> Cluster | None:
        return self._sessions.cluster()

    def stop(self) -> None:
        """Make `run` end gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`. Raises IdentityError, PolicyError, OSError (a port is taken), ZooKeeperError (no first session)."""
        work = asyncio.create_task(self._serve(), name="serve")
        stopped = asyncio.create_task(self._stopping.wait(), name="stop")
        try:
            await asyncio.wait([work, stopped], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, stopped):
                task.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)
        if not work.cancelled():
            work.result()

    async def _serve(self) -> None:
        async with AsyncExitStack() as stack:
            self._loop_watch.start()
            stack.callback(self._loop_watch.stop)
            await self._listen(stack)
            stack.callback(asyncio.create_task(self._renewal.follow(), name="renew certificates").cancel)
            await self._sessions.run()

    async def _listen(self, stack: AsyncExitStack) -> None:
        probes = Probes(self.metrics, self._before_scrape, self._not_ready_reason, self._state)
        stack.push_async_callback(probes.close)
        await probes.listen(self.settings.metrics_host, self.settings.metrics_port)
        authorizer, activated = self._authorizer, self._sessions.activation_gate.wait
        own = handlers(
            lambda: self.active,
            activated,
            topic_defaults=self._sessions.broker_settings.topic_defaults,
            configs=EntityConfigs(lambda: self._sessions.session),
            features=Features(lambda: self._sessions.session),
            registered=self._registered,
            acls=None if authorizer is None else authorizer.service,
            is_urgent=self._is_busy,
        )
        buffers = Buffers(buffer_bytes(DEFAULT_SERVER_LIMITS.max_buffered_bytes))
        for listener in self.settings.listeners:
            front = await open_front(
                listener.name,
                listener.host,
                listener.port,
                own if authorizer is None else authorizer.with_topic_authorization(own, activated),
                partial(self._live_brokers.on, listener.name),
                served=SERVED,
                not_advertised=NOT_ADVERTISED,
                demands=self._demands[listener.security_protocol],
                security=self._brokers,
                guard=None if authorizer is None else authorizer.guard,
                is_urgent=self._is_busy,
                buffers=buffers,
            )
            self._fronts[listener.name] = front
            stack.push_async_callback(front.close)

    def _give_up_session(self) -> bool:
        """Close the session, in the watchdog's thread; False if there is none."""
        session = self._sessions.session
        if session is None:
            return False
        session.abandon()
        return True

    def _is_busy(self) -> bool:
        return self.active is not None and self.active.is_busy

    def _registered(self) -> int | None:
        """Return the number of registered brokers; None while they have not been read."""
        registered = self._sessions.registered
        return len(registered.list()) if registered.are_known else None

    def _own_address(self) -> OwnAddress:
        endpoints = tuple(
            Endpoint(
                listener.name, listener.advertised_host, self._advertised_port(listener), listener.security_protocol
            )
            for listener in self.settings.listeners
        )
        return OwnAddress(endpoints, self.settings.inter_broker_listener, self.settings.rack)

    def _advertised_port(self, listener: Listener) -> int:
        """Return the advertised port; the bound port if the setting is 0, which means any port."""
        return listener.advertised_port or self._fronts[listener.name].port

    def _broker_left(self, broker: Broker) -> None:
        for front in self._fronts.values():
            front.disconnect_broker(broker.id)

    def _before_scrape(self) -> None:
        active = self.active
        self.metrics.loop.longest_stall.set(self._loop_watch.take_longest_stall_s())
        self.metrics.loop.longest_cpu.set(self._loop_watch.take_longest_cpu_s())
        self.metrics.loop.sessions_given_up.set(self._loop_watch.given_up)
        self.metrics.cluster.update(None if active is None else active.cluster)
        self.metrics.unreadable_topics.set(len(self._sessions.unreadable))
        self.metrics.update_queues(*((0, {}) if active is None else (active.scheduler.waiting, active.queued())))

    def _state(self, topic: str | None) -> Document | None:
        """Build the document served at /state, of the process or of one topic."""
        active = self.active
        if topic is not None:
            return None if active is None else topic_document(active.cluster, topic)
        if active is None:
            return standby_document(self.settings.controller_id)
        unreadable = self._sessions.unreadable.names()
        return cluster_document(
            active.cluster, active.cluster_id, active.queued(), active.scheduler.waiting, unreadable
        )

    def _not_ready_reason(self) -> str | None:
        """Return why this process must not get requests at present; None if it is ready."""
        if not self._sessions.connected:
            return "no session with ZooKeeper"
        if self.active is None and not self._sessions.registered.are_known:
            return "not the active controller, and the registered brokers have not been read yet"
        return None


class Probes(ProbeServer):
    """HTTP endpoints of a controller process, with `/state`."""

    def __init__(
        self,
        metrics: Metrics,
        before_scrape: Callable[[], None],
        ready: Callable[[], str | None],
        state: Callable[[str | None], Document | None],
    ) -> None:
        """`ready` returns why the process is not ready, or None; `state` returns its state, or that of the given topic."""
        self._state = state
        route = web.get("/state", self._serve_state)
        super().__init__(metrics.registry, ready, before_scrape=before_scrape, routes=[route])

    async def _serve_state(self, request: web.Request) -> web.Response:
        if not is_this_machine(request.remote):
            return web.Response(status=403, text="/state is served to local callers only\n")
        topic = request.query.get("topic")
        document = self._state(topic)
        if document is None:
            return web.Response(
                status=404, text=f"topic {topic} does not exist, or another process is the active controller\n"
            )
        return web.json_response(document)


def is_this_machine(remote: str | None) -> bool:
    """Whether an address is a loopback address."""
    try:
        return remote is not None and ip_address(remote).is_loopback
    except ValueError:
        return False


def zookeeper_settings(connect: str, session_timeout_ms: int, security: ZooKeeperSecurity) -> ZooKeeperSettings:
    """Read the files. Raises ValueError, which names the file and no secret."""
    return ZooKeeperSettings(
        connect,
        session_timeout_ms,
        tls=None if security.tls is None else contexts.client_context(security.tls),
        digest=None if security.digest_file is None else secret_files.read_password(security.digest_file),
        set_acl=security.set_acl,
    )
