"""Groups and their committed offsets (classic protocol): a state machine for each group, without clock, log or sockets."""
