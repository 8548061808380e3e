"""Recovery of a log that ends in damage.

A crash during a write leaves an incomplete batch, or one with a wrong checksum, with nothing valid behind it: it was never flushed, so never
acknowledged, and is cut off. Where a valid batch follows, a crash is not the reason: the disk returned something else than what was written.
A voter that cut there would lose records that it has acknowledged, and a majority that counted it could lose them with it (invariant Q11).
Kafka cuts in both cases.
"""

from dataclasses import dataclass

from kafka_log.format.batches import BadBatchError


@dataclass(frozen=True, slots=True)
class Damage:
    """The first bad batch of a log, and what follows it."""

    bad: BadBatchError
    next_offset: int
    """Offset that the bad batch should have."""
    valid_position: int | None
    """Position of a valid batch behind it in the same segment, or its own if only its offset is too high."""
    later_segments: tuple[int, ...]
    """Base offsets of segments behind it that have content."""


def is_torn_tail(damage: Damage) -> bool:
    """Return whether a crash during a write explains the damage."""
    return damage.valid_position is None and not damage.later_segments


def corruption(path: str, damage: Damage) -> str:
    """Return the error for a log that is not opened because of its damage."""
    follows = (
        f"there is a valid batch at position {damage.valid_position}"
        if damage.valid_position is not None
        else f"segments with content follow, the first from offset {damage.later_segments[0]}"
    )
    return (
        f"Found invalid messages in log segment {path} at byte offset {damage.bad.position}, offset {damage.next_offset}: "
        f"{damage.bad.reason}; {follows}. A crash does not explain this, so the log is not cut: acknowledged records might be lost. "
        "Check the disk. If a majority of the other voters runs, remove this voter, format an empty folder and add it again; "
        "otherwise restore the folder from a backup."
    )
