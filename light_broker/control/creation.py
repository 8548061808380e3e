"""Automatic creation of topics: the request of a broker with its own defaults."""

from kafka_node.configs.layered_settings import Settings
from kafka_wire import Body

CREATION_WAIT_S = 5.0
"""Time for which automatic creation waits until the metadata has the topic. After it, clients ask again."""


def with_defaults(request: Body, settings: Settings) -> Body:
    """Return a CreateTopics request with num.partitions and default.replication.factor of this broker where it has no numbers."""
    partitions, replicas = settings.number("num.partitions"), settings.number("default.replication.factor")
    topics = [
        {
            **topic,
            "num_partitions": partitions if topic["num_partitions"] < 0 else topic["num_partitions"],
            "replication_factor": replicas if topic["replication_factor"] < 0 else topic["replication_factor"],
        }
        for topic in request["topics"]
    ]
    return {**request, "topics": topics}
