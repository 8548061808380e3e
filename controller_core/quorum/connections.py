"""Requests to other nodes: one at a time for each, a timeout, and a backoff after a failure (Kafka's RequestManager)."""

from collections.abc import Mapping
from dataclasses import dataclass

from controller_core.quorum import messages, states
from controller_core.quorum.changed import changed


@dataclass(frozen=True, slots=True)
class InFlight:
    """A request was sent and is not answered; after its timeout the node may be asked again."""

    correlation_id: int
    timeout_ms: int
    api: type[messages.RequestBody]


@dataclass(frozen=True, slots=True)
class BackingOff:
    """A request has failed; the next one waits."""

    until_ms: int


@dataclass(frozen=True, slots=True)
class Connections:
    """State of the connections by node id. Nodes that are not listed are ready."""

    by_id: Mapping[int, InFlight | BackingOff]
    last_correlation_id: int = 0

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """Whether a request may be sent now."""
        return self.ready_at(node_id, now_ms) <= now_ms

    def ready_at(self, node_id: int, now_ms: int) -> int:
        """Return the time from which a request may be sent."""
        match self.by_id.get(node_id):
            case InFlight(timeout_ms=at) | BackingOff(until_ms=at):
                return at
            case _:
                return now_ms

    def is_backing_off(self, node_id: int, now_ms: int) -> bool:
        """Whether the last request has failed a short time ago."""
        state = self.by_id.get(node_id)
        return isinstance(state, BackingOff) and state.until_ms > now_ms

    def has_timed_out(self, node_id: int, now_ms: int) -> bool:
        """Whether a request was not answered in time."""
        state = self.by_id.get(node_id)
        return isinstance(state, InFlight) and state.timeout_ms <= now_ms

    def next_answer_due(self, now_ms: int) -> int:
        """Return the first timeout of requests that wait for their answers; NEVER if none does."""
        waits = (state.timeout_ms for state in self.by_id.values() if isinstance(state, InFlight))
        return min((at for at in waits if at > now_ms), default=states.NEVER)

    def is_expected(self, node_id: int, correlation_id: int, now_ms: int) -> bool:
        """Whether a response answers the last request to its node, in time.

        After the timeout another node may have been asked for the same records, which must not be appended twice.
        """
        state = self.by_id.get(node_id)
        return isinstance(state, InFlight) and state.correlation_id == correlation_id and state.timeout_ms > now_ms

    def api_in_flight(self, node_id: int) -> type[messages.RequestBody] | None:
        """Return the API of the request that waits for its answer."""
        state = self.by_id.get(node_id)
        return state.api if isinstance(state, InFlight) else None

    def sent(self, node_id: int, timeout_ms: int, api: type[messages.RequestBody]) -> "Connections":
        """Return the connections after a request; its correlation id is `last_correlation_id`."""
        correlation_id = self.last_correlation_id + 1
        return Connections({**self.by_id, node_id: InFlight(correlation_id, timeout_ms, api)}, correlation_id)

    def answered(self, node_id: int) -> "Connections":
        """Return the connections after a response."""
        return changed(self, by_id={other_id: state for other_id, state in self.by_id.items() if other_id != node_id})

    def failed(self, node_id: int, until_ms: int) -> "Connections":
        """Return the connections after a failure."""
        return changed(self, by_id={**self.by_id, node_id: BackingOff(until_ms)})

    def reset(self) -> "Connections":
        """Return the connections in a new state of the node: all are ready, and late responses are ignored."""
        return changed(self, by_id={})
