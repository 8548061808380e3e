"""Partitions' logs of Steward and of Kafka that do the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import Any

from kafka_log.errors import LogError, RefusedAppendError
from kafka_log.files.cleaner import clean_segments
from kafka_log.files.compaction import PendingSwap, find_dirty_part, prepare_cleaning
from kafka_log.files.partition_log import PartitionLog
from kafka_log.files.partition_settings import Checkpoints, PartitionSettings, broker_log_settings
from kafka_log.format.cleaning_schedule import NEVER, CleaningSettings
from kafka_log.format.leader_append import AppendSettings
from kafka_log.format.producers import Origin
from kafka_log.format.retention import RetentionSettings
from kafka_log.format.roll import max_segment_ms
from kafka_wire import ErrorCode
from tests.kafka_log.judge import EXPIRATION_MS, NOW_MS
from tests.kafka_log.producer_cases import described

NO_EPOCHS = b"0\n0\n"
"""A leader-epoch-checkpoint without entries."""

CONFIG = {
    "internal.segment.bytes": 2_000,
    "index.interval.bytes": 300,
    "segment.index.bytes": 1_000,
    "segment.ms": 10_000,
    "segment.jitter.ms": 0,
    "retention.ms": 20_000,
    "retention.bytes": 4_000,
    "file.delete.delay.ms": 1_000,
}


def settings_of(config: Mapping[str, Any]) -> PartitionSettings:
    """Return a topic's configuration as settings."""
    is_compacted = config.get("cleanup.policy") == "compact"
    max_lag_ms = config.get("max.compaction.lag.ms", NEVER)
    return PartitionSettings(
        log=broker_log_settings(
            segment_bytes=config["internal.segment.bytes"],
            segment_ms=max_segment_ms(
                config["segment.ms"], is_compacted=is_compacted, max_compaction_lag_ms=max_lag_ms
            ),
            index_interval_bytes=config["index.interval.bytes"],
            index_max_bytes=config["segment.index.bytes"],
        ),
        retention=RetentionSettings(retention_bytes=config["retention.bytes"], retention_ms=config["retention.ms"]),
        append=AppendSettings(is_compacted=is_compacted),
        cleaning=CleaningSettings(
            delete_retention_ms=config.get("delete.retention.ms", 0),
            min_compaction_lag_ms=config.get("min.compaction.lag.ms", 0),
            max_compaction_lag_ms=max_lag_ms,
        ),
        producer_expiration_ms=EXPIRATION_MS,
        file_delete_delay_ms=config["file.delete.delay.ms"],
    )


class Session:
    """A log of Steward that takes the steps of PartitionJudge.java, and describes itself as that does."""

    def __init__(
        self, folder: Path, checkpoints: Checkpoints | None = None, config: Mapping[str, Any] | None = None
    ) -> None:
        self.now_ms = NOW_MS
        self.high_watermark = 0
        self.log = PartitionLog(folder, settings_of(config or CONFIG), checkpoints, clock=lambda: self.now_ms / 1_000)

    def take(self, step: Sequence[Any]) -> dict[str, Any]:
        """Return the result of a step."""
        try:
            return self._take(*step)
        except RefusedAppendError as error:
            return {"error": error.error_code.name}
        except LogError:
            return {"error": ErrorCode.OFFSET_OUT_OF_RANGE.name}

    def _take(self, name: str, *arguments: Any) -> dict[str, Any]:
        log = self.log
        if name == "lead":
            content, epoch, origin, version = arguments
            appended = log.append_as_leader(content, epoch, Origin[origin], transaction_version=version)
            return {"first_offset": appended.first_offset, "last_offset": appended.last_offset}
        if name == "follow":
            followed = log.append_as_follower(*arguments)
            assert followed is not None
            return {"first_offset": followed.first_offset, "last_offset": followed.last_offset}
        if name == "start_offset":
            return {"moved": log.raise_start_offset(arguments[0], high_watermark=self.high_watermark)}
        if name == "delete_old":
            return {"deleted": len(log.delete_old_segments(high_watermark=self.high_watermark))}
        if name == "high_watermark":
            self.high_watermark = min(max(arguments[0], log.start_offset), log.end_offset)
            log.producers.advance_high_watermark(self.high_watermark)
        elif name == "truncate":
            log.truncate_to(arguments[0])
            self.high_watermark = min(self.high_watermark, log.end_offset)
        elif name == "clean":
            first_dirty_offset, memory_bytes = arguments
            return {"end_offset": self.clean(first_dirty_offset, memory_bytes // 24 * 9 // 10)}
        elif name == "dirty":
            part = find_dirty_part(log, arguments[0], high_watermark=self.high_watermark)
            return {
                "first": part.first_offset,
                "end": part.end_offset,
                "clean_bytes": part.clean_bytes,
                "dirty_bytes": part.dirty_bytes,
                "is_overdue": part.is_overdue,
            }
        elif name == "roll":
            log.roll()
        elif name == "time":
            self.now_ms = arguments[0]
        elif name == "run_deletions":
            log.run_deletions()
        return {}

    def clean(self, first_dirty_offset: int, max_keys: int) -> int:
        """Compact the log; return the first dirty offset of the next round."""
        task = prepare_cleaning(self.log, first_dirty_offset, high_watermark=self.high_watermark)
        if task is None:
            return first_dirty_offset
        result = clean_segments(replace(task, max_keys=max_keys))
        for group in result.groups:
            swap = PendingSwap(self.log.log.folder, group)
            swap.prepare()
            swap.finish(self.log)
        return result.end_offset

    def state(self) -> dict[str, Any]:
        """Return the state of the log."""
        return {
            "start_offset": self.log.start_offset,
            "end_offset": self.log.end_offset,
            "first_unstable_offset": self.log.producers.first_unstable_offset,
            "segments": self.log.log.segment_offsets,
            "producers": described(self.log.producers),
        }


def comparable(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is compared of a state in Java. The recovery point differs: here, what was checked is on the disk."""
    return {key: state[key] for key in ("start_offset", "end_offset", "first_unstable_offset", "segments", "producers")}


INDEXES = {".index", ".timeindex"}


def files(folder: Path, *, without: AbstractSet[str] = frozenset()) -> dict[str, bytes]:
    """Return the files of a log by name, without what not both have: deleted files, and indexes and epochs without an entry."""
    return {
        path.name: content
        for path in folder.iterdir()
        if path.suffix not in {".deleted", *without}
        and ((content := path.read_bytes()) not in {b"", NO_EPOCHS} or path.suffix == ".log")
    }
