"""The generic part of an operator: queue, loop, retries, Leases and the Kubernetes API. It imports no kind of resource."""
