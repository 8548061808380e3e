"""Pure rules over the cluster's state, shared by every way to hold a cluster: elections, partition changes, placement, configs."""
