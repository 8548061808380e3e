"""Live brokers, as the front needs to know them: where each is reached on one listener.

Left out: how one learns who is alive.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """A live broker's address on the listener in question."""

    broker_id: int
    host: str
    port: int
    broker_epoch: int = -1
    """Differs between two lives of a broker (it may have come back with another version of Kafka); -1 if unknown."""
    security_protocol: str = "PLAINTEXT"
    """What it speaks there."""

    def __str__(self) -> str:
        return f"broker {self.broker_id} ({self.host}:{self.port})"


LiveBrokers = Callable[[], Sequence[BrokerEndpoint]]
"""Gives the brokers that are alive now; asked at every request, so it must be cheap. Never the controller itself."""
