"""Read models: the cluster's state as values for metrics and `/state`."""
