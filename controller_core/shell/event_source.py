"""Sources of events: the controller itself, a broker, a client. Each source has its own limit of waiting events.

The front has already authorized the request; here only its kind counts. A request that names an unregistered broker counts as a
client's, so that requests with invented broker ids cannot use the capacity of brokers.
"""

from collections.abc import Container
from dataclasses import dataclass
from enum import Enum

from controller_core.model import events

MAX_CLIENT_WAITING = 2_000
"""Waiting events of clients: each holds a request in memory. 2,000 are far more than administrators and tools send at once; further
requests get a retriable error."""
MAX_WAITING_PER_BROKER = 16
"""Waiting events of one broker. A broker has one AlterPartition, one ControlledShutdown and one AllocateProducerIds in flight; a few
more may come after time-outs and restarts. All brokers together: this number times the registered brokers."""


class SourceKind(Enum):
    """Kind of an event's source."""

    OWN = "own"
    """The controller: answers of brokers, timers, watches, and follow-ups of other events. Never refused.

    Their number is finite without a limit: each watch and each timer has one event at a time, a broker's answer needs a
    request that an earlier event sent (and each broker's queue of requests is bounded), and an event has a few follow-ups at most.
    """
    BROKER = "broker"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Source:
    """One source of events, with its own limit."""

    kind: SourceKind
    broker: int = -1

    @property
    def max_waiting(self) -> int | None:
        """Maximum number of waiting events of this source; None: no limit."""
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
    """Return the source of an event; `brokers` are the registered brokers."""
    if isinstance(event, BROKER_EVENTS):
        return Source(SourceKind.BROKER, event.broker) if event.broker in brokers else CLIENT
    return CLIENT if isinstance(event, CLIENT_EVENTS) else OWN
