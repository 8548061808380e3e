"""The Kubernetes API: the port that the engine writes through, and the client behind it. Watching is kopf's part."""
