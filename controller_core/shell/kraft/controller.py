"""The controller of one process: a standby that follows the metadata log, or the active controller."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry

from controller_core.metadata.record_decision import RecordDecision
from controller_core.model import Cluster, Endpoint, events, mode_rules
from controller_core.model.quorum_events import HeartbeatConnectionEnded
from controller_core.model.settings import BrokerDefault
from controller_core.quorum_mode.sessions import Sessions
from controller_core.shell.active import Commits, Defaults, RefusedWriteError, TermEndedError
from controller_core.shell.kraft.active_term import ActiveTerm, Quorum
from controller_core.shell.kraft.follower import LogFollower
from controller_core.shell.kraft.heartbeat_connections import HeartbeatConnections
from controller_core.shell.kraft.metrics import KRaftMetrics
from controller_core.shell.quorum.settings import ControllerSettings
from kafka_metadata import failures, records
from kafka_metadata.image import MetadataImage
from kafka_metadata.metadata_log import MetadataLog
from kafka_wire import ErrorCode

log = logging.getLogger(__name__)

WAIT_MS = 600_000
"""Limit of a wait for what is committed to be applied: only the end of the term is meant to end it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a controller knows of itself and its cluster from its files."""

    node_id: int
    cluster_id: str
    endpoints: Callable[[], tuple[Endpoint, ...]]
    """Returns the advertised endpoints, one for each listener; its ports are known once the listeners are bound."""
    bootstrap: tuple[records.MetadataRecord, ...]
    """First records of a new cluster (bootstrap.checkpoint)."""


class KRaftController:
    """Implements `port.MetadataController`, and `follower.Role`."""

    def __init__(
        self,
        quorum: Quorum,
        identity: Identity,
        settings: ControllerSettings,
        idle: Callable[[], None],
        metrics: KRaftMetrics | None = None,
    ) -> None:
        """`idle` is called when everything that the quorum has delivered is applied."""
        self.cluster_id = identity.cluster_id
        self.identity = identity
        self._quorum = quorum
        self._settings = settings
        self.metrics = metrics or KRaftMetrics(CollectorRegistry())
        self._commits = Commits()
        self._term: ActiveTerm | None = None
        self.heartbeat_connections = HeartbeatConnections(self.heartbeat_connection_ended)
        self.on_elected: list[Callable[[], None]] = []
        """Called when an active term has begun."""
        self.on_deposed: list[Callable[[], None]] = []
        """Called when an active term has ended."""
        self.on_advanced: list[Callable[[int], None]] = []
        """Called with the bytes of each committed batch that is applied."""
        self.follower = LogFollower(identity.node_id, self._make_cluster, self, idle=idle, failed=quorum.fail)

    @property
    def cluster(self) -> Cluster:
        """The state of brokers, topics and partitions; in the active controller with what is not committed."""
        return self.follower.cluster

    @property
    def committed(self) -> MetadataLog:
        """The image of what is committed and applied, and its position in the log."""
        return self.follower.log

    @property
    def is_active(self) -> bool:
        """Whether this process is the active controller."""
        return self._term is not None and self._quorum.leads_in(self._term.epoch)

    @property
    def image(self) -> MetadataImage:
        """The newest image; see the port."""
        return self.committed.image if self._term is None else self._term.newest_image(self.committed)

    @property
    def committed_image(self) -> MetadataImage:
        """The image of what is committed and applied."""
        return self.committed.image

    @property
    def sessions(self) -> Sessions:
        """The sessions of brokers. Raises TermEndedError."""
        return self._active().sessions

    @property
    def now_ms(self) -> int:
        """The time of sessions."""
        return self._quorum.now_ms

    def update_metrics(self, high_watermark: int, leader_id: int | None = None) -> None:
        """Compute the gauges."""
        sessions, now_ms, follower = self.sessions if self.is_active else None, self.now_ms, self.follower
        self.metrics.update(self.cluster, self.committed, high_watermark, sessions, now_ms)
        self.metrics.loader.update(
            self.committed_image, self._quorum.kraft_version, leader_id, follower.snapshots_loaded, now_ms
        )

    # Requests

    async def submit(self, event: events.Event) -> Any:
        """Decide on an event; return the decision's reply once it is committed. Raises as `write`."""
        self._active().admit()
        return await self._process(event)

    async def write(self, decide: Callable[[MetadataImage], RecordDecision]) -> Any:
        """Decide on the newest image; return the reply once the records are committed.

        Raises TermEndedError, OverloadedError, RefusedWriteError.
        """
        term = self._active()
        term.admit()
        reply = term.write(self.committed, decide)
        await term.settled()
        return reply

    async def read(self) -> MetadataImage:
        """Return the committed image with every write that was answered before. Raises TermEndedError."""
        term = self._active()
        needed = term.end_offset
        await term.settled()
        await self.until(lambda: self.committed.end_offset >= needed, WAIT_MS)
        return self.committed_image

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition on the cluster holds and is committed; False on timeout. Raises TermEndedError."""
        term = self._active()
        held = await self._commits.wait_until(lambda: self._term is not term or holds(), timeout_ms)
        if self._term is not term:
            raise TermEndedError("this process lost the leadership of the quorum")
        await term.settled()
        return held

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Wait until a topic is removed, which is done by one committed record; False on timeout. Raises TermEndedError."""
        return await self.until(lambda: name not in self.cluster.topics, timeout_ms)

    async def known_defaults(self, timeout_ms: int) -> Defaults | None:  # noqa: ARG002 - the port's
        """Return the settings of this process: brokers and controllers are to have the same."""
        return Defaults(
            num_partitions=self._settings.num_partitions,
            default_replication_factor=self._settings.default_replication_factor,
            unclean_leader_election_enable=self._settings.unclean_leader_election_enable,
            uses_topic_ids=True,
        )

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:  # noqa: ARG002 - the port's
        """Return True: no request was sent to brokers, they read the log."""
        return True

    def advertised(self) -> Sequence[Endpoint]:
        """Return this controller's endpoints, one for each listener."""
        return self.identity.endpoints()

    async def attempt(self, event: events.Event) -> None:
        """Process an event of the controller itself, which is never refused because of requests that wait."""
        try:
            await self._process(event)
        except (TermEndedError, RefusedWriteError) as error:
            log.info("Event was not processed", extra={"event": type(event).__name__, "reason": str(error)})

    async def _process(self, event: events.Event) -> Any:
        term, reply = self._active(), None
        waiting: tuple[events.Event, ...] = (event,)
        while waiting:
            outcome = term.process(*waiting)
            await term.settled()
            reply, waiting = reply if outcome.reply is None else outcome.reply, outcome.rest
        return reply

    def heartbeat_connection_ended(self, event: HeartbeatConnectionEnded) -> Awaitable[None] | None:
        """Shorten the session of a broker now, and return the work by which elections prefer other brokers, if this is the active controller."""
        if not self.is_active:
            return None
        self.sessions.disconnect(event.broker, event.broker_epoch, self.now_ms)
        return self.attempt(event)

    def fail(self, error: Exception) -> None:
        """End the node because of an error, of which it logs the traceback."""
        self._quorum.fail(error)

    def _active(self) -> ActiveTerm:
        term = self._term
        if term is None or not self._quorum.leads_in(term.epoch):
            raise TermEndedError(ErrorCode.NOT_CONTROLLER.message)
        return term

    # The follower of the log

    def elected(self, epoch: int) -> None:
        """Begin an active term."""
        settings = self._settings
        sessions = Sessions(settings.broker_session_timeout_ms, settings.disconnected_session_timeout_ms)
        term = ActiveTerm(self._quorum, epoch, self.cluster, sessions, self.metrics)
        try:
            term.activate(self.committed, self.identity.bootstrap, settings.min_insync_replicas)
        except TermEndedError as error:
            log.info("Active term did not begin", extra={"controller_epoch": epoch, "reason": str(error)})
            return
        except failures.MetadataError as error:
            self._quorum.fail(error)
            return
        log.info("Active term began", extra={"controller_epoch": epoch, "brokers": sorted(self.cluster.brokers)})
        self._term = term
        for act in self.on_elected:
            act()

    def leader_known(self) -> None:
        """Count the active controller."""
        self.metrics.term_began()

    def deposed(self) -> None:
        """End the active term."""
        term, self._term = self._term, None
        if term is None:
            return
        extra = {"controller_epoch": term.epoch, "reason": "another epoch of the quorum began"}
        log.warning("Active term ended", extra=extra)
        self._commits.notify()
        for act in self.on_deposed:
            act()

    def advanced(self, size_bytes: int) -> None:
        """Wake what waits for commits."""
        self._commits.notify()
        for act in self.on_advanced:
            act(size_bytes)

    def _make_cluster(self) -> Cluster:
        cluster = Cluster(self.identity.node_id, 0, mode_rules.kraft_rules({}))
        cluster.cluster_id = self.cluster_id
        cluster.restarts = self._settings.restarts
        cluster.step_rows = self._settings.step_rows
        cluster.unclean_defaults[BrokerDefault.STATIC] = self._settings.unclean_leader_election_enable
        return cluster
