"""Replicas of a broker: roles, reads, writes, replication, and requests that wait."""
