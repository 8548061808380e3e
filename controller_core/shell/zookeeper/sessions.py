"""ZooKeeper sessions of a controller process, and the active terms within them.

    session opened ──► standby ──► controllership acquired ──► cluster loaded ──► active ──► controllership lost ──► standby
         ▲                                                                          │
         └──────────────────────── session lost: open another one ──────────────────┘

Listeners stay open from one session to the next: they belong to the process (`shell.process`).
"""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any

from controller_core.model import Broker, Cluster, zookeeper_events
from controller_core.shell import active, periodic_tasks
from controller_core.shell.broker_settings import BrokerSettingsReader
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.controller import Controller
from controller_core.shell.log_survey import LogSurvey, list_logs
from controller_core.shell.metrics import Metrics
from controller_core.shell.mode import Mode
from controller_core.shell.settings import ControllerSettings
from controller_core.shell.zookeeper import broker_registrations, loading, optimistic, watching
from controller_core.shell.zookeeper.controller_election import ControllerElection, Controllership
from controller_core.shell.zookeeper.store import Store
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.zookeeper_mode import propagation
from controller_core.zookeeper_mode.decide import decide
from kafka_node.security.brokers import BrokerSecurity
from kafka_wire.net.client import Backoff
from kafka_zookeeper.session import ConnectFailedError, SessionState, ZooKeeperError, ZooKeeperSession, ensure_chroot
from kafka_zookeeper.settings import ZooKeeperSettings

log = logging.getLogger(__name__)

ZOOKEEPER_MODE = Mode(
    decide=decide,
    apply=propagation.apply_and_build_requests,
    full_metadata_request=propagation.full_metadata_request,
    leader_and_isr_requests=propagation.leader_and_isr_requests,
)

RECONNECT_S = 1.0
"""Pause between attempts to open a session."""
SESSION_PAUSES = Backoff(initial_ms=1_000, cap_ms=30_000)
"""Pauses between sessions that end soon, so that a repeated failure does not move controllership back and forth between this
process and the brokers. There is no pause after a long session: the time without this controller must be short."""
SHORT_SESSION_S = 60.0
"""A session that lasted longer does not belong to a series of failures."""
ACTIVATION_TIMEOUT_S = 10.0
"""Maximum wait of a caller while the cluster is loaded; afterwards it gets NOT_CONTROLLER and retries."""

SessionTask = Callable[[ZooKeeperSession], Coroutine[Any, Any, None]]
"""Work that runs for as long as a session lasts: until cancelled."""


class ActivationGate:
    """Closed while this process holds `/controller` and has not loaded the cluster yet."""

    def __init__(self) -> None:
        self._is_loading = False
        self._loaded = asyncio.Event()

    async def wait(self) -> None:
        """Wait, for a limited time, while the cluster is loaded: brokers name this process as the controller already."""
        if self._is_loading:
            with suppress(TimeoutError):
                async with asyncio.timeout(ACTIVATION_TIMEOUT_S):
                    await self._loaded.wait()

    def begin(self) -> None:
        """Close the gate: this process has won the controller election."""
        self._is_loading = True

    def end(self) -> None:
        """Open the gate: the cluster is loaded, or controllership was lost again."""
        self._is_loading = False
        self._loaded.set()
        self._loaded = asyncio.Event()


