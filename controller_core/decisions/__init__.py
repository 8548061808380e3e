"""Decisions that ZooKeeper mode and KRaft share, from an event and the cluster to changes; and `apply`, which applies changes."""
