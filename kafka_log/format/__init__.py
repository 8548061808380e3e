"""Layouts of Kafka's log files, and the rules of a log, as pure functions over bytes and values."""