class SessionSupervisor:
    """Opens sessions and runs active terms for one process. Needs a running event loop."""

    def __init__(
        self,
        settings: ControllerSettings,
        zookeeper: ZooKeeperSettings,
        security: BrokerSecurity,
        metrics: Metrics,
        *,
        own_address: Callable[[], OwnAddress],
        broker_left: Callable[[Broker], None],
        follow: SessionTask | None = None,
        random: Callable[[], float],
    ) -> None:
        """`own_address` is called when an active term begins; `random` returns numbers in [0, 1) for jitter."""
        self.settings = settings
        self._zookeeper = zookeeper
        self._security = security
        self._metrics = metrics
        self._own_address = own_address
        self._broker_left = broker_left
        self._follow = follow
        self._random = random
        self.active: Controller | None = None
        """The controller of the current active term; None on a standby."""
        self.unreadable = UnreadableTopics()
        """Of the current active term; empty on a standby."""
        self.session: ZooKeeperSession | None = None
        self.connected = False
        self._checked_replicas = False
        self.activation_gate = ActivationGate()
        self.registered = broker_registrations.RegisteredBrokers(settings.controller_id, self._registration_ended)
        self.broker_settings = BrokerSettingsReader(
            settings.controller_id,
            settings.inter_broker_listener,
            security,
            ignores_policies=settings.ignore_topic_policies,
        )

    def cluster(self) -> Cluster | None:
        """Return the cluster's state; None on a standby."""
        return None if self.active is None else self.active.cluster

    async def run(self) -> None:
        """Open sessions until cancelled. Raises IdentityError, PolicyError, ZooKeeperError (the first connection failed)."""
        await ensure_chroot(self._zookeeper)
        session = await ZooKeeperSession.connect(self._zookeeper)
        short_sessions = 0
        while True:
            began = time.monotonic()
            try:
                await self._run_session(session)
            finally:
                self.connected = False
                self.session = None
                await session.close()
            short_sessions = short_sessions + 1 if time.monotonic() - began < SHORT_SESSION_S else 0
            # During the pause a broker acts as controller. There is none after the first short session.
            await asyncio.sleep(SESSION_PAUSES.delay_ms(max(0, short_sessions - 1), self._random()) / 1000)
            session = await self._reconnect()

    async def _reconnect(self) -> ZooKeeperSession:
        while True:
            try:
                return await ZooKeeperSession.connect(self._zookeeper)
            except ConnectFailedError as error:
                log.error("Failed to connect to ZooKeeper; retrying", extra={"error": str(error)})
                await asyncio.sleep(RECONNECT_S)

    async def _run_session(self, session: ZooKeeperSession) -> None:
        """Campaign for controllership, and follow registrations and ACLs, until the session is lost or an active term fails."""
        lost = asyncio.Event()
        session.on_state(lambda state: lost.set() if state is SessionState.LOST else None)
        self.connected = session.state is not SessionState.LOST
        self.session = session
        tasks: list[asyncio.Task[Any]] = [
            asyncio.create_task(self._campaign(session), name="campaign for controllership"),
            asyncio.create_task(self.registered.follow(session), name="follow registrations"),
            asyncio.create_task(lost.wait(), name="session"),
        ]
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
                log.warning("ZooKeeper session failed; opening a new one", extra={"error": str(error)})
            elif isinstance(error, Exception):
                raise error

    async def _campaign(self, session: ZooKeeperSession) -> None:
        """Run one active term after another. Returns when a term fails, so that the next one begins in a new session."""
        election = ControllerElection(session, self.settings.controller_id)
        if not self._checked_replicas:
            # Before the first write. Each active term repeats the check on the state that it loads.
            await loading.require_no_replicas_with_id(session, self.settings.controller_id)
            self._checked_replicas = True
        is_lost = True
        while is_lost:
            await loading.require_no_broker_with_id(session, self.settings.controller_id)
            controllership = await election.acquire()
            # A broker may have registered under this id during the wait, which can last for months.
            await loading.require_no_broker_with_id(session, self.settings.controller_id)
            self.activation_gate.begin()
            try:
                is_lost = await self._run_active(session, election, controllership)
            except active.TermEndedError as error:
                # Another process acquired it in the meantime: there is nothing to undo.
                log.info("Lost controllership while loading cluster state", extra={"error": str(error)})
            finally:
                self.activation_gate.end()
            # Tasks and callbacks form reference cycles: without a collection the next term's state is loaded while this one's
            # still occupies memory.
            gc.unfreeze()
            gc.collect()
            gc.freeze()

    async def _run_active(
        self, session: ZooKeeperSession, election: ControllerElection, controllership: Controllership
    ) -> bool:
        """Run one active term. True: controllership was lost; False: the term failed and `/controller` may still be held."""
        store = Store(session, controllership.epoch_version)
        controller = await self._load(session, store, controllership)
        lost = asyncio.create_task(election.lost(), name="watch /controller")
        ended = asyncio.create_task(controller.ended(), name="active term")
        try:
            await controller.start(zookeeper_events.Activated())
            self.active = controller
            self.activation_gate.end()
            self._metrics.active.set(1)
            self.unreadable = store.unreadable
            self._start_tasks(session, store, controller)
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

    async def _load(self, session: ZooKeeperSession, store: Store, controllership: Controllership) -> Controller:
        await loading.create_parents(store)
        await loading.create_features(store)
        cluster = await loading.load_cluster(
            session, store.versions, self.settings.controller_id, controllership, self.settings.inter_broker_listener
        )
        cluster_id = await loading.read_cluster_id(session)
        # The loaded state is long-lived, as are modules and schemas: collecting all of it would block the event loop for 50 ms.
        gc.freeze()
        return Controller(
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

    def _start_tasks(self, session: ZooKeeperSession, store: Store, controller: Controller) -> None:
        """Start the tasks that run until the active term ends."""
        watching.ClusterWatcher(controller, session, store.versions, store.unreadable).start()
        controller.spawn(controller.tick(), "tick")
        controller.spawn(periodic_tasks.balance_leaders(controller, self.settings.leader_balance), "balance leaders")
        controller.spawn(periodic_tasks.assign_topic_ids(controller), "assign topic ids")
        controller.spawn(self.broker_settings.follow(controller, partial(_cluster_id, session)), "read broker settings")
        listing = partial(list_logs, security=self._security)
        survey = LogSurvey(controller, self.settings.inter_broker_listener, listing, self._metrics)
        controller.spawn(survey.run(), "compare brokers' logs")

    def _registration_ended(self, broker: Broker) -> None:
        """End what a standby relays to a broker; an active controller does so when it processes the broker's failure."""
        if self.active is None:
            self._broker_left(broker)


async def _cluster_id(session: ZooKeeperSession) -> str:
    with optimistic.store_errors():
        return await loading.read_cluster_id(session)
