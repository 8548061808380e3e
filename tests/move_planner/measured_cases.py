"""Clusters that are uneven in several resources; the benchmark's are made the same way, larger."""

from bench.measured_plan import uneven

__all__ = ["uneven"]
