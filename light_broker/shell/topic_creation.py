"""Automatic creation of topics: those that a client names, and internal ones.

The control plane creates them, with the broker's own rights. Source: AutoTopicCreationManager.
"""

from collections.abc import Iterable

from kafka_wire import Body, ErrorCode
from light_broker.control.port import ControlPlaneError
from light_broker.shell.broker import Broker

CREATE_TIMEOUT_MS = 30_000
"""Kafka's request.timeout.ms, which its brokers use for these requests."""

CONSUMER_OFFSETS, TRANSACTION_STATE = "__consumer_offsets", "__transaction_state"


async def create_topics(broker: Broker, names: Iterable[str]) -> dict[str, ErrorCode]:
    """Create topics with the defaults of the broker, or of an internal topic. Returns the errors; NONE where the topic exists now."""
    wanted = list(dict.fromkeys(names))
    request = {"topics": [_request(broker, name) for name in wanted], "timeout_ms": CREATE_TIMEOUT_MS}
    try:
        answer = await broker.control.create_topics(request)
    except ControlPlaneError as error:
        return dict.fromkeys(wanted, error.code)
    return {
        topic["name"]: ErrorCode.NONE
        if topic["error_code"] == ErrorCode.TOPIC_ALREADY_EXISTS
        else ErrorCode.of(topic["error_code"])
        for topic in answer["topics"]
    }


def _request(broker: Broker, name: str) -> Body:
    settings = broker.settings
    partitions, replicas = -1, -1
    configs: dict[str, str] = {}
    if name == CONSUMER_OFFSETS:
        partitions = settings.number("offsets.topic.num.partitions")
        replicas = settings.number("offsets.topic.replication.factor")
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.number("offsets.topic.segment.bytes")),
        }
    elif name == TRANSACTION_STATE:
        partitions = settings.number("transaction.state.log.num.partitions")
        replicas = settings.number("transaction.state.log.replication.factor")
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings.number("transaction.state.log.min.isr")),
            "segment.bytes": str(settings.number("transaction.state.log.segment.bytes")),
            "unclean.leader.election.enable": "false",
        }
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [{"name": key, "value": value} for key, value in configs.items()],
    }
