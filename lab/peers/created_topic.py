"""Creation of a topic through a broker, also where its request reaches the controller twice."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic


def create_topic(admin: AdminClient, new: NewTopic, timeout_s: float) -> None:
    """Create a topic that is not there. Raises KafkaException.

    A broker forwards the request again when the controller has not answered it within its time, as Kafka's does. The answer to the second
    one is that the topic exists.
    """
    try:
        admin.create_topics([new])[new.topic].result(timeout_s)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
