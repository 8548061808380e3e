"""What only ZooKeeper mode decides: requests to brokers about changes, deletion by StopReplica, and state that others write."""
