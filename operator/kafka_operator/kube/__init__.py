"""Calls to the Kubernetes API that only Clusters and approvals need: ports, and clients on that of the reconciler."""
