"""Sampling of a cluster over Kafka's protocol. Rates are computed later, from differences between samples (`jobs/differences.py`)."""
