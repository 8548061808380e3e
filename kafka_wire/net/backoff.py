"""How long to wait before the next attempt to reach a peer: exponential, capped, jittered.

Pure: the random number is an argument. Left out: waiting, and counting the failures.
"""

from dataclasses import dataclass

_MAX_DOUBLINGS = 30  # keeps the power small however long a peer is away; every cap is reached long before


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """The delays between attempts."""

    initial_ms: int = 50
    cap_ms: int = 1_000
    jitter: float = 0.2
    """How far a delay may be off to either side, as a part of it: peers must not all come back at the same moment."""

    def __post_init__(self) -> None:
        if not (0 < self.initial_ms <= self.cap_ms and 0 <= self.jitter < 1):
            raise ValueError(f"{self} needs 0 < initial_ms <= cap_ms and 0 <= jitter < 1")

    def delay_ms(self, failures: int, random: float) -> float:
        """Give the wait in ms after `failures` failures in a row, with `random` in [0, 1). None failed: no wait.

        >>> [Backoff(jitter=0).delay_ms(failures, 0.5) for failures in (0, 1, 2, 3, 99)]
        [0.0, 50.0, 100.0, 200.0, 1000.0]
        """
        if failures == 0:
            return 0.0
        delay = float(min(self.cap_ms, self.initial_ms << min(failures - 1, _MAX_DOUBLINGS)))
        return delay * (1 + self.jitter * (2 * random - 1))


KAFKA_BACKOFF = Backoff()
"""The defaults are those of Kafka's clients: reconnect.backoff.ms, reconnect.backoff.max.ms, and a jitter of a fifth."""
