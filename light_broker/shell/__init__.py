"""Process of the broker: listeners, requests, replicas, logs and coordinators."""
