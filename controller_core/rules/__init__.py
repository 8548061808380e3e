"""Pure rules that ZooKeeper mode and KRaft share: elections, partition changes, placement, configs, quotas."""
