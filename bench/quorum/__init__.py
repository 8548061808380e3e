"""Benchmarks of the KRaft quorum, compared with Kafka's."""
