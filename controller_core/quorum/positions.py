"""Positions in the log: an offset and an epoch. Which epoch wrote which offsets is in `kafka_log.format.epochs`."""

from dataclasses import dataclass
from functools import total_ordering

NO_EPOCH = 0
"""Epoch of an empty log; the first leader has epoch 1 or higher."""


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """An end offset and the epoch of the record before it: the id of a snapshot, or the length of a log.

    A log is longer than another one if its last epoch is higher, or equal with a higher offset. `SnapshotId` of kafka_log has the same
    fields, but only names snapshot files and is ordered by offset first; the shell converts one to the other.

    >>> Position(3, epoch=2) > Position(9, epoch=1)
    True
    """

    offset: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        """Whether a log can have this position; messages of other nodes may name any."""
        return self.offset >= 0 and self.epoch >= 0

    def __lt__(self, other: "Position") -> bool:
        return (self.epoch, self.offset) < (other.epoch, other.offset)


BOOTSTRAP_SNAPSHOT = Position(0, NO_EPOCH)
"""Id of the snapshot that formatting writes. It is not replicated: the first leader appends its control records to the log."""
