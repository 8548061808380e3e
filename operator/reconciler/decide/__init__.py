"""Decisions that are the same for all kinds: conditions, pauses, Leases and times of schedules. Pure, as those of each operator."""
