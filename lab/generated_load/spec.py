"""Specification of a load. The same spec creates the same load, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass

MONDAY_S = 1_767_571_200
"""2026-01-05T00:00:00Z: weeks begin with it."""


@dataclass(frozen=True, slots=True)
class LoadSpec:
    """Sizes and rates; every number of happenings may be 0."""

    seed: int = 1
    partitions: int = 1_000
    topics: int = 50
    brokers: int = 6
    racks: int = 3
    days: int = 14
    hot: int = 8
    """Partitions that carry many times their topic's usual load."""
    growth_per_day: float = 0.01
    noise: float = 0.1
    """Standard deviation of an hour's load around its expectation."""
    outages: int = 1
    """Brokers that are down for some hours, each once."""
    gaps: int = 3
    """Periods without samples, of 5 to 90 minutes (only in samples per minute)."""
    resets: int = 2
    """Small partitions whose offsets start again at 0."""
    deleted_topics: int = 0
    """Small topics that end in the middle."""
    not_preferred: float = 0.05
    """Part of the partitions that their second replica leads."""
    broker_bytes: float = 20e6
    """Bytes/s that a broker takes in on the average at the start."""
    start_s: int = MONDAY_S
    cluster_id: str = "generated-load-cluster"

    @property
    def hours(self) -> int:
        """Hours of the whole load."""
        return self.days * 24
