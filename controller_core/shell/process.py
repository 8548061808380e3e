"""The controller process: sessions with ZooKeeper, tenures within them, listeners for brokers and clients, probes.

    session opened ──► stand by ──► place taken ──► everything read ──► active ──► place lost ──► stand by
         ▲                                                                            │
         └────────────────── session over: a new one ─────────────────────────────────┘

Listeners stay open throughout: a standby answers NOT_CONTROLLER. On SIGTERM the session is closed, so that a broker takes
over at once.

Leaves out what a tenure does (controller).
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from secrets import SystemRandom
from typing import Any

from controller_core.cluster.authorizer import Rules
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.model.events import Activated
from controller_core.shell.active import Defaults, TenureLostError
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.authorization.authority import Authority
from controller_core.shell.brokers.inquiry import BrokerSettings, InquiryError, inquire
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.front.endpoints import BrokerEndpoint
from controller_core.shell.front.front import Front, open_front
from controller_core.shell.http import Probes
from controller_core.shell.identity import over_reserved_max, refuse_brokers_id
from controller_core.shell.inside import Document, inside, standing_by, topic_inside
from controller_core.shell.leader_balance import balance_leaders
from controller_core.shell.metrics import Metrics
from controller_core.shell.security.brokers import broker_security
from controller_core.shell.security.listeners import demands_of
from controller_core.shell.security.renewal import Renewal
from controller_core.shell.security.user_configs import UserConfigs
from controller_core.shell.security.zookeeper import zookeeper_settings
from controller_core.shell.settings import ControllerSettings, Listener
from controller_core.shell.zookeeper.presence import Place, Presence
from controller_core.shell.zookeeper.store import Store
from controller_core.shell.zookeeper.tenure import load_cluster, make_parents, read_cluster_id
from controller_core.shell.zookeeper.watching import Watching
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper.errors import ConnectFailedError, ZooKeeperError
from kafka_zookeeper.session import SessionState, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

_RANDOM = SystemRandom()

RECONNECT_S = 1.0
"""Pause before another session is tried, so that a refused one does not turn into a loop."""
PAUSES = Backoff(initial_ms=1_000, cap_ms=30_000)
"""Pauses between lives: none after a long one, so that a broker stands in for as short as can be; growing ones where every
life is short, so that a failure that repeats does not tear the cluster to and fro between brokers and us."""
SHORT_LIFE_S = 60.0
"""A session that lived so long was no part of a loop of failures."""
SETTLE_TIMEOUT_S = 10.0
"""How long a caller waits for a controller that is reading the cluster; after that it asks elsewhere or again."""
INQUIRY_RETRY_S = 2.0
"""Pause before brokers are asked again for their settings, as long as none of them answers."""


def _authority(settings: ControllerSettings, cluster: Callable[[], Cluster | None]) -> Authority | None:
    authorizer = settings.authorizer
    if not authorizer.is_enabled:
        return None
    return Authority(Rules(authorizer.super_users, authorizer.allow_everyone_if_no_acl), cluster)


class ControllerProcess:
    """One process; `run` it until it is told to stop."""

    def __init__(self, settings: ControllerSettings, *, random: Callable[[], float] = _RANDOM.random) -> None:
        """`random` gives numbers in [0, 1) for jitter. Raises ValueError for files of security that cannot be used."""
        self.settings = settings
        self._random = random
        self.metrics = Metrics()
        self._active: Controller | None = None
        self._session: ZooKeeperSession | None = None
        self._brokers = broker_security(settings.security)
        self._zookeeper = zookeeper_settings(settings.zookeeper, settings.session_timeout_ms, settings.security)
        self._spoken = {listener.name: listener.security_protocol for listener in settings.listeners}
        self._demands = demands_of(set(self._spoken.values()), settings.security, lambda: self._session)
        self._authority = _authority(settings, lambda: None if self._active is None else self._active.cluster)
        security = settings.security
        self._renewal = Renewal(
            [
                *((demands.tls, security.tls) for demands in self._demands.values()),
                (self._brokers.tls, security.broker_tls),
                (self._zookeeper.tls, security.zookeeper_tls),
            ]
        )
        if self._authority is None and self._brokers.sasl is not None:
            log.warning(
                "there is no authorizer: whoever the listeners let in acts on brokers with the controller's rights"
            )
        self._unlike: set[tuple[int, str]] = set()
        """Brokers' listeners that speak something else than ours of the same name, as far as that was said."""
        self._fronts: dict[str, Front] = {}
        self._stopping = asyncio.Event()
        self._refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._defaults: Defaults | None = None
        """What a broker told last; in force until one tells in the present tenure."""
        self._connected = False
        self._taking = False
        self._settled = asyncio.Event()

    async def settled(self) -> None:
        """Wait, for a bounded time, while the place is taken and not yet filled: brokers send callers here already."""
        if self._taking:
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE_TIMEOUT_S):
                    await self._settled.wait()

    def _settle(self) -> None:
        self._taking = False
        self._settled.set()
        self._settled = asyncio.Event()

    def stop(self) -> None:
        """End it gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`. Raises IdentityError, OSError (a port is taken), ZooKeeperError (no first session)."""
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
        zookeeper = self._zookeeper
        async with AsyncExitStack() as stack:
            await self._listen(stack)
            stack.callback(asyncio.create_task(self._renewal.follow(), name="renew certificates").cancel)
            await ensure_chroot(zookeeper)
            session = await ZooKeeperSession.connect(zookeeper)
            short_lives = 0
            while True:
                began = time.monotonic()
                try:
                    await self._live_through(session)
                finally:
                    self._connected = False
                    self._session = None
                    await session.close()
                short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_S else 0
                # Without a session we hold nothing: while we pause, a broker stands in. The first failure costs no pause.
                await asyncio.sleep(PAUSES.delay_ms(max(0, short_lives - 1), self._random()) / 1000)
                session = await self._connect_again(zookeeper)

    async def _listen(self, stack: AsyncExitStack) -> None:
        probes = Probes(self.metrics, self._before_scrape, self._why_not_ready, self._inside)
        stack.push_async_callback(probes.close)
        await probes.listen(self.settings.metrics_host, self.settings.metrics_port)
        authority = self._authority
        own = handlers(
            lambda: self._active,
            self.settled,
            topic_defaults=lambda: {} if self._defaults is None else self._defaults.topic_defaults,
            user_configs=UserConfigs(lambda: self._session),
            acls=None if authority is None else authority.service,
        )
        for listener in self.settings.listeners:
            front = await open_front(
                listener.name,
                listener.host,
                listener.port,
                own if authority is None else authority.before(own, self.settled),
                partial(self.live_brokers, listener.name),
                demands=self._demands[listener.security_protocol],
                security=self._brokers,
                guard=None if authority is None else authority.guard,
            )
            self._fronts[listener.name] = front
            stack.push_async_callback(front.close)

    async def _connect_again(self, zookeeper: ZooKeeperSettings) -> ZooKeeperSession:
        while True:
            try:
                return await ZooKeeperSession.connect(zookeeper)
            except ConnectFailedError as error:
                log.error("no session with ZooKeeper", extra={"why": str(error)})
                await asyncio.sleep(RECONNECT_S)

    async def _live_through(self, session: ZooKeeperSession) -> None:
        """Stand by and hold the cluster, again and again, until the session is over or a tenure has failed."""
        over = asyncio.Event()
        session.on_state(lambda state: over.set() if state is SessionState.LOST else None)
        self._connected = session.state is not SessionState.LOST
        self._session = session
        work = asyncio.create_task(self._stand_and_hold(session), name="stand by and hold")
        tasks: list[asyncio.Task[Any]] = [work, asyncio.create_task(over.wait(), name="session")]
        if self._authority is not None:
            tasks.append(asyncio.create_task(self._authority.follow(session), name="follow ACLs"))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
        for error in results:
            if isinstance(error, ZooKeeperError):
                log.warning("the session with ZooKeeper failed", extra={"why": str(error)})
            elif isinstance(error, Exception):
                raise error

    async def _stand_and_hold(self, session: ZooKeeperSession) -> None:
        presence = Presence(session, self.settings.controller_id)
        lost = True
        while lost:
            await refuse_brokers_id(session, self.settings.controller_id)
            place = await presence.take()
            # Once more: it may have taken months until the place was free.
            await refuse_brokers_id(session, self.settings.controller_id)
            self._taking = True
            try:
                lost = await self._hold(session, presence, place)
            except TenureLostError as error:
                # While everything was being read, another took the place: there is nothing to undo.
                log.info("the place was lost before it was filled", extra={"why": str(error)})
            finally:
                self._settle()

    async def _hold(self, session: ZooKeeperSession, presence: Presence, place: Place) -> bool:
        """Be the controller until the place is lost, or (False) until the tenure fails, though the place may be ours still."""
        store = Store(session, place.epoch_version)
        await make_parents(store)
        cluster = await load_cluster(session, self.settings.controller_id, place)
        cluster_id = await read_cluster_id(session)
        controller = Controller(
            cluster, session, store, self._own_address(), cluster_id, self._defaults, self.metrics, self._brokers
        )
        controller.broker_left = self._broker_left
        lost = asyncio.create_task(presence.lost(), name="watch /controller")
        ended = asyncio.create_task(controller.ended(), name="tenure")
        try:
            await controller.start(Activated())
            self._active = controller
            self._settle()
            self.metrics.active.set(1)
            Watching(controller, session).start()
            controller.spawn(controller.tick(), "tick")
            controller.spawn(balance_leaders(controller, self.settings.leader_balance), "balance leaders")
            controller.spawn(self._learn(controller, session), "learn the brokers' settings")
            waits: list[asyncio.Future[Any]] = [lost, ended, self._refused]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            is_lost = lost.done()
        finally:
            self.metrics.active.set(0)
            self._active = None
            for task in (lost, ended):
                task.cancel()
            await asyncio.gather(lost, ended, return_exceptions=True)
            await controller.close()
        if self._refused.done():
            self._refused.result()
        return is_lost

    async def _learn(self, controller: Controller, session: ZooKeeperSession) -> None:
        """Ask brokers for the settings that a controller needs, until one answers."""
        while True:
            asked = [asyncio.create_task(self._inquire(broker)) for broker in controller.cluster.brokers.values()]
            try:
                for answer in asyncio.as_completed(asked):
                    if (told := await answer) is not None:
                        await self._take_in(controller, session, *told)
                        return
            finally:
                for task in asked:
                    task.cancel()
                await asyncio.gather(*asked, return_exceptions=True)
            await asyncio.sleep(INQUIRY_RETRY_S)

    async def _inquire(self, broker: Broker) -> tuple[int, BrokerSettings] | None:
        """Ask one broker; None: it did not tell."""
        endpoint = broker.endpoint(self.settings.inter_broker_listener)
        if endpoint is None:
            return None
        try:
            return broker.id, await inquire(broker.id, endpoint, self._brokers)
        except InquiryError as error:
            log.debug("a broker's settings cannot be read yet", extra={"broker": broker.id, "why": str(error)})
            return None

    async def _take_in(
        self, controller: Controller, session: ZooKeeperSession, broker: int, known: BrokerSettings
    ) -> None:
        refused = over_reserved_max(self.settings.controller_id, broker, known.reserved_broker_max_id)
        if refused is not None:
            if not self._refused.done():
                self._refused.set_exception(refused)
            return
        self._defaults = known.defaults
        controller.learn(known.defaults)
        controller.cluster_id = controller.cluster_id or await read_cluster_id(session)

    def _own_address(self) -> OwnAddress:
        endpoints = tuple(
            Endpoint(
                listener.name, listener.advertised_host, self._advertised_port(listener), listener.security_protocol
            )
            for listener in self.settings.listeners
        )
        return OwnAddress(endpoints, self.settings.inter_broker_listener, self.settings.rack)

    def _advertised_port(self, listener: Listener) -> int:
        """Port 0 means any: then the one that it became is advertised."""
        return listener.advertised_port or self._fronts[listener.name].port

    def live_brokers(self, listener: str) -> Sequence[BrokerEndpoint]:
        """Where live brokers are reached on a listener; none while this process does not hold the cluster.

        A broker whose listener of this name speaks another protocol than ours is left out: what came in here with less
        proof than it asks for must not go on to it under our name.
        """
        if self._active is None:
            return ()
        spoken = self._spoken.get(listener, "")
        cluster = self._active.cluster
        brokers = (cluster.brokers[broker_id] for broker_id in cluster.live_ids())
        return tuple(
            BrokerEndpoint(broker.id, endpoint.host, endpoint.port, broker.epoch, endpoint.security_protocol)
            for broker in brokers
            if (endpoint := broker.endpoint(listener)) is not None and self._is_alike(broker, endpoint, spoken)
        )

    def _is_alike(self, broker: Broker, endpoint: Endpoint, spoken: str) -> bool:
        """Tell whether a broker's listener speaks what ours does, and say once where it does not."""
        if endpoint.security_protocol == spoken:
            return True
        if (broker.id, endpoint.listener) not in self._unlike:
            self._unlike.add((broker.id, endpoint.listener))
            extra = {
                "broker": broker.id,
                "listener": endpoint.listener,
                "ours": spoken,
                "its": endpoint.security_protocol,
            }
            log.error("a broker's listener speaks another protocol than ours: nothing is relayed to it", extra=extra)
        return False

    def _broker_left(self, broker: Broker) -> None:
        for front in self._fronts.values():
            front.relay.broker_gone(broker.id)

    def _before_scrape(self) -> None:
        active = self._active
        self.metrics.look_at(None if active is None else active.cluster)
        self.metrics.look_at_queues(*((0, {}) if active is None else (active.turns.waiting, active.queued())))

    def _inside(self, topic: str | None) -> Document | None:
        """Tell what a person who looks inside is told."""
        active = self._active
        if topic is not None:
            return None if active is None else topic_inside(active.cluster, topic)
        if active is None:
            return standing_by(self.settings.controller_id)
        return inside(active.cluster, active.cluster_id, active.queued(), active.turns.waiting)

    def _why_not_ready(self) -> str | None:
        return None if self._connected else "no session with ZooKeeper"
