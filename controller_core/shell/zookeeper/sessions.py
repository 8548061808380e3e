"""Sessions with ZooKeeper, one after the other, and the tenures within them.

    session opened ──► stand by ──► place taken ──► everything read ──► active ──► place lost ──► stand by
         ▲                                                                            │
         └────────────────── session over: a new one ─────────────────────────────────┘

Leaves out what a tenure does (controller) and what stays open throughout (process).
"""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from controller_core.model import events
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.shell.activation_gate import ActivationGate
from controller_core.shell.active import TermEndedError
from controller_core.shell.broker_settings import BrokerSettingsReader
from controller_core.shell.brokers.log_listing import list_logs
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.log_survey import LogSurvey
from controller_core.shell.metrics import Metrics
from controller_core.shell.periodic_tasks import assign_topic_ids, balance_leaders
from controller_core.shell.settings import ControllerSettings
from controller_core.shell.zookeeper import loading
from controller_core.shell.zookeeper.broker_registrations import RegisteredBrokers
from controller_core.shell.zookeeper.controller_election import Place, Presence
from controller_core.shell.zookeeper.mode import ZOOKEEPER_MODE
from controller_core.shell.zookeeper.optimistic import store_errors
from controller_core.shell.zookeeper.store import Store
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.shell.zookeeper.watching import Watching
from kafka_node.security.brokers import BrokerSecurity
from kafka_wire.log_dir_columns import LogDirColumns
from kafka_wire.net.backoff import Backoff
from kafka_zookeeper.errors import ConnectFailedError, ZooKeeperError
from kafka_zookeeper.session import SessionState, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

RECONNECT_S = 1.0
"""Pause before another session is tried, so that a refused one does not turn into a loop."""
PAUSES = Backoff(initial_ms=1_000, cap_ms=30_000)
"""Pauses between lives: none after a long one, so that a broker stands in for as short as can be; growing ones where every
life is short, so that a failure that repeats does not tear the cluster to and fro between brokers and us."""
SHORT_LIFE_S = 60.0
"""A session that lived so long was no part of a loop of failures."""


Follow = Callable[[ZooKeeperSession], Coroutine[Any, Any, None]]
"""What is followed for as long as a session lasts: until cancelled."""


