"""Values of the Kubernetes API that all kinds share: metadata, names and Leases."""
