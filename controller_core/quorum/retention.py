"""Retention of snapshots: when the oldest one is deleted, together with the records before the end of the next one.

The newest snapshot always stays, and with it all records after its end. Source: KafkaRaftLog.maybeClean.
"""

from dataclasses import dataclass

CLEANING_INTERVAL_MS = 60_000
"""Time between two checks of the limits, also before the first one (KafkaRaftClient's RaftMetadataLogCleanerManager)."""


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits; a negative one is never reached."""

    max_bytes: int = 100 * 1024 * 1024
    """Of the log and all snapshots (metadata.max.retention.bytes)."""
    max_age_ms: int = 7 * 24 * 60 * 60 * 1000
    """Of the last record in a snapshot (metadata.max.retention.ms)."""

    def size_reason(self, log_bytes: int, snapshot_bytes: int) -> str | None:
        """Return why the size demands a deletion; None if it does not.

        >>> Retention(max_bytes=100).size_reason(60, 41)
        'the log has 60 bytes and its snapshots 41, more than 100'
        >>> Retention(max_bytes=100).size_reason(60, 40)
        """
        if not 0 <= self.max_bytes < log_bytes + snapshot_bytes:
            return None
        return f"the log has {log_bytes} bytes and its snapshots {snapshot_bytes}, more than {self.max_bytes}"

    def age_reason(self, last_timestamp_ms: int, now_ms: int) -> str | None:
        """Return why the age of the oldest snapshot's last record demands a deletion; None if it does not.

        >>> Retention(max_age_ms=100).age_reason(1000, now_ms=1101)
        'its last record is 101 ms old, more than 100'
        >>> Retention(max_age_ms=100).age_reason(1000, now_ms=1100)
        """
        age_ms = now_ms - last_timestamp_ms
        if not 0 <= self.max_age_ms < age_ms:
            return None
        return f"its last record is {age_ms} ms old, more than {self.max_age_ms}"
