"""Interfaces of the active controller, as used by request handlers and by the tasks of a term; waits for commits."""

import asyncio
from asyncio import Task
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from controller_core.model import Cluster, Endpoint, events
from kafka_wire import Failure


class TermEndedError(Exception):
    """This process is no longer the active controller: callers get NOT_CONTROLLER and retry elsewhere."""


class OverloadedError(Exception):
    """Too many events wait, or other processes write the same state: callers get a retriable error."""


class RefusedWriteError(Exception):
    """A change is too large to be written at once (KRaft mode): callers get the failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class TopicDefault(NamedTuple):
    """Brokers' default of one topic configuration."""

    text: str
    source: int
    """DescribeConfigsResponse.ConfigSource: the broker's file, or a dynamic configuration."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Settings of the cluster, as reported by its brokers."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool | None = None
    """Value in the broker's file; None: not set."""
    topic_defaults: Mapping[str, TopicDefault] = field(default_factory=dict, hash=False)
    """Brokers' defaults of topic configurations, by name."""
    uses_topic_ids: bool = False
    """Whether inter.broker.protocol.version is 2.8 or later (KIP-516)."""


class ActiveController(Protocol):
    """One active term, as used by request handlers: from gaining to losing controllership."""

    cluster_id: str

    @property
    def cluster(self) -> Cluster:
        """The cluster's state: readable in the loop's thread, and consistent until the next await. Only the controller changes it."""

    async def submit(self, event: events.Event) -> Any:
        """Process an event once the scheduler admits it; returns the decision's reply after its changes are committed.

        Raises TermEndedError, OverloadedError.
        """

    async def known_defaults(self, timeout_ms: int) -> Defaults | None:
        """Wait for the first settings reported by a broker; None on timeout."""

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:
        """Wait until the live brokers have answered all requests sent so far; False on timeout.

        Brokers that have left one request unanswered for `silence_ms` are ignored.
        """

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition on the cluster holds; False on timeout. Raises TermEndedError."""

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Wait until a topic is removed; False on timeout. Raises TermEndedError."""

    def advertised(self) -> Sequence[Endpoint]:
        """Return the controller's endpoints, one for each listener."""


class ActiveTerm(Protocol):
    """One active term, as used by tasks that watch state written by other processes and turn it into events."""

    @property
    def cluster(self) -> Cluster:
        """The cluster's state. Only the controller changes it."""

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener by which the controller connects to brokers."""

    @property
    def uses_topic_ids(self) -> bool:
        """Whether brokers are known to use topic ids."""

    @property
    def brokers_changed(self) -> Callable[[], None]:
        """Function to call when brokers may have new settings."""

    async def read_and_decide(self, read: Callable[[], Coroutine[Any, Any, events.Event | None]]) -> None:
        """Read external state while no event is processed, and process the event that `read` returns.

        Raises TermEndedError, OverloadedError.
        """

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> Task[Any]:
        """Run a task until the term ends. A failure other than TermEndedError, OverloadedError or StoreError is a defect."""


class Commits:
    """The commits of one term: waiters check their condition after each of them."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def notify(self) -> None:
        """Wake all waiters."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait_until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition holds; False on timeout."""
        try:
            async with asyncio.timeout(max(0, timeout_ms) / 1000):
                while not holds():
                    await self._next.wait()
        except TimeoutError:
            return holds()
        return True
