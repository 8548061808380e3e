"""Kafka's wire protocol: bytes to values and back, and one asyncio client and server for everybody."""
