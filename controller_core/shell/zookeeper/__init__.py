"""The controller's world in ZooKeeper mode: who holds the cluster, what is written, what is watched."""
