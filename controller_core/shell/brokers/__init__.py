"""Communication with brokers: request queues, request bodies and the interpretation of answers."""
