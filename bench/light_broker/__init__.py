"""Benchmarks of the light broker, compared with Kafka."""
