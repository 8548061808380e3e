"""A partition's log in Kafka's files, for the quorum and for brokers.

`format` has the layouts and rules as pure functions over bytes; `files` has segments, indexes, snapshots and the log itself.
"""
