"""Benchmarks of the controller of ZooKeeper mode, compared with Kafka's."""
