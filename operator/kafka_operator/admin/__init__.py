"""Kafka's Admin protocol: the port that the engine speaks to, and the client behind it. Nothing is decided here."""
