"""Kafka's znodes: their paths, their formats, and fenced multi-reads and multi-writes over one session."""
