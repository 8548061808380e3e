"""Decisions of ZooKeeper mode only: requests to brokers, deletion by StopReplica, and state that other processes write."""
