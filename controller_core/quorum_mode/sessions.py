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
class Sessions:
    """Times of the last heartbeats by incarnation."""

    timeout_ms: int
    """`broker.session.timeout.ms`."""
    disconnected_timeout_ms: int
    """Time for the next heartbeat from the end of the connection on. The session does not last longer by it."""
    _heard_ms: dict[Incarnation, int] = field(default_factory=dict)
    _interval_ms: dict[Incarnation, int] = field(default_factory=dict)
    """Time between the last two heartbeats."""
    _disconnected_ms: dict[Incarnation, int] = field(default_factory=dict)
    """When the connection of a session ended, until its next heartbeat."""

    def begin(self, brokers: Iterable[Broker], now_ms: int) -> None:
        """Give every unfenced broker a whole session: this controller became active."""
        self._heard_ms = {(broker.id, broker.epoch): now_ms for broker in brokers if not broker.fenced}
        self._interval_ms, self._disconnected_ms = {}, {}

    def hear(self, broker: int, broker_epoch: int, now_ms: int) -> None:
        """Note a heartbeat that was read now. The caller is a registered incarnation: others would fill the table."""
        incarnation = broker, broker_epoch
        self._interval_ms[incarnation] = now_ms - self._heard_ms.get(incarnation, now_ms)
        self._heard_ms[incarnation] = now_ms
        self._disconnected_ms.pop(incarnation, None)

    def disconnect(self, broker: int, broker_epoch: int, now_ms: int) -> None:
        """Note that the connection of the last heartbeat ended now."""
        if (broker, broker_epoch) in self._heard_ms:
            self._disconnected_ms[broker, broker_epoch] = now_ms

    def is_valid(self, broker: int, broker_epoch: int, now_ms: int) -> bool:
        """Whether an incarnation has a session that is not over."""
        incarnation = broker, broker_epoch
        return incarnation in self._heard_ms and not self._is_over(incarnation, now_ms)

    def expired(self, now_ms: int) -> list[Incarnation]:
        """Remove and return the expired incarnations, the longest silent first. Each is fenced by an event of its own."""
        over = [one for one in self._heard_ms if self._is_over(one, now_ms)]
        over.sort(key=lambda one: self._heard_ms[one])
        for one in over:
            self.end(*one)
        return over

    def silence_ms(self, now_ms: int) -> dict[int, int]:
        """Return the time since the last heartbeat by broker, of those with a session."""
        return {broker: now_ms - heard_ms for (broker, _), heard_ms in self._heard_ms.items()}

    def end(self, broker: int, broker_epoch: int) -> None:
        """Remove a session: the broker was fenced, was unregistered, or registered again."""
        for table in (self._heard_ms, self._interval_ms, self._disconnected_ms):
            table.pop((broker, broker_epoch), None)

    def _is_over(self, incarnation: Incarnation, now_ms: int) -> bool:
        heard_ms, disconnected_ms = self._heard_ms[incarnation], self._disconnected_ms.get(incarnation)
        end_ms = heard_ms + self.timeout_ms
        if disconnected_ms is not None:
            next_ms = heard_ms + int(NEXT_HEARTBEAT * self._interval_ms.get(incarnation, 0))
            end_ms = min(end_ms, max(disconnected_ms + self.disconnected_timeout_ms, next_ms))
        return end_ms < now_ms
