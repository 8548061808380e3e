"""The controller's face to clients and brokers: what it owns is handed to handlers, all else to a live broker, unchanged.

So it can be advertised on every listener: whatever a client sends it once it has seen it, it gets Kafka's own answer.
"""
