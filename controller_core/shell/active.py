"""What the parts of the shell see of a controller that holds the cluster. Leaves out how it does what it promises."""

from asyncio import Task
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from controller_core.model import events
from controller_core.model.broker import Endpoint
from controller_core.model.cluster import Cluster


class TermEndedError(Exception):
    """This process no longer holds the cluster: the caller is answered NOT_CONTROLLER and asks elsewhere."""


class OverloadedError(Exception):
    """Too many events wait: the caller is answered with a retriable error."""


class TopicDefault(NamedTuple):
    """What brokers set for all topics."""

    text: str
    source: int
    """Where they have it from: their own file, or what was set while they ran (DescribeConfigsResponse.ConfigSource)."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """The cluster's own settings, as its brokers tell them."""

    num_partitions: int = 1
    default_replication_factor: int = 1
    delete_topic_enable: bool = True
    unclean_leader_election_enable: bool | None = None
    """What the broker's own file says; None: nothing."""
    topic_defaults: Mapping[str, TopicDefault] = field(default_factory=dict, hash=False)
    """What brokers set for all topics, by the topic configuration's name."""
    uses_topic_ids: bool = False
    """Whether inter.broker.protocol.version is 2.8 or later (KIP-516)."""


class ActiveController(Protocol):
    """One tenure: from becoming the active controller to losing that place."""

    cluster: Cluster
    """To be read, in the loop's thread, between two awaits; changed by nobody but the controller itself."""
    cluster_id: str

    async def submit(self, event: events.Event) -> Any:
        """Decide an event in its turn; the reply is the decision's, after its changes are committed.

        Raises TermEndedError, OverloadedError.
        """

    async def known_defaults(self, timeout_ms: int) -> Defaults | None:
        """Wait until a broker has told the cluster's settings; None when time is up first."""

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:
        """Wait until the live brokers have answered what they were sent so far; False when the time is up first.

        A broker that has left one request unanswered for `silence_ms` is not waited for.
        """

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Wait until a condition on the cluster holds; False when the time is up first. Raises TermEndedError."""

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Wait until a topic is no more; False when time is up first."""

    def advertised(self) -> Sequence[Endpoint]:
        """Where this controller is reached, one endpoint for each listener."""


class ActiveTerm(Protocol):
    """One tenure, as used by tasks that watch what other processes write: they turn it into events of the same loop."""

    @property
    def cluster(self) -> Cluster:
        """The state; only the controller changes it."""

    @property
    def inter_broker_listener(self) -> str:
        """Name of the listener under which brokers are reached."""

    @property
    def uses_topic_ids(self) -> bool:
        """Whether brokers are known to have topic ids."""

    @property
    def brokers_changed(self) -> Callable[[], None]:
        """Reports that brokers may have other settings than they reported last."""

    async def read_and_decide(self, read: Callable[[], Coroutine[Any, Any, events.Event | None]]) -> None:
        """Read while no event is processed, and decide on what was found. Raises TermEndedError, OverloadedError."""

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> Task[Any]:
        """Run a task until the tenure ends. A failure other than TermEndedError, OverloadedError or StoreError is a defect."""
