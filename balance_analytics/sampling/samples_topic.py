"""The topic that samples are kept in, on the cluster itself: created when it is not there, and looked at before it is trusted.

It is small beside what it tells of, and keeps every look for its retention: cleanup.policy is delete, as compaction would leave
the last look of each topic alone. Leaves out writing to it (topic_writer).
"""

import string
from dataclasses import dataclass

from balance_analytics.model.sample_rows import SAMPLES_TOPIC
from balance_analytics.sampling.asking import AskedBroker, AskFailed, decoded
from balance_analytics.sampling.cluster_link import ClusterLink
from kafka_wire.api import ApiKey
from kafka_wire.codec import Body
from kafka_wire.errors import ErrorCode
from kafka_wire.metadata_columns import MetadataColumns

REPLICATION_FACTOR = 3
"""Or as many as there are brokers."""
MAX_MESSAGE_BYTES = 1_048_588
"""max.message.bytes' default, set on the topic in case the cluster's own is lower: a value has up to 900 kB."""
CREATE_TIMEOUT_MS = 15_000
TOPIC_RESOURCE = 2
"""ConfigResource.Type.TOPIC."""
MAX_PARTITIONS = 1_000
"""Of the samples topic: one takes what a cluster of a million partitions has to say."""
MAX_NAME_CHARACTERS = 249
NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")
"""Of a topic's name (org.apache.kafka.common.internals.Topic)."""
FIRST_CREATE_VERSION = 2
"""Of CreateTopics: the first that says in words why it refuses."""


class SamplesTopicError(Exception):
    """The topic cannot be had; says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesTopic:
    """How the topic is made; one that is there is taken as it is."""

    name: str = SAMPLES_TOPIC
    partitions: int = 6
    retention_ms: int = 30 * 24 * 3_600_000

    def __post_init__(self) -> None:
        if not 0 < len(self.name) <= MAX_NAME_CHARACTERS or not set(self.name) <= NAME_CHARACTERS:
            raise ValueError(f"{self.name!r} is no name for a topic: letters, digits, '.', '_' and '-' are taken")
        if not 0 < self.partitions <= MAX_PARTITIONS:
            raise ValueError(f"{self.partitions} partitions of {self.name}; 1 to {MAX_PARTITIONS} are taken")
        if self.retention_ms <= 0:
            raise ValueError(f"a retention of {self.retention_ms} ms would keep nothing")

    def request(self, brokers: int) -> Body:
        """Build CreateTopics."""
        factor = min(REPLICATION_FACTOR, brokers)
        configs = {
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_ms),
            "compression.type": "producer",
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            # One broker may be away without a look being lost, if the topic has more than one replica at all.
            "min.insync.replicas": str(max(1, factor - 1)),
        }
        topic = {
            "name": self.name,
            "num_partitions": self.partitions,
            "replication_factor": factor,
            "configs": [{"name": name, "value": value} for name, value in configs.items()],
        }
        return {"topics": [topic], "timeout_ms": CREATE_TIMEOUT_MS, "validate_only": False}


async def leaders_of(link: ClusterLink, topic: SamplesTopic, *, deadline: float) -> list[int] | None:
    """Return the leader of each partition, -1 for none; None: there is no such topic yet. Raises AskFailed."""
    found = await link.metadata(deadline=deadline, topics=[topic.name])
    if not len(found.partition_index):
        return None
    leaders = [-1] * (int(found.partition_index.max()) + 1) if found.partition_index.max() < MAX_PARTITIONS else []
    for partition, leader in zip(found.partition_index.tolist(), found.leader_id.tolist(), strict=True):
        if 0 <= partition < len(leaders):
            leaders[partition] = leader
    if not leaders:
        raise SamplesTopicError(f"the topic {topic.name} has more than {MAX_PARTITIONS} partitions: take another one")
    return leaders


async def create(link: ClusterLink, topic: SamplesTopic, *, deadline: float) -> None:
    """Have the topic made, unless it is there. Raises AskFailed and SamplesTopicError."""
    found = await link.metadata(deadline=deadline, topics=[topic.name])
    broker = _controller(link, found)
    body = await broker.ask(
        ApiKey.CREATE_TOPICS,
        lambda _: topic.request(len(found.brokers)),
        decoded(ApiKey.CREATE_TOPICS),
        deadline=deadline,
        lowest=FIRST_CREATE_VERSION,
    )
    for one in body["topics"]:
        error = ErrorCode.of(one["error_code"])
        if error not in {ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS}:
            words = one["error_message"] or error.message
            raise SamplesTopicError(
                f"the topic {topic.name} cannot be created ({error.name}: {words}): "
                "create it, allow the sampler's user to, or choose another one"
            )


def _controller(link: ClusterLink, found: MetadataColumns) -> AskedBroker:
    """Return who creates topics: the controller, or in KRaft mode any broker, which passes it on."""
    for broker_id in (found.controller_id, *link.broker_ids):
        if (broker := link.broker(broker_id)) is not None:
            return broker
    raise SamplesTopicError("no broker is there that could create a topic")


async def check(link: ClusterLink, topic: SamplesTopic, *, deadline: float) -> None:
    """Refuse a topic that is compacted; a user who may not ask for configs is believed. Raises AskFailed, SamplesTopicError."""
    found = await link.metadata(deadline=deadline, topics=[topic.name])
    resource = {"resource_type": TOPIC_RESOURCE, "resource_name": topic.name, "configuration_keys": ["cleanup.policy"]}
    try:
        body = await _controller(link, found).ask(
            ApiKey.DESCRIBE_CONFIGS,
            lambda _: {"resources": [resource]},
            decoded(ApiKey.DESCRIBE_CONFIGS),
            deadline=deadline,
        )
    except AskFailed:
        return
    for one in (each for result in body["results"] for each in result["configs"]):
        if one["name"] == "cleanup.policy" and "compact" in (one["value"] or ""):
            raise SamplesTopicError(
                f"the topic {topic.name} has cleanup.policy={one['value']}: compaction would leave the last look of "
                "each topic alone. Set it to delete, or choose another topic"
            )
