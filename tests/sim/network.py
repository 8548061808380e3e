"""Network: requests and responses that are lost, late, out of order or doubled, and links that are cut in one direction."""

from collections.abc import Callable
from dataclasses import dataclass

from tests.sim.scheduler import Scheduler


@dataclass(frozen=True)
class Weather:
    """Rates of a network's faults."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_ms: int = 2
    """Mean of an exponential distribution, with at least 1 ms for each message."""


CLEAR = Weather()


class Network:
    """Messages between nodes by their ids."""

    def __init__(self, scheduler: Scheduler, weather: Weather) -> None:
        self._scheduler = scheduler
        self.weather = weather
        self.cut: set[tuple[int, int]] = set()
        """Links, from and to, on which nothing arrives."""

    def deliver(self, source: int, target: int, action: Callable[[], None]) -> None:
        """Run an action at the target when the message arrives, once or twice, or never."""
        scheduler, weather = self._scheduler, self.weather
        copies = 2 if scheduler.chance(weather.duplication) else 1
        for _ in range(copies):
            if (source, target) in self.cut or scheduler.chance(weather.loss):
                continue
            delay_ms = 1 + int(scheduler.random.expovariate(1 / weather.delay_ms)) if weather.delay_ms else 1
            scheduler.after(delay_ms, action)

    def isolate(self, nodes: set[int], others: set[int], *, both_ways: bool) -> None:
        """Cut the links from some nodes to others, and back."""
        self.cut |= {(node, other) for node in nodes for other in others}
        if both_ways:
            self.cut |= {(other, node) for node in nodes for other in others}

    def heal(self) -> None:
        """Restore all links."""
        self.cut.clear()