class Lives:
    """Every session of one process; made within a running loop."""

    def __init__(
        self,
        settings: ControllerSettings,
        zookeeper: ZooKeeperSettings,
        security: BrokerSecurity,
        metrics: Metrics,
        *,
        own_address: Callable[[], OwnAddress],
        broker_left: Callable[[Broker], None],
        follow: Follow | None = None,
        random: Callable[[], float],
    ) -> None:
        """`own_address` is asked when a tenure begins; `random` gives numbers in [0, 1) for jitter."""
        self.settings = settings
        self._zookeeper = zookeeper
        self._security = security
        self._metrics = metrics
        self._own_address = own_address
        self._broker_left = broker_left
        self._follow = follow
        self._random = random
        self.active: Controller | None = None
        """The present tenure, None while another process holds the cluster."""
        self.unreadable = UnreadableTopics()
        """Of the present tenure; empty while another process holds the cluster."""
        self.session: ZooKeeperSession | None = None
        self.connected = False
        self._checked_replicas = False
        self.activation_gate = ActivationGate()
        self.registered = RegisteredBrokers(settings.controller_id, self._registration_ended)
        self.broker_settings = BrokerSettingsReader(
            settings.controller_id,
            settings.inter_broker_listener,
            security,
            ignores_policies=settings.ignore_topic_policies,
        )

    def cluster(self) -> Cluster | None:
        """Give the cluster while this process holds it."""
        return None if self.active is None else self.active.cluster

    def _registration_ended(self, broker: Broker) -> None:
        """End what is relayed to a broker; the active controller does this by its own knowledge."""
        if self.active is None:
            self._broker_left(broker)

    async def run(self) -> None:
        """Live until cancelled. Raises IdentityError, PolicyError, ZooKeeperError (no first session)."""
        await ensure_chroot(self._zookeeper)
        session = await ZooKeeperSession.connect(self._zookeeper)
        short_lives = 0
        while True:
            began = time.monotonic()
            try:
                await self._live_through(session)
            finally:
                self.connected = False
                self.session = None
                await session.close()
            short_lives = short_lives + 1 if time.monotonic() - began < SHORT_LIFE_S else 0
            # Without a session we hold nothing: while we pause, a broker stands in. The first failure costs no pause.
            await asyncio.sleep(PAUSES.delay_ms(max(0, short_lives - 1), self._random()) / 1000)
            session = await self._connect_again()

    async def _connect_again(self) -> ZooKeeperSession:
        while True:
            try:
                return await ZooKeeperSession.connect(self._zookeeper)
            except ConnectFailedError as error:
                log.error("no session with ZooKeeper", extra={"why": str(error)})
                await asyncio.sleep(RECONNECT_S)

    async def _live_through(self, session: ZooKeeperSession) -> None:
        """Stand by and hold the cluster, again and again, until the session is over or a tenure has failed."""
        over = asyncio.Event()
        session.on_state(lambda state: over.set() if state is SessionState.LOST else None)
        self.connected = session.state is not SessionState.LOST
        self.session = session
        work = asyncio.create_task(self._stand_and_hold(session), name="stand by and hold")
        registered = asyncio.create_task(self.registered.follow(session), name="follow registrations")
        tasks: list[asyncio.Task[Any]] = [work, registered, asyncio.create_task(over.wait(), name="session")]
        if self._follow is not None:
            tasks.append(asyncio.create_task(self._follow(session), name="follow ACLs"))
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
        if not self._checked_replicas:
            # Before anything is written; each term checks again what it loads.
            await loading.refuse_own_replicas(session, self.settings.controller_id)
            self._checked_replicas = True
        lost = True
        while lost:
            await loading.refuse_brokers_id(session, self.settings.controller_id)
            place = await presence.take()
            # Once more: it may have taken months until the place was free.
            await loading.refuse_brokers_id(session, self.settings.controller_id)
            self.activation_gate.begin()
            try:
                lost = await self._hold(session, presence, place)
            except TermEndedError as error:
                # While everything was being read, another took the place: there is nothing to undo.
                log.info("the place was lost before it was filled", extra={"why": str(error)})
            finally:
                self.activation_gate.end()
            # Tasks and callbacks refer to each other: left to itself, this tenure's state stays beside the next one's.
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    async def _hold(self, session: ZooKeeperSession, presence: Presence, place: Place) -> bool:
        """Be the controller until the place is lost, or (False) until the tenure fails, though the place may be ours still."""
        store = Store(session, place.epoch_version)
        await loading.make_parents(store)
        await loading.make_features(store)
        cluster = await loading.load_cluster(
            session, self.settings.controller_id, place, self.settings.inter_broker_listener
        )
        cluster_id = await loading.read_cluster_id(session)
        # What was loaded stays, as do modules and schemas: a pass over all of it would hold the event loop for 50 ms.
        gc.freeze()
        controller = Controller(
            cluster,
            store,
            self._own_address(),
            cluster_id,
            self.broker_settings.defaults,
            self._metrics,
            self._security,
            mode=ZOOKEEPER_MODE,
            broker_left=self._broker_left,
            brokers_changed=self.broker_settings.poll_soon,
        )
        lost = asyncio.create_task(presence.lost(), name="watch /controller")
        ended = asyncio.create_task(controller.ended(), name="tenure")
        try:
            await controller.start(events.Activated())
            self.active = controller
            self.activation_gate.end()
            self._metrics.active.set(1)
            self.unreadable = store.unreadable
            Watching(controller, session, store.unreadable).start()
            controller.spawn(controller.tick(), "tick")
            controller.spawn(balance_leaders(controller, self.settings.leader_balance), "balance leaders")
            controller.spawn(assign_topic_ids(controller), "assign topic ids")
            controller.spawn(
                self.broker_settings.follow(controller, partial(_cluster_id, session)), "learn the brokers' settings"
            )
            controller.spawn(self._survey(controller).run(), "compare brokers' logs")
            waits: list[asyncio.Future[Any]] = [lost, ended, self.broker_settings.refused]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            is_lost = lost.done()
        finally:
            self._metrics.active.set(0)
            self.active = None
            self.unreadable = UnreadableTopics()
            for task in (lost, ended):
                task.cancel()
            await asyncio.gather(lost, ended, return_exceptions=True)
            await controller.close()
        if self.broker_settings.refused.done():
            self.broker_settings.refused.result()
        return is_lost

    def _survey(self, controller: Controller) -> LogSurvey:
        async def list_all(broker: int, endpoint: Endpoint) -> LogDirColumns:
            return await list_logs(broker, endpoint, self._security)

        return LogSurvey(controller, self.settings.inter_broker_listener, list_all, self._metrics)


async def _cluster_id(session: ZooKeeperSession) -> str:
    with store_errors():
        return await loading.read_cluster_id(session)
