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
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.events import Activated
from controller_core.shell.active import Defaults, TenureLostError
from controller_core.shell.admin.handlers import handlers
from controller_core.shell.brokers.inquiry import InquiryError, inquire
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.front.endpoints import BrokerEndpoint
from controller_core.shell.front.front import Front, open_front
from controller_core.shell.http import Probes
from controller_core.shell.metrics import Metrics
from controller_core.shell.settings import ControllerSettings, Listener
from controller_core.shell.zookeeper.presence import Place, Presence
from controller_core.shell.zookeeper.reading import decode_brokers
from controller_core.shell.zookeeper.store import Store
from controller_core.shell.zookeeper.tenure import load_cluster, make_parents, read_cluster_id
from controller_core.shell.zookeeper.watching import Watching
from kafka_zookeeper import paths
from kafka_zookeeper.errors import ConnectFailedError, ZooKeeperError
from kafka_zookeeper.session import SessionState, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
"""Pause before another session is tried, so that a refused one does not turn into a loop."""
SETTLE_TIMEOUT_S = 10.0
"""How long a caller waits for a controller that is reading the cluster; after that it asks elsewhere or again."""
INQUIRY_RETRY_S = 2.0
"""Pause before brokers are asked again for their settings, as long as none of them answers."""


class IdentityError(Exception):
    """The controller's id cannot be: a broker has it, or brokers hand out such ids themselves."""


