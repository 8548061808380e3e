"""The loop of one tenure: an event's turn, from the decision to its writes, requests and reply.

    event ──► decide ──► changes ──► store (fenced) ──► apply ──► requests to brokers ──► then … ──► reply

One asyncio loop owns the cluster's state. What the store says comes back as a value: refused writes are read again and the
event is decided anew on what was found; a lost connection is waited out the same way; a fence that does not hold ends the
tenure.

Leaves out how the tenure was won (presence) and who brings events (watches, the front).
"""

# MERGED controller_core.shell.controller: """Waiting for the cluster to reach some state: waiters check their condition after every commit."""
import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any

from controller_core.model import changes, events
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision
from controller_core.model.sends import Send
from controller_core.shell.active import Defaults, OverloadedError, TermEndedError
from controller_core.shell.brokers.answers import Retry
from controller_core.shell.brokers.channels import Channels
from controller_core.shell.brokers.requests import OwnAddress
from controller_core.shell.event_source import source_of
from controller_core.shell.metrics import Metrics
from controller_core.shell.mode import Mode
from controller_core.shell.scheduler import Scheduler
from controller_core.shell.state_log import log_change
from controller_core.shell.store import Outcome, Store, StoreError
from kafka_node.security.brokers import UNPROTECTED, BrokerSecurity

log = logging.getLogger(__name__)

MAX_ATTEMPTS = 8
"""Times that an event is decided, should somebody else write each time: each time one of us got further."""
CLOSED = "closed"
"""Why a tenure ends when nothing is wrong: the process stops, or the place was lost and noticed as such."""
TICK_S = 5.0
"""Pause between looks at what may have been left undone: a safety net under every event, not a way of working."""


