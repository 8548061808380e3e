"""The pure node of a KRaft quorum: elections, replication and changing voters, as functions of values.

`start` makes a node from what is on disk; `step` and `tick` take a message or the time and return a `Ready`: the next node, and what the
shell persists, sends and applies. The records are opaque; metadata is another package's.
"""
