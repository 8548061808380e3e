"""Parts of the soak test: faults of a cluster, requests to it during the faults, and invariants."""
