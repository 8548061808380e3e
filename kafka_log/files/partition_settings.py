"""Settings of a partition's log, and its checkpoints."""

from dataclasses import dataclass, field

from kafka_log.files.deferred_deletion import DEFAULT_DELAY_MS
from kafka_log.files.producer_recovery import DEFAULT_EXPIRATION_MS
from kafka_log.format.cleaning_schedule import CleaningSettings
from kafka_log.format.flush_schedule import FlushSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.retention import RetentionSettings
from kafka_log.format.roll import LogSettings

MAX_FETCHED_BATCH_BYTES = 2**31 - 1
"""A follower takes each batch that its leader has, whatever the topic's limit is now."""


def broker_log_settings(**settings: int) -> LogSettings:
    """Return the settings of a log as a broker has it: with gaps between batches, cut in front of damage, and flushed by a schedule."""
    return LogSettings(
        contiguous=False,
        cut_at_corruption=True,
        flush_at_roll=False,
        max_batch_bytes=MAX_FETCHED_BATCH_BYTES,
        **settings,
    )


@dataclass(frozen=True, slots=True)
class PartitionSettings:
    """Settings of a partition's log, with Kafka's defaults."""

    log: LogSettings = field(default_factory=broker_log_settings)
    append: AppendSettings = field(default_factory=AppendSettings)
    retention: RetentionSettings = field(default_factory=RetentionSettings)
    cleaning: CleaningSettings = field(default_factory=CleaningSettings)
    producer_expiration_ms: int = DEFAULT_EXPIRATION_MS
    """Time after which a producer that is idle is forgotten (producer.id.expiration.ms)."""
    flush: FlushSettings = field(default_factory=FlushSettings)
    file_delete_delay_ms: int = DEFAULT_DELAY_MS
    """Time between the removal of a segment and the deletion of its files (file.delete.delay.ms)."""


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Entries of a log in the files of its data folder (`data_folder.py`)."""

    recovery_point: int = 0
    """Offset below which everything is on the disk."""
    log_start_offset: int = 0
    is_clean: bool = False
    """Whether the log was closed by a clean shutdown, so that nothing is checked."""