class ControllerProcess:
    """One process; `run` it until it is told to stop."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self._active: Controller | None = None
        self._fronts: dict[str, Front] = {}
        self._stopping = asyncio.Event()
        self._refused: asyncio.Future[None] = asyncio.get_running_loop().create_future()
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
        """Serve until `stop`. Raises IdentityError, OSError (a port is taken), ConnectFailedError (no first session)."""
        zookeeper = ZooKeeperSettings(self.settings.zookeeper, self.settings.session_timeout_ms)
        async with AsyncExitStack() as stack:
            probes = Probes(self.metrics, self._before_scrape, self._why_not_ready)
            await probes.listen(self.settings.metrics_host, self.settings.metrics_port)
            stack.push_async_callback(probes.close)
            for listener in self.settings.listeners:
                front = await open_front(
                    listener.name,
                    listener.host,
                    listener.port,
                    handlers(lambda: self._active, self.settled),
                    partial(self.live_brokers, listener.name),
                )
                self._fronts[listener.name] = front
                stack.push_async_callback(front.close)
            await ensure_chroot(zookeeper)
            first = True
            while not self._stopping.is_set():
                try:
                    session = await ZooKeeperSession.connect(zookeeper)
                except ConnectFailedError as error:
                    if first:
                        raise
                    log.error("no session with ZooKeeper", extra={"why": str(error)})
                    await asyncio.sleep(RECONNECT_S)
                    continue
                first = False
                try:
                    await self._live_through(session)
                finally:
                    self._connected = False
                    await session.close()

    async def _live_through(self, session: ZooKeeperSession) -> None:
        """Stand by and hold the cluster, again and again, until the session is over or the process stops."""
        over = asyncio.Event()
        session.on_state(lambda state: over.set() if state is SessionState.LOST else None)
        self._connected = session.state is not SessionState.LOST
        work = asyncio.create_task(self._stand_and_hold(session), name="stand by and hold")
        waits = [asyncio.create_task(over.wait()), asyncio.create_task(self._stopping.wait())]
        try:
            await asyncio.wait([work, *waits], return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, *waits):
                task.cancel()
            results = await asyncio.gather(work, *waits, return_exceptions=True)
        error = results[0]
        if isinstance(error, ZooKeeperError):
            log.warning("the session with ZooKeeper failed", extra={"why": str(error)})
            await asyncio.sleep(RECONNECT_S)
        elif isinstance(error, Exception):
            raise error

    async def _stand_and_hold(self, session: ZooKeeperSession) -> None:
        presence = Presence(session, self.settings.controller_id)
        while True:
            await self._check_identity(session)
            place = await presence.take()
            self._taking = True
            try:
                await self._hold(session, presence, place)
            except TenureLostError as error:
                # While everything was being read, another took the place: there is nothing to undo.
                log.info("the place was lost before it was filled", extra={"why": str(error)})
            finally:
                self._settle()

    async def _hold(self, session: ZooKeeperSession, presence: Presence, place: Place) -> None:
        """Be the controller until the place is lost."""
        store = Store(session, place.epoch_version)
        await make_parents(store)
        cluster = await load_cluster(session, self.settings.controller_id, place)
        cluster_id = await read_cluster_id(session)
        controller = Controller(cluster, session, store, self._own_address(), cluster_id, Defaults(), self.metrics)
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
            controller.spawn(self._learn(controller, session), "learn the brokers' settings")
            waits: list[asyncio.Future[Any]] = [lost, ended, self._refused]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.metrics.active.set(0)
            self._active = None
            for task in (lost, ended):
                task.cancel()
            await asyncio.gather(lost, ended, return_exceptions=True)
            await controller.close()
        if self._refused.done():
            self._refused.result()

    async def _learn(self, controller: Controller, session: ZooKeeperSession) -> None:
        """Ask brokers for the settings that a controller needs, until one answers."""
        while True:
            for broker in tuple(controller.cluster.brokers.values()):
                endpoint = broker.endpoint(self.settings.inter_broker_listener)
                if endpoint is None:
                    continue
                try:
                    known = await inquire(broker.id, endpoint.host, endpoint.port)
                except InquiryError as error:
                    log.debug("a broker's settings cannot be read yet", extra={"broker": broker.id, "why": str(error)})
                    continue
                if self.settings.controller_id > known.reserved_broker_max_id and not self._refused.done():
                    words = (
                        f"the controller's id {self.settings.controller_id} is over reserved.broker.max.id "
                        f"{known.reserved_broker_max_id} of broker {broker.id}, which may be given to a broker: choose a lower one"
                    )
                    self._refused.set_exception(IdentityError(words))
                    return
                controller.defaults = known.defaults
                controller.cluster_id = controller.cluster_id or await read_cluster_id(session)
                return
            await asyncio.sleep(INQUIRY_RETRY_S)

    async def _check_identity(self, session: ZooKeeperSession) -> None:
        own = self.settings.controller_id
        node = await session.get(paths.broker(own))
        if node is not None:
            brokers = decode_brokers({str(own): node}, -1)
            where = ", ".join(f"{endpoint.host}:{endpoint.port}" for broker in brokers for endpoint in broker.endpoints)
            raise IdentityError(
                f"the controller's id {own} is a broker's ({where}): choose an id that no broker has, "
                "at most reserved.broker.max.id (1000)"
            )

    def _own_address(self) -> OwnAddress:
        endpoints = tuple(
            Endpoint(listener.name, listener.advertised_host, self._advertised_port(listener), "PLAINTEXT")
            for listener in self.settings.listeners
        )
        return OwnAddress(endpoints, self.settings.inter_broker_listener, self.settings.rack)

    def _advertised_port(self, listener: Listener) -> int:
        """Port 0 means any: then the one that it became is advertised."""
        return listener.advertised_port or self._fronts[listener.name].port

    def live_brokers(self, listener: str) -> Sequence[BrokerEndpoint]:
        """Where live brokers are reached on a listener; none while this process does not hold the cluster."""
        if self._active is None:
            return ()
        cluster = self._active.cluster
        brokers = (cluster.brokers[broker_id] for broker_id in cluster.live_ids())
        return tuple(
            BrokerEndpoint(broker.id, endpoint.host, endpoint.port, broker.epoch)
            for broker in brokers
            if (endpoint := broker.endpoint(listener)) is not None
        )

    def _broker_left(self, broker: Broker) -> None:
        for front in self._fronts.values():
            front.relay.broker_gone(broker.id)

    def _before_scrape(self) -> None:
        if self._active is not None:
            self.metrics.partitions(self._active.cluster)

    def _why_not_ready(self) -> str | None:
        return None if self._connected else "no session with ZooKeeper"
