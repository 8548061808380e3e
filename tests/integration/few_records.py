"""Clients of partition 0 of a topic, for tests with a few records."""

from confluent_kafka import Consumer, Producer, TopicPartition

PATIENCE_S = 60.0


def produce(bootstrap: str, topic: str, values: list[bytes], **config: object) -> None:
    """Produce values to partition 0; all are acknowledged."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, **config})
    errors: list[object] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(PATIENCE_S) == 0
    assert errors == [None] * len(values)


def read(bootstrap: str, topic: str, count: int, **config: object) -> list[bytes]:
    """Read the first values of partition 0."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, **config})
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        found = consumer.consume(count, timeout=PATIENCE_S)
        assert [record.error() for record in found] == [None] * len(found)
        return [record.value() for record in found]
    finally:
        consumer.close()
