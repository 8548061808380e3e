"""Benchmarks of the controller of KRaft mode under stock Kafka 4.x brokers, compared with Kafka's."""
