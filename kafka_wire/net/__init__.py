"""One asyncio client and one asyncio server for frames of Kafka's protocol."""
