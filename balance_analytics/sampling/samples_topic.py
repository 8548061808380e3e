"""The samples topic, in the sampled cluster: created if it does not exist, and checked if it does.

Its cleanup.policy is delete: compaction would keep only the last sample of each topic.
"""

import string
from dataclasses import dataclass

from balance_analytics.model.sample_rows import SAMPLES_TOPIC
from balance_analytics.sampling.settings import MAX_DECODED_BYTES
from kafka_wire import ApiKey, Body, ErrorCode
from kafka_wire.net.client import RequestFailed
from kafka_wire.net.cluster import ClusterClient
from kafka_wire.net.connection import body_decoder

REPLICATION_FACTOR = 3
"""Or the number of brokers, if lower."""
MAX_MESSAGE_BYTES = 1_048_588
"""Kafka's default of max.message.bytes, set on the topic as the cluster's may be lower: a value has up to 900 kB."""
CREATE_TIMEOUT_MS = 15_000
TOPIC_RESOURCE = 2
"""ConfigResource.Type.TOPIC."""
MAX_PARTITIONS = 1_000
"""Limit for the samples topic: more are not needed, as one partition takes the samples of a cluster with a million partitions."""
MAX_NAME_CHARACTERS = 249
NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
"""Characters of a topic's name (org.apache.kafka.common.internals.Topic)."""
CREATE_VERSIONS = (2, 7)
"""Of CreateTopics: the first version whose response has an error message, and the last one of Kafka 4.3."""


class SamplesTopicError(Exception):
    """The topic cannot be used; the message contains the reason and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesTopic:
    """Settings with which the topic is created; an existing one is used unchanged."""

    name: str = SAMPLES_TOPIC
    partitions: int = 6
    retention_ms: int = 30 * 24 * 3_600_000

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= MAX_NAME_CHARACTERS or not set(self.name) <= NAME_CHARACTERS:
            raise ValueError(
                f"{self.name!r} is not a valid topic name: it may contain letters, digits, '.', '_' and '-'"
            )
        if not 0 < self.partitions <= MAX_PARTITIONS:
            raise ValueError(f"{self.partitions} partitions of {self.name}; 1 to {MAX_PARTITIONS} are allowed")
        if self.retention_ms <= 0:
            raise ValueError(f"a retention of {self.retention_ms} ms; it must be positive")

    def request(self, brokers: int) -> Body:
        """Return the body of a CreateTopics request."""
        factor = min(REPLICATION_FACTOR, brokers)
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "compression.type": "producer",
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            # If the topic has several replicas, samples can be written while one broker is offline.
            "min.insync.replicas": str(max(1, factor - 1)),
        }
        topic = {
            "name": self.name,
            "num_partitions": self.partitions,
            "replication_factor": factor,
            "configs": [{"name": name, "value": value} for name, value in configs.items()],
        }
        return {"topics": [topic], "timeout_ms": CREATE_TIMEOUT_MS, "validate_only": False}


async def leaders_of(client: ClusterClient, topic: SamplesTopic, *, deadline: float) -> list[int] | None:
    """Return the leader of each partition, -1 for none; or None if the topic does not exist. Raises RequestFailed, SamplesTopicError."""
    found = await client.metadata(deadline=deadline, topics=[topic.name])
    if not len(found.partition_index):
        return None
    leaders = [-1] * (int(found.partition_index.max()) + 1) if found.partition_index.max() < MAX_PARTITIONS else []
    for partition, leader in zip(found.partition_index.tolist(), found.leader_id.tolist(), strict=True):
        if 0 <= partition < len(leaders):
            leaders[partition] = leader
    if not leaders:
        raise SamplesTopicError(f"the topic {topic.name} has more than {MAX_PARTITIONS} partitions: choose another one")
    return leaders


async def create(client: ClusterClient, topic: SamplesTopic, *, deadline: float) -> None:
    """Create the topic unless it exists. Raises RequestFailed, SamplesTopicError."""
    found = await client.metadata(deadline=deadline, topics=[topic.name])
    body = await client.call_controller(
        ApiKey.CREATE_TOPICS,
        topic.request(len(found.brokers)),
        body_decoder(ApiKey.CREATE_TOPICS, MAX_DECODED_BYTES),
        lambda response: [created["error_code"] for created in response["topics"]],
        deadline=deadline,
        versions=CREATE_VERSIONS,
    )
    for created in body["topics"]:
        error = ErrorCode.of(created["error_code"])
        if error not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            message = created["error_message"] or error.message
            raise SamplesTopicError(
                f"the topic {topic.name} cannot be created ({error.name}: {message}): "
                "create it, grant the sampler's user the right, or choose another topic"
            )


async def check(client: ClusterClient, topic: SamplesTopic, *, deadline: float) -> None:
    """Raise SamplesTopicError if the topic is compacted. Without the right to read configs there is no check. Raises RequestFailed."""
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic.name, "configuration_keys": ["cleanup.policy"]}
    try:
        body = await client.call(
            ApiKey.DESCRIBE_CONFIGS,
            {"resources": [resource]},
            body_decoder(ApiKey.DESCRIBE_CONFIGS, MAX_DECODED_BYTES),
            deadline=deadline,
        )
    except RequestFailed:
        return
    for config in (config for result in body["results"] for config in result["configs"]):
        if config["name"] == "cleanup.policy" and "compact" in (config["value"] or ""):
            raise SamplesTopicError(
                f"the topic {topic.name} has cleanup.policy={config['value']}: compaction would keep only the last "
                "sample of each topic. Set it to delete, or choose another topic"
            )
