"""`steward import`: the topics of a live cluster as Topic manifests. Nothing is changed, neither in Kafka nor in Kubernetes."""
