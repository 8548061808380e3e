"""Decisions on Reassignments, and the parts of their execution: moves, throttles, limits and progress."""
