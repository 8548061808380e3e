"""Throttles of this broker's replication, as leader and as follower: which replicas they hold back now. Source: ReplicationQuotaManager."""

from collections.abc import Callable

from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.metadata_view import ConfigResource, MetadataView
from light_broker.core.replication_quota import UNLIMITED, ReplicationQuota, Side, is_throttled, rate_of


class ReplicationThrottles:
    """The quotas of both sides. `view` returns the current metadata, `settings` the current settings of the broker."""

    def __init__(
        self,
        broker_id: int,
        view: Callable[[], MetadataView],
        settings: Callable[[], Settings],
        now_ms: Callable[[], int],
    ) -> None:
        self._broker_id = broker_id
        self._view = view
        self._settings = settings
        self._now_ms = now_ms
        self._quotas = {side: ReplicationQuota() for side in Side}

    def holds_back(self, side: Side, partition: TopicPartition, replica: int) -> bool:
        """Return whether a replica outside the ISR has to wait: it is throttled, and the rate is exceeded."""
        quota = self._quota(side)
        if quota is None or not quota.is_exceeded(self._now_ms()):
            return False
        known = self._view().partition(partition)
        is_in_sync = known is not None and replica in known.isr
        return not is_in_sync and self._names(side, partition)

    def add(self, side: Side, partition: TopicPartition, size_bytes: int) -> None:
        """Note bytes of a partition that were sent or fetched."""
        quota = self._quota(side)
        if quota is not None and size_bytes and self._names(side, partition):
            quota.add(size_bytes, self._now_ms())

    def _quota(self, side: Side) -> ReplicationQuota | None:
        """Return the quota with its current rate; None: there is no limit."""
        rate = rate_of(self._settings(), side)
        quota = self._quotas[side]
        quota.bytes_per_second = rate
        return None if rate == UNLIMITED else quota

    def _names(self, side: Side, partition: TopicPartition) -> bool:
        """Return whether the topic's config names this broker's replica; on the leader's side that is the leader itself."""
        resource = ConfigResource(ConfigResourceType.TOPIC, partition.topic)
        replicas = self._view().dynamic_configs(resource).get(side.replicas_config, "")
        return bool(replicas) and is_throttled(replicas, partition, self._broker_id)
