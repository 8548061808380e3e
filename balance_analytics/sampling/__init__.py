"""Looks at a cluster over Kafka's own protocol. Leaves out rates, which come of differences later."""