class Controller:
    """One tenure. Implements `active.ActiveController`."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        own: OwnAddress,
        cluster_id: str,
        defaults: Defaults | None,
        metrics: Metrics,
        security: BrokerSecurity = UNPROTECTED,
        *,
        mode: Mode,
        broker_left: Callable[[Broker], None] = lambda _: None,
        brokers_changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.cluster_id = cluster_id
        self.scheduler = Scheduler()
        self._mode = mode
        self._store = store
        store.deliver_to(self._take_committed)
        self._own = own
        self._metrics = metrics
        self._defaults = defaults
        self._has_defaults = asyncio.Event()
        if defaults is not None:
            self._has_defaults.set()
        self._ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._answered: set[asyncio.Task[Any]] = set()
        """Tasks whose caller is answered with their failure, so that clients cannot fill the log."""
        self._removed: dict[str, asyncio.Event] = {}
        self._commits = Commits()
        self._pace = store.pace
        self.broker_left = broker_left
        """Called for each broker that is no longer registered."""
        self.brokers_changed = brokers_changed
        """Called when brokers may have other settings than they told: one has registered, or a notice names their configuration."""
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
        """Whether this tenure is over."""
        return self._ended.done()

    @property
    def uses_topic_ids(self) -> bool:
        """Whether brokers are known to have topic ids."""
        return self._defaults is not None and self._defaults.uses_topic_ids

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener under which brokers are reached."""
        return self._own.inter_broker_listener

    def advertised(self) -> Sequence[Endpoint]:
        """Where this controller is reached."""
        return self._own.endpoints

    def end(self, why: str) -> None:
        """End the tenure: nothing is written or sent from now on."""
        if not self._ended.done():
            level = logging.INFO if why == CLOSED else logging.WARNING
            log.log(level, "the tenure ends", extra={"why": why, "controller_epoch": self.cluster.controller_epoch})
            self._ended.set_result(why)

    async def ended(self) -> str:
        """Wait for the tenure's end; returns why."""
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """Stop everything that belongs to this tenure."""
        self.end(CLOSED)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._channels.close()
        self._has_defaults.set()
        self._commits.notify()
        for gone in self._removed.values():
            gone.set()

    async def start(self, event: events.Event) -> None:
        """Open the channels and decide the first event. Should that fail, the tenure has ended."""
        self._channels.follow()
        await asyncio.wait([self.post(event)])

    async def submit(self, event: events.Event) -> Any:
        """Decide an event in its turn. Raises TermEndedError, OverloadedError.

        A caller that is cancelled leaves the event to its end: between a write and its application nothing may stop.
        """
        task = self.post(event)
        self._answered.add(task)
        await asyncio.wait([task])
        if task.cancelled():
            raise TermEndedError("the tenure ended before the event did")
        return task.result()

    async def read_and_decide(self, read: Callable[[], Coroutine[Any, Any, events.Event | None]]) -> None:
        """Read something of the world while nobody writes, and decide on what was found, in one turn.

        Read outside the turn, a list of topics could miss one that is just being written, and take it for removed.
        """
        async with self.scheduler.run_exclusively(events.RepairPartitions().scope):
            event = await read()
            if event is not None:
                with self._metrics.events.time(event) as begins:
                    begins()
                    await self._run(event)

    def post(self, event: events.Event) -> asyncio.Task[Any]:
        """Submit an event that nobody needs to wait for."""
        return self.spawn(self._take_turn(event), type(event).__name__)

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run something for as long as the tenure lasts. A failure that is none of the known ones ends the tenure."""
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)
        return task

    async def _take_turn(self, event: events.Event) -> Any:
        self._check()
        with self._metrics.events.time(event) as begins:
            async with self.scheduler.run_exclusively(event.scope, source_of(event, self.cluster.brokers)):
                begins()
                return await self._run(event)

    async def tick(self) -> None:
        """Look, for ever, at what may have been left undone."""
        while True:
            await asyncio.sleep(TICK_S)
            for event in (events.RepairPartitions(), events.AdvanceMoves(), events.AdvanceDeletions(retry=True)):
                # One that cannot be done keeps none of the others from being done.
                await asyncio.wait([self.post(event)])

    def set_defaults(self, defaults: Defaults) -> None:
        """Take what a broker told for the cluster's settings."""
        self._defaults = defaults
        self._has_defaults.set()
        self.post(
            events.UncleanElectionRead(defaults={changes.BrokerDefault.STATIC: defaults.unclean_leader_election_enable})
        )
        if not defaults.delete_topic_enable:
            # One broker is enough; that topics may be deleted is known when all brokers were asked.
            self.set_topic_deletion(changes.TopicDeletion.DISABLED)

    def set_topic_deletion(self, setting: changes.TopicDeletion) -> None:
        """Take in what brokers reported for `delete.topic.enable`; deletions wait for it."""
        self.post(events.TopicDeletionRead(setting))

    async def known_defaults(self, timeout_ms: int) -> Defaults | None:
        """Wait until a broker has told the cluster's settings; None when time is up first. Raises TermEndedError."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._has_defaults.wait()
        except TimeoutError:
            return None
        self._check()
        return self._defaults

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:
        """Wait until the live brokers have answered what they were sent so far; see ActiveController."""
        return await self._channels.idle(timeout_ms, silence_ms)

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition on the cluster holds; False when the time is up first. Raises TermEndedError."""
        held = await self._commits.wait_until(lambda: self.has_ended or holds(), timeout_ms)
        self._check()
        return held

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Wait until a topic is no more; False when time is up first. Raises TermEndedError."""
        if name not in self.cluster.topics:
            return True
        # One for each life of a topic: another one may be made under the name before the waiter runs.
        gone = self._removed.setdefault(name, asyncio.Event())
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await gone.wait()
        except TimeoutError:
            return False
        self._check()
        return True

    @property
    def is_busy(self) -> bool:
        """Whether events are being processed or requests wait for brokers: long computations for clients then go slowly."""
        return self.scheduler.is_busy or any(self._channels.queued().values())

    def queued(self) -> dict[int, int]:
        """Count the requests that wait, by broker."""
        return self._channels.queued()

    async def _run(self, event: events.Event) -> Any:
        """Decide, write, apply, tell; again for what was refused; then what follows."""
        # Of all attempts: what was written of one that was refused in part is not decided again, and yet has to be followed up.
        then: list[events.Event] = []
        later: list[events.Event] = []
        for _ in range(MAX_ATTEMPTS):
            self._check()
            # What is about everything reads all of the columns.
            async with self._pace.step(self.cluster.columns.end if event.scope.everything else 0):
                decision = self._mode.decide(self.cluster, event)
            outcome = await self._write(decision)
            then += [following for following in decision.then if following not in then]
            later += [another for another in decision.later if another not in later]
            if outcome.is_whole or not await self._catch_up(outcome):
                break
            event = decision.retry_event or event
        for following in then:
            await self._follow_up(following)
        for another in later:
            self.post(another)
        if not outcome.is_whole:
            raise OverloadedError(
                f"{type(event).__name__} was refused: others write the same znodes, or one of them cannot be read"
            )
        return decision.reply

    async def _write(self, decision: Decision[Any]) -> Outcome:
        """Write a decision's changes, and do what follows from those that were written."""
        try:
            outcome = await self._store.commit(self.cluster, decision.changes)
        except StoreError as error:
            raise self._lost(error) from error
        self._check()
        self._commits.notify()
        # Also when some of the changes were refused: no later decision sends it, and it does no harm (`Decision`).
        await self._channels.send(decision.sends)
        return outcome

    async def _follow_up(self, event: events.Event) -> None:
        """Decide what follows from another event, which is written already: it does not depend on this one."""
        try:
            await self._run(event)
        except OverloadedError as error:
            _put_off(type(event).__name__, error)

    def _lost(self, error: StoreError) -> TermEndedError:
        self.end(str(error))
        return TermEndedError(str(error))

    def _check(self) -> None:
        if self.has_ended:
            raise TermEndedError(self._ended.result())

    async def _take_committed(self, committed: Sequence[changes.Change]) -> None:
        """Apply committed changes in their order and notify the brokers.

        Other events may see the first ones before the last: they are independent.
        """
        self._check()
        for change in committed:
            async with self._pace.step(_partitions(change)):
                sends = self._apply(change)
            await self._channels.send(sends)

    def _apply(self, change: changes.Change) -> Iterable[Send]:
        log_change(self.cluster, change)
        self._metrics.count_elections(self.cluster, change)
        before = self.cluster.brokers
        sends = self._mode.apply(self.cluster, change)
        match change:
            case changes.TopicRemoved(topic=name):
                if (gone := self._removed.pop(name, None)) is not None:
                    gone.set()
            case changes.BrokersObserved():
                self._channels.follow()
                for broker_id in before.keys() - self.cluster.brokers.keys():
                    self.broker_left(before[broker_id])
                if self.cluster.brokers.keys() - before.keys():
                    self.brokers_changed()
            case _:
                pass
        return sends

    async def _catch_up(self, outcome: Outcome) -> bool:
        """Read again what was refused, or may be written or not; False where there is no reason to decide anew."""
        log.info(
            "somebody else wrote, or the connection went: reading again",
            extra={"partitions": len(outcome.stale_rows), "topics": outcome.stale_topics, "unknown": outcome.unknown},
        )
        try:
            found = await self._store.reread(self.cluster, outcome)
        except StoreError as error:
            raise self._lost(error) from error
        if found.unknown_topics:
            await self._follow_up(events.TopicsRead(found.unknown_topics, ()))
        return outcome.unknown or found.changed or bool(found.unknown_topics)

    def _on_answered(self, event: events.StopReplicaAnswered | events.LeaderAndIsrAnswered) -> None:
        self.post(event)

    def _on_refused(self, retry: Retry) -> None:
        self.spawn(self._tell_again(retry), type(retry.event).__name__)

    async def _tell_again(self, retry: Retry) -> None:
        """Tell after a pause what a broker refused. It has to be told some time: no tick would."""
        pause_s: float | None = retry.pause_s
        while pause_s is not None:
            await asyncio.sleep(pause_s)
            try:
                await self._take_turn(retry.event)
                pause_s = None
            except OverloadedError as error:
                _put_off(type(retry.event).__name__, error)
                pause_s = TICK_S

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        is_answered = task in self._answered
        self._answered.discard(task)
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, OverloadedError):
            if not is_answered:
                _put_off(task.get_name(), error)
            return
        if not isinstance(error, TermEndedError | StoreError):
            # A defect. Whoever holds the cluster next reads everything anew: that is the safest way on.
            log.error("unexpected failure", exc_info=error, extra={"event": task.get_name()})
        # The class of the store's own error names what happened.
        named = error.__cause__ if isinstance(error, StoreError) and error.__cause__ is not None else error
        self.end(f"{type(named).__name__}: {error}")


def _partitions(change: changes.Change) -> int:
    """Count the partitions that a change is about, as far as there can be many."""
    match change:
        case changes.PartitionStates(rows=rows) | changes.StatesObserved(rows=rows):
            return len(rows)
        case changes.TopicAdded(partitions=added) | changes.PartitionsAdded(partitions=added):
            return len(added)
        case _:
            return 0


def _put_off(event: str, error: OverloadedError) -> None:
    log.warning("put off to the next look", extra={"event": event, "why": str(error)})


class Commits:
    """The commits of one term, as an event that occurs again and again."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition holds; False when the time is up first."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                while not holds():
                    await self._next.wait()
        except TimeoutError:
            return holds()
        return True
