"""Real peers as processes: Kafka, ZooKeeper, Kubernetes, Steward and the light broker, and clusters of them."""
