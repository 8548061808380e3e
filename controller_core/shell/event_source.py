"""Sources of events: the controller itself, a broker, a client. Each source has its own bound on events that wait.

The front has checked who may send a request; here only the kind of the request counts. A request that names a broker which is
not registered counts as a client's, so that nobody can use brokers' room under made-up ids.
"""

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum

from controller_core.model import events

MAX_CLIENT_WAITING = 2_000
"""Events of clients that may wait for their turn: each holds a request in memory. 2,000 are far more than administrators and
tools send at once; further ones are answered with a retriable error."""
MAX_WAITING_PER_BROKER = 16
"""Events of one broker that may wait. A broker has one AlterPartition, one ControlledShutdown and one AllocateProducerIds under
way; a few more may come after time-outs and restarts. All brokers together: this number times the registered brokers."""


class SourceKind(Enum):
    """Who caused an event."""

    OWN = "own"
    """The controller: answers of brokers, timers, watches, and what follows from other events. Never refused.

    Their number is finite without a bound: each watch and each timer has one event at a time, a broker's answer needs a
    request that an earlier turn sent (and each broker's queue of requests is bounded), and a turn adds a few events at most.
    """
    BROKER = "broker"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of events, with a bound of its own."""

    kind: SourceKind
    broker: int = -1

    @property
    def max_waiting(self) -> int | None:
        """How many events of this source may wait; None: no bound."""
        match self.kind:
            case SourceKind.OWN:
                return None
            case SourceKind.BROKER:
                return MAX_WAITING_PER_BROKER
            case SourceKind.CLIENT:
                return MAX_CLIENT_WAITING

    def __str__(self) -> str:
        return f"broker {self.broker}" if self.kind is SourceKind.BROKER else self.kind.value


OWN = Source(SourceKind.OWN)
CLIENT = Source(SourceKind.CLIENT)

CLIENT_EVENTS = (
    events.CreateTopics,
    events.DeleteTopics,
    events.CreatePartitions,
    events.AlterReassignments,
    events.ElectLeaders,
)
BROKER_EVENTS = (events.AlterPartition, events.ControlledShutdown, events.AllocateProducerIds)


def source_of(event: events.Event, brokers: Container[int]) -> Source:
    """Classify an event; `brokers` are the registered ones."""
    if isinstance(event, BROKER_EVENTS):
        return Source(SourceKind.BROKER, event.broker) if event.broker in brokers else CLIENT
    return CLIENT if isinstance(event, CLIENT_EVENTS) else OWN
