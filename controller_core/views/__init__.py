"""Read models: the cluster's state as values for metrics, `/state` and what-if."""
