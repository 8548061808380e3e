"""Reconnect backoff: exponential, capped and jittered. The random number is an argument."""

from dataclasses import dataclass

_MAX_DOUBLINGS = 30
"""Limits the exponent when a peer is unreachable for long; every cap is reached far earlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Delays between attempts to connect."""

    initial_ms: int = 50
    cap_ms: int = 1_000
    jitter: float = 0.2
    """Maximum deviation of a delay in either direction, as a fraction of it: clients must not all reconnect at the same moment."""

    def __post_init__(self) -> None:
        if not (0 < self.initial_ms <= self.cap_ms and 0 <= self.jitter < 1):
            raise ValueError(f"{self} needs 0 < initial_ms <= cap_ms and 0 <= jitter < 1")

    def delay_ms(self, failures: int, random: float) -> float:
        """Return the delay in ms after `failures` consecutive failures, with `random` in [0, 1).

        >>> [Backoff(jitter=0).delay_ms(failures, 0.5) for failures in (0, 1, 2, 3, 99)]
        [0.0, 50.0, 100.0, 200.0, 1000.0]
        """
        if failures == 0:
            return 0.0
        delay = float(min(self.cap_ms, self.initial_ms << min(failures - 1, _MAX_DOUBLINGS)))
        return delay * (1 + self.jitter * (2 * random - 1))


KAFKA_BACKOFF = Backoff()
"""Defaults of Kafka's clients: reconnect.backoff.ms, reconnect.backoff.max.ms, and a jitter of a fifth."""
