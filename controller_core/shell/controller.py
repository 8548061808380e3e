"""The active controller's event loop: from a decision to its writes, requests to brokers and reply.

    event ──► decide ──► changes ──► store (fenced) ──► apply ──► requests to brokers ──► then … ──► reply

One asyncio loop owns the cluster's state. The store returns its result as a value: after a refused write the state is read again
and the event is decided again; a write that was interrupted by a lost connection is handled in the same way; when the fence does
not hold, the active term ends.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from controller_core import model
from controller_core.model import changes, events, settings, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, Send
from controller_core.shell import active, state_log
from controller_core.shell.brokers import answers, requests
from controller_core.shell.brokers.channels import Channels
from controller_core.shell.metrics import Metrics
from controller_core.shell.mode import Mode
from controller_core.shell.scheduler import Scheduler, source_of
from controller_core.shell.store import Outcome, Store, StoreError
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
"""Attempts to decide and write an event while other processes write the same znodes: with each refused attempt another process has
made progress."""
CLOSED = "closed"
"""Reason of a term's regular end: the process stops, or controllership was lost and the loss detected."""
TICK_S = 5.0
"""Pause between periodic checks for unfinished work: a safety net under every event, not the regular way."""


class Controller:
    """One active term. Implements `active.ActiveController`."""

    def __init__(
        self,
        cluster: model.Cluster,
        store: Store,
        own: requests.OwnAddress,
        cluster_id: str,
        defaults: active.Defaults | None,
        metrics: Metrics,
        security: BrokerSecurity = UNPROTECTED,
        *,
        mode: Mode,
        broker_left: Callable[[model.Broker], None] = lambda _: None,
        brokers_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.cluster_id = cluster_id
        self.scheduler = Scheduler()
        self._mode = mode
        self._store = store
        store.deliver_to(self._apply_committed)
        self._own = own
        self._metrics = metrics
        self._defaults = defaults
        self._has_defaults = asyncio.Event()
        if defaults is not None:
            self._has_defaults.set()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answered: set[asyncio.Task[Any]] = set()
        """Tasks whose failure goes to their caller and not to the log, so that clients cannot fill the log."""
        self._removed: dict[str, asyncio.Event] = {}
        """Set when the topic of this name is removed."""
        self._commits = active.Commits()
        self._pace = store.pace
        self.broker_left = broker_left
        """Called for each broker that is no longer registered."""
        self.brokers_changed = brokers_changed
        """Called when brokers may have new settings: one has registered, or a notification names their configuration."""
        self._channels = Channels(
            cluster,
            own,
            mode=mode,
            answered=self._on_answered,
            refused=self._on_refused,
            deposed=lambda: self.end("a broker knows a newer controller"),
            pace=self._pace,
            security=security,
        )

    @property
    def has_ended(self) -> bool:
        """Whether the term has ended."""
        return self._ended.done()

    @property
    def uses_topic_ids(self) -> bool:
        """Whether brokers are known to use topic ids."""
        return self._defaults is not None and self._defaults.uses_topic_ids

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener by which the controller connects to brokers."""
        return self._own.inter_broker_listener

    def advertised(self) -> Sequence[model.Endpoint]:
        """Return the controller's endpoints, one for each listener."""
        return self._own.endpoints

    def end(self, reason: str) -> None:
        """End the term: nothing is written or sent from now on."""
        if not self._ended.done():
            level = logging.INFO if reason == CLOSED else logging.WARNING
            extra = {"reason": reason, "controller_epoch": self.cluster.controller_epoch}
            log.log(level, "Active term ended", extra=extra)
            self._ended.set_result(reason)

    async def ended(self) -> str:
        """Wait for the end of the term; returns its reason."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """Stop all tasks of the term and close the channels to brokers."""
        self.end(CLOSED)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channels.close()
        self._has_defaults.set()
        self._commits.notify()
        for removed in self._removed.values():
            removed.set()

    async def start(self, event: events.Event) -> None:
        """Open the channels and process the first event. If that fails, the term has ended."""
        self._channels.follow()
        await asyncio.wait([self.post(event)])

    async def submit(self, event: events.Event) -> Any:
        """Process an event once the scheduler admits it; returns the decision's reply. Raises TermEndedError, OverloadedError.

        Cancelling the caller does not cancel the event: a committed write must always be applied.
        """
        task = self.post(event)
        self._answered.add(task)
        await asyncio.wait([task])
        if task.cancelled():
            raise active.TermEndedError("the active term ended before the event was processed")
        return task.result()

    async def read_and_decide(self, read: Callable[[], Coroutine[Any, Any, events.Event | None]]) -> None:
        """Read external state while no event is processed, and process the event that `read` returns.

        A list of topics that is read while an event runs could miss a topic that is being written, which would then count as removed.
        """
        async with self.scheduler.run_exclusively(events.RepairPartitions().scope):
            event = await read()
            if event is not None:
                with self._metrics.events.time(event) as begins:
                    begins()
                    await self._process(event)

    def post(self, event: events.Event) -> asyncio.Task[Any]:
        """Submit an event without waiting for it."""
        return self.spawn(self._process_scheduled(event), type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run a task until the term ends. An unexpected failure ends the term."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def _process_scheduled(self, event: events.Event) -> Any:
        self._check()
        with self._metrics.events.time(event) as begins:
            async with self.scheduler.run_exclusively(event.scope, source_of(event, self.cluster.brokers)):
                begins()
                return await self._process(event)

    async def tick(self) -> None:
        """Check periodically for unfinished work, until cancelled."""
        while True:
            await asyncio.sleep(TICK_S)
            for event in (
                events.RepairPartitions(),
                events.AdvanceMoves(),
                zookeeper_events.AdvanceDeletions(retry=True),
            ):
                # Also when one of them fails, the others run.
                await asyncio.wait([self.post(event)])

    def set_defaults(self, defaults: active.Defaults) -> None:
        """Set the cluster's settings, as reported by a broker."""
        self._defaults = defaults
        self._has_defaults.set()
        self.post(
            zookeeper_events.UncleanElectionRead(
                defaults={settings.BrokerDefault.STATIC: defaults.unclean_leader_election_enable}
            )
        )
        if not defaults.delete_topic_enable:
            # One broker that disables deletion is enough; deletion is enabled only once all brokers have been asked.
            self.set_topic_deletion(settings.TopicDeletion.DISABLED)

    def set_topic_deletion(self, setting: settings.TopicDeletion) -> None:
        """Set `delete.topic.enable`, as reported by the brokers; deletions wait for it."""
        self.post(zookeeper_events.TopicDeletionRead(setting))

    async def known_defaults(self, timeout_ms: int) -> active.Defaults | None:
        """Wait for the first settings reported by a broker; None on timeout. Raises TermEndedError."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._has_defaults.wait()
        except TimeoutError:
            return None
        self._check()
        return self._defaults

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:
        """Wait until the live brokers have answered all requests sent so far; see ActiveController."""
        return await self._channels.idle(timeout_ms, silence_ms)

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition on the cluster holds; False on timeout. Raises TermEndedError."""
        held = await self._commits.wait_until(lambda: self.has_ended or holds(), timeout_ms)
        self._check()
        return held

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Wait until a topic is removed; False on timeout. Raises TermEndedError."""
        if name not in self.cluster.topics:
            return True
        # One Event for each topic, not for each name: the name may be created again before the waiter runs.
        removed = self._removed.setdefault(name, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await removed.wait()
        except TimeoutError:
            return False
        self._check()
        return True

    @property
    def is_busy(self) -> bool:
        """Whether events are being processed or requests wait for brokers: long computations for clients then yield more often."""
        return self.scheduler.is_busy or any(self._channels.queued().values())

    def queued(self) -> dict[int, int]:
        """Return the number of waiting requests by broker."""
        return self._channels.queued()

    async def _process(self, event: events.Event) -> Any:
        """Decide, write, apply and notify brokers; repeat that for refused writes; then process the follow-up events."""
        # Follow-up events of all attempts: what a partly refused attempt has written is not decided again, and yet has follow-ups.
        then: list[events.Event] = []
        later: list[events.Event] = []
        for _ in range(MAX_ATTEMPTS):
            self._check()
            # An event whose scope is everything reads all of the columns.
            async with self._pace.step(self.cluster.columns.end if event.scope.everything else 0):
                decision = self._mode.decide(self.cluster, event)
            outcome = await self._write(decision, event)
            then += [following for following in decision.then if following not in then]
            later += [another for another in decision.later if another not in later]
            if outcome.is_whole or not await self._reread(outcome):
                break
            event = decision.retry_event or event
        for following in then:
            await self._follow_up(following)
        for another in later:
            self.post(another)
        if not outcome.is_whole:
            raise active.OverloadedError(
                f"{type(event).__name__} was refused: other processes write the same znodes, or one of them cannot be read"
            )
        return decision.reply

    async def _write(self, decision: Decision[Any], event: events.Event) -> Outcome:
        """Write a decision's changes, and send its requests to brokers."""
        try:
            outcome = await self._store.commit(self.cluster, decision.changes, event)
        except StoreError as error:
            raise self._end_term(error) from error
        self._check()
        self._commits.notify()
        # Also when some of the changes were refused: no later decision sends these requests, and they do no harm (`Decision`).
        await self._channels.send(decision.sends)
        return outcome

    async def _follow_up(self, event: events.Event) -> None:
        """Process a follow-up of an event that is written already; a refused follow-up does not fail the event."""
        try:
            await self._process(event)
        except active.OverloadedError as error:
            _log_deferred(type(event).__name__, error)

    def _end_term(self, error: StoreError) -> active.TermEndedError:
        self.end(str(error))
        return active.TermEndedError(str(error))

    def _check(self) -> None:
        if self.has_ended:
            raise active.TermEndedError(self._ended.result())

    async def _apply_committed(self, committed: Sequence[changes.Change]) -> None:
        """Apply committed changes in their order and notify the brokers.

        Other events may see the first changes applied and the last ones not yet: the changes are independent of each other.
        """
        self._check()
        for change in committed:
            async with self._pace.step(_partitions(change)):
                sends = self._apply(change)
            await self._channels.send(sends)

    def _apply(self, change: changes.Change) -> tuple[Send, ...]:
        state_log.log_change(self.cluster, change)
        self._metrics.count_elections(self.cluster, change)
        before = self.cluster.brokers
        sends = self._mode.apply(self.cluster, change)
        match change:
            case changes.TopicRemoved(topic=name):
                if (removed := self._removed.pop(name, None)) is not None:
                    removed.set()
            case zookeeper_changes.BrokersObserved():
                self._channels.follow()
                for broker_id in before.keys() - self.cluster.brokers.keys():
                    self.broker_left(before[broker_id])
                if self.cluster.brokers.keys() - before.keys():
                    self.brokers_changed()
            case _:
                pass
        return sends

    async def _reread(self, outcome: Outcome) -> bool:
        """Read again what was refused or may not have been written; False if there is no reason to decide again."""
        log.info(
            "Write conflict or lost connection; reading the state again",
            extra={"partitions": len(outcome.stale_rows), "topics": outcome.stale_topics, "unknown": outcome.unknown},
        )
        try:
            found = await self._store.reread(self.cluster, outcome)
        except StoreError as error:
            raise self._end_term(error) from error
        if found.unknown_topics:
            await self._follow_up(zookeeper_events.TopicsRead(found.unknown_topics, ()))
        return outcome.unknown or found.changed or bool(found.unknown_topics)

    def _on_answered(self, event: zookeeper_events.StopReplicaAnswered | zookeeper_events.LeaderAndIsrAnswered) -> None:
        self.post(event)

    def _on_refused(self, retry: answers.Retry) -> None:
        self.spawn(self._process_retry(retry), type(retry.event).__name__)

    async def _process_retry(self, retry: answers.Retry) -> None:
        """Process the event of a refused request after a pause, until it succeeds: the periodic checks would not repeat it."""
        pause_s: float | None = retry.pause_s
        while pause_s is not None:
            await asyncio.sleep(pause_s)
            try:
                await self._process_scheduled(retry.event)
                pause_s = None
            except active.OverloadedError as error:
                _log_deferred(type(retry.event).__name__, error)
                pause_s = TICK_S

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        is_answered = task in self._answered
        self._answered.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, active.OverloadedError):
            if not is_answered:
                _log_deferred(task.get_name(), error)
            return
        if not isinstance(error, active.TermEndedError | StoreError):
            # A defect. The safest reaction is to end the term: the next controller reads all state again.
            log.error("Unexpected failure; ending the active term", exc_info=error, extra={"event": task.get_name()})
        # The class of the store's own error names the failure.
        cause = error.__cause__ if isinstance(error, StoreError) and error.__cause__ is not None else error
        self.end(f"{type(cause).__name__}: {error}")


def _partitions(change: changes.Change) -> int:
    """Count the partitions of a change of a kind that may have many."""
    match change:
        case changes.PartitionStates(rows=rows) | zookeeper_changes.StatesObserved(rows=rows):
            return len(rows)
        case changes.TopicAdded(partitions=added) | changes.PartitionsAdded(partitions=added):
            return len(added)
        case _:
            return 0


def _log_deferred(event: str, error: active.OverloadedError) -> None:
    log.warning("Event deferred until the next periodic check", extra={"event": event, "error": str(error)})
