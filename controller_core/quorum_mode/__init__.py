"""KRaft mode: what is different when metadata is a log that brokers read, and brokers register and send heartbeats (KIP-631)."""
