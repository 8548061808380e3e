"""ZooKeeper mode of the controller: sessions, controller election, reading, watching and writing of the cluster's state."""
