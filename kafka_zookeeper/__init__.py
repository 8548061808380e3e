"""Kafka's znodes: paths, formats, and a ZooKeeper session with multi-reads and fenced transactions."""
