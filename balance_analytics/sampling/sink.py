"""Where looks go, as the sampler sees it: a topic of the cluster, or a folder of Parquet files."""

from dataclasses import dataclass
from typing import Protocol

from balance_analytics.model.samples import Samples


class WriteFailed(Exception):  # noqa: N818 -- named for what happened, as the wire's own failures
    """A look was not kept, or not all of it; says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a look came to: messages or files, and their bytes as they were sent or kept."""

    pieces: int
    size_bytes: int


class Sink(Protocol):
    """Keeps looks."""

    async def open(self, *, deadline: float) -> None:
        """Have the place ready, before the first look. Raises WriteFailed."""

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Keep a look; `deadline` is loop time. Raises WriteFailed. What was kept before a failure stays."""
