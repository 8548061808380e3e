"""Sessions of brokers in KRaft mode: when each incarnation sent its last heartbeat.

Decisions know no times. The active controller's shell has one `Sessions`: it notes a heartbeat when it is read from the socket, before any
queue, so that a busy controller does not fence a broker that is alive; it asks whether a session is valid before it submits a registration,
and submits `FenceBroker` for expired ones. All times are milliseconds of one monotonic clock.

A session belongs to an id and an epoch: the heartbeats of a process that was replaced keep nothing alive. A broker that was fenced
has none until its next heartbeat. A new active controller does not know when brokers were last heard: each unfenced one gets a whole
session (`begin`).

The end of the connection with a broker's heartbeats is a sign that its process has ended. Such a broker has less time for its next
heartbeat (ADR 57), but always more than passed between its last two: a broker that only connects again is not fenced. Kafka's
controller does not look at connections.

Source: BrokerHeartbeatTracker of Kafka 4.3.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from controller_core.model import Broker

Incarnation = tuple[int, int]
"""Id and epoch of a broker."""

NEXT_HEARTBEAT = 1.5
"""Times between the last two heartbeats within which the next one comes. The controller does not know `broker.heartbeat.interval.ms` of brokers."""


@dataclass(slots=True)
class _Session:
    """What is known of one incarnation."""

    heard_ms: int
    interval_ms: int = 0
    """Time between the last two heartbeats; 0 with one."""
    disconnected_ms: int | None = None
    """When the connection of the last heartbeat ended; None: it has not."""


@dataclass(slots=True)
class Sessions:
    """Sessions by incarnation."""

    timeout_ms: int
    """`broker.session.timeout.ms`."""
    disconnected_timeout_ms: int
    """Time for the next heartbeat from the end of the connection on. The session does not last longer by it."""
    _current: dict[Incarnation, _Session] = field(default_factory=dict)

    def begin(self, brokers: Iterable[Broker], now_ms: int) -> None:
        """Give every unfenced broker a whole session: this controller became active."""
        self._current = {(broker.id, broker.epoch): _Session(now_ms) for broker in brokers if not broker.fenced}

    def hear(self, broker: int, broker_epoch: int, now_ms: int) -> None:
        """Note a heartbeat that was read now. The caller is a registered incarnation: others would fill the table."""
        known = self._current.get((broker, broker_epoch))
        interval_ms = 0 if known is None else now_ms - known.heard_ms
        self._current[broker, broker_epoch] = _Session(now_ms, interval_ms)

    def disconnect(self, broker: int, broker_epoch: int, now_ms: int) -> None:
        """Note that the connection of the last heartbeat ended now."""
        if (known := self._current.get((broker, broker_epoch))) is not None:
            known.disconnected_ms = now_ms

    def is_valid(self, broker: int, broker_epoch: int, now_ms: int) -> bool:
        """Whether an incarnation has a session that is not over."""
        known = self._current.get((broker, broker_epoch))
        return known is not None and now_ms <= self._end_ms(known)

    def expired(self, now_ms: int) -> list[Incarnation]:
        """Remove and return the expired incarnations, the longest silent first. Each is fenced by an event of its own."""
        over = [broker for broker, known in self._current.items() if now_ms > self._end_ms(known)]
        over.sort(key=lambda broker: self._current[broker].heard_ms)
        for broker in over:
            del self._current[broker]
        return over

    def silence_ms(self, now_ms: int) -> dict[int, int]:
        """Return the time since the last heartbeat by broker, of those with a session."""
        return {broker: now_ms - known.heard_ms for (broker, _), known in self._current.items()}

    def end(self, broker: int, broker_epoch: int) -> None:
        """Remove a session: the broker was fenced, was unregistered, or registered again."""
        self._current.pop((broker, broker_epoch), None)

    def _end_ms(self, known: _Session) -> int:
        """Return the last time at which a session is valid."""
        end_ms = known.heard_ms + self.timeout_ms
        if known.disconnected_ms is None:
            return end_ms
        next_ms = known.heard_ms + int(NEXT_HEARTBEAT * known.interval_ms)
        return min(end_ms, max(known.disconnected_ms + self.disconnected_timeout_ms, next_ms))
