"""Values of the control plane: brokers, topics, partitions in columns, events, changes, decisions."""
