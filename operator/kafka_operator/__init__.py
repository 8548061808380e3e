"""The Kubernetes operator: Topic, Reassignment and Cluster resources, reconciled through Kafka's Admin protocol."""
