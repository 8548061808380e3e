"""Key skew from a sketch: the keys with the most messages of a topic, with at most a few hundred counters.

Misra and Gries (1982): at most k counters; a message increments the counter of its key, or takes a free one, or, if none is free, decrements
every counter. A counter is then never too high, and too low by at most n / (k + 1) after n messages. Sketches are merged by
adding counters and subtracting the (k+1)-th highest (Agarwal et al. 2012), within the same bound. Here keys come in batches of equal
keys already counted, which is a merge with an exact sketch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

COUNTERS = 256
"""All keys with more than one message in 257 are found."""


@dataclass(frozen=True, slots=True)
class KeySketch:
    """`counts` by key, of `messages` in all; each is at most `error` too low. `counters` is the limit on their number."""

    counters: int = COUNTERS
    messages: int = 0
    error: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def adding(self, batch: Mapping[str, int]) -> KeySketch:
        """Return the sketch after a batch of messages, counted by key."""
        return self.merged(KeySketch(self.counters, sum(batch.values()), 0, batch))

    def merged(self, other: KeySketch) -> KeySketch:
        """Return the sketch of both.

        >>> both = KeySketch(counters=1).adding({"a": 5, "b": 2})
        >>> dict(both.counts), both.error, both.messages
        ({'a': 3}, 2, 7)
        """
        counts = dict(self.counts)
        for key, count in other.counts.items():
            counts[key] = counts.get(key, 0) + count
        messages, error = self.messages + other.messages, self.error + other.error
        if len(counts) > self.counters:
            off = sorted(counts.values(), reverse=True)[self.counters]
            counts = {key: count - off for key, count in counts.items() if count > off}
            error += off
        return KeySketch(self.counters, messages, error, counts)


@dataclass(frozen=True, slots=True)
class Heavy:
    """A key and the part of all messages that it has, at least and at most."""

    key: str
    at_least: float
    at_most: float


def heavy_keys(sketch: KeySketch, part: float) -> list[Heavy]:
    """Return the keys that may have `part` of the messages or more, the heaviest first; none is missing."""
    if not sketch.messages:
        return []
    found = (Heavy(key, n / sketch.messages, (n + sketch.error) / sketch.messages) for key, n in sketch.counts.items())
    return sorted((key for key in found if key.at_most >= part), key=lambda key: (-key.at_least, key.key))


def partition_floor(sketch: KeySketch) -> float:
    """Return the part of the topic that one partition carries at least, however many there are: its heaviest key's."""
    return max(sketch.counts.values(), default=0) / sketch.messages if sketch.messages else 0.0
