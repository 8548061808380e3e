"""Clusters that are uneven in several resources, built as for the benchmark."""

from bench.planner.measured_plan import uneven

__all__ = ["uneven"]
