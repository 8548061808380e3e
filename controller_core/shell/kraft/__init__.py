"""The controller of a cluster in KRaft mode: it applies the metadata log of its quorum, and serves brokers."""
