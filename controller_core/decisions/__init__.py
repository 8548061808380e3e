"""Decisions that every way to hold a cluster shares: an event and the cluster in, changes out; and `apply`, which makes changes true."""
