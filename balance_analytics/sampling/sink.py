"""Interface of the storage for samples: a topic of the cluster, or a folder of Parquet files."""

from dataclasses import dataclass
from typing import Protocol

from balance_analytics.model.samples import Samples


class WriteFailed(Exception):  # noqa: N818 -- named like the failures of kafka_wire
    """A sample was not stored, or only a part of it; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written for a sample: the number of messages or files, and their bytes after compression."""

    pieces: int
    size_bytes: int


class Sink(Protocol):
    """Storage for samples."""

    async def open(self, *, deadline: float) -> None:
        """Create the topic or folder if needed, before the first sample. Raises WriteFailed."""

    async def write(self, samples: Samples, *, deadline: float) -> Written:
        """Store a sample; `deadline` is loop time. Raises WriteFailed; what was written before the failure remains."""
