"""Faults of nodes: crashes between the parts of a step, slow flushes; what a seed draws of them."""

from dataclasses import dataclass

from tests.sim.scheduler import Scheduler


@dataclass
class Faults:
    """Rates of the faults of nodes. `is_on` is False in the phase in which the cluster must become healthy."""

    scheduler: Scheduler
    crash: float = 0.0
    """Probability of a crash before each part of each step."""
    flush_ms: int = 2
    """Mean time of a flush."""
    is_on: bool = True

    def crashes_now(self) -> bool:
        """Draw whether the process ends here."""
        return self.is_on and self.scheduler.chance(self.crash)

    def flush_delay_ms(self) -> int:
        """Draw the time of a flush."""
        return int(self.scheduler.random.expovariate(1 / self.flush_ms)) if self.flush_ms else 0
