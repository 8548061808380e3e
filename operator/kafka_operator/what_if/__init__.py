"""`steward what-if`: reads a live cluster for `controller_core.views.what_if`. Nothing is changed, neither in Kafka nor in Kubernetes."""
