"""Producer snapshots in a partition's folder: NNN.snapshot has the producers of the log at offset NNN.

They are written without fsync: a torn one has a wrong checksum, and recovery then begins at an earlier one. Source: Kafka's
ProducerStateManager.
"""

import logging
from pathlib import Path

from kafka_log.errors import LogWriteError, UnreadableFileError
from kafka_log.format.names import PRODUCERS_SUFFIX, segment_name, segment_of
from kafka_log.format.producer_snapshot import decode_producers, encode_producers
from kafka_log.format.producer_states import ProducerStates

log = logging.getLogger(__name__)


class ProducerSnapshots:
    """The snapshots of one log."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_offset = 0
        """Offset up to which no further snapshot is of use: that of the last one, or where the log's producers begin."""

    def offsets(self) -> list[int]:
        """Return the offsets of the snapshots in order."""
        names = (segment_of(path.name) for path in self._folder.iterdir())
        return sorted(found[0] for found in names if found and found[1] == PRODUCERS_SUFFIX)

    def take(self, states: ProducerStates) -> bool:
        """Write a snapshot of the producers at their end offset, unless there is one. Return whether it was written.

        A failure is logged and not raised: without the snapshot, the next recovery reads more of the log.
        """
        if states.end_offset <= self._last_offset:
            return False
        path = self._path(states.end_offset)
        try:
            path.write_bytes(encode_producers(states.entries.values()))
        except OSError as error:
            log.warning("Failed to write producer snapshot", extra={"path": str(path), "error": str(error)})
            return False
        self._last_offset = states.end_offset
        return True

    def load_latest(self, states: ProducerStates, log_start_offset: int, *, now_ms: int, expiration_ms: int) -> None:
        """Load the producers of the latest snapshot that can be read, or of an empty log at `log_start_offset`.

        Snapshots that cannot be read are deleted, as they can be built again.
        """
        for offset in reversed(self.offsets()):
            try:
                entries = decode_producers(self._path(offset).read_bytes())
            except (OSError, UnreadableFileError) as error:
                log.warning(
                    "Deleting unreadable producer snapshot",
                    extra={"path": str(self._path(offset)), "error": str(error)},
                )
                self.delete(offset)
                continue
            states.load(entries, offset, now_ms=now_ms, expiration_ms=expiration_ms)
            self._last_offset = offset
            return
        states.clear(log_start_offset)
        self._last_offset = log_start_offset

    def delete_outside(self, log_start_offset: int, end_offset: int) -> None:
        """Delete the snapshots above the log's end, and those that are not above its start."""
        for offset in self.offsets():
            if not log_start_offset < offset <= end_offset:
                self.delete(offset)

    def delete_strays(self, segment_offsets: list[int]) -> None:
        """Delete the snapshots that belong to no segment, except the latest one if it is above all segments.

        That one was written when the log was closed.
        """
        strays = [offset for offset in self.offsets() if offset not in set(segment_offsets)]
        kept = strays[-1:] if strays and strays[-1] >= max(segment_offsets, default=0) else []
        for offset in strays:
            if offset not in kept:
                self.delete(offset)

    def restart(self, last_offset: int) -> None:
        """Delete all snapshots, for a log without records; the next one is written above `last_offset`."""
        for offset in self.offsets():
            self.delete(offset)
        self._last_offset = last_offset

    def after_start_moved(self, log_start_offset: int) -> None:
        """Note that the log starts at a higher offset; its deleted segments took their snapshots along."""
        self._last_offset = max(self.offsets(), default=log_start_offset)

    def delete(self, offset: int) -> None:
        """Delete a snapshot. Raises LogWriteError."""
        try:
            self._path(offset).unlink(missing_ok=True)
        except OSError as error:
            raise LogWriteError(f"Failed to delete {self._path(offset)}: {error.strerror}") from error

    def _path(self, offset: int) -> Path:
        return self._folder / segment_name(offset, PRODUCERS_SUFFIX)
