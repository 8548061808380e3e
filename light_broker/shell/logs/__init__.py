"""Logs of a broker's replicas in its log directories: start, jobs, compaction, checkpoints."""
