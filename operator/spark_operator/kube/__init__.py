"""Calls to the Kubernetes API that SparkApplications need: the port, and its client on that of the reconciler."""
