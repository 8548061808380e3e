"""Kafka's broker, for laptops, tests and small clusters.

`core` decides and is pure, `control` connects to the control plane of a cluster, `shell` has the sockets, files and tasks.
"""
