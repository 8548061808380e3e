"""State of Kafka as decisions read it, and rules on it that are the same for every kind."""
