"""Changes of a broker by the control plane: metadata, roles of partitions, ACLs and credentials; and the settings that follow from it."""

from collections.abc import Mapping
from uuid import UUID

from kafka_node.authorization.acls import Acls
from kafka_node.configs.layered_settings import Settings
from kafka_node.configs.resource_types import ConfigResourceType
from kafka_node.listener_limits import DynamicLimits
from kafka_wire import ErrorCode
from kafka_wire.sasl.scram_keys import ScramCredential
from kafka_wire.topic_partition import TopicPartition
from light_broker.core.groups.offsets_topic import OFFSETS_TOPIC
from light_broker.core.log_jobs import log_manager_settings
from light_broker.core.metadata_view import CLUSTER_DEFAULT, ConfigResource, MetadataView, PartitionView
from light_broker.shell.broker import Broker
from light_broker.shell.known_users import CurrentAcls, CurrentCredentials
from light_broker.shell.logs.manager import LogManager


class ControlSide:
    """Implements BrokerSide. `settings` are those of the properties file."""

    def __init__(
        self,
        broker: Broker,
        logs: LogManager,
        settings: Settings,
        acls: CurrentAcls,
        credentials: CurrentCredentials,
        limits: DynamicLimits,
    ) -> None:
        self._broker = broker
        self._logs = logs
        self._settings = settings
        self._acls = acls
        self._credentials = credentials
        self._limits = limits

    def set_view(self, view: MetadataView) -> None:
        """Replace the metadata, and let logs and replicas follow the configs that changed."""
        before, self._broker.view = self._broker.view, view
        own = ConfigResource(ConfigResourceType.BROKER, str(self._settings.node_id))
        settings = self._settings.with_dynamic(view.dynamic_configs(CLUSTER_DEFAULT), view.dynamic_configs(own))
        if settings != self._broker.settings:
            self._broker.settings = settings
            self._logs.reconfigure_all(log_manager_settings(settings))
            self._limits.follow(settings)
            changed = set(view.topics)
        else:
            changed = _changed_topics(before, view)
            for topic in changed:
                self._logs.reconfigure(topic)
        for topic in changed:
            self._broker.replicas.reconfigure(topic)
        current = {topic.id for topic in view.topics.values()}
        self._broker.groups.topics_deleted(
            [(topic.name, topic.id) for topic in before.topics.values() if topic.id not in current]
        )

    async def lead(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Lead a partition, and coordinate its groups if it is one of `__consumer_offsets`."""
        error = await self._broker.replicas.lead(partition, topic_id, state, is_new=is_new)
        if partition.topic == OFFSETS_TOPIC and not error:
            self._broker.groups.lead(partition.partition, state.leader_epoch)
        return error

    async def follow(
        self, partition: TopicPartition, topic_id: UUID, state: PartitionView, *, is_new: bool = False
    ) -> ErrorCode:
        """Follow a partition's leader, which coordinates its groups."""
        self._resign(partition)
        return await self._broker.replicas.follow(partition, topic_id, state, is_new=is_new)

    async def stop(self, partition: TopicPartition, *, delete: bool) -> ErrorCode:
        """Stop serving a partition."""
        self._resign(partition)
        return await self._broker.replicas.stop(partition, delete=delete)

    def _resign(self, partition: TopicPartition) -> None:
        if partition.topic == OFFSETS_TOPIC:
            self._broker.groups.resign(partition.partition)

    def set_acls(self, acls: Acls) -> None:
        """Replace the ACLs."""
        self._acls.replace(acls)

    def set_credentials(self, credentials: Mapping[str, Mapping[str, ScramCredential]]) -> None:
        """Replace the SCRAM credentials."""
        self._credentials.replace(credentials)


def _changed_topics(before: MetadataView, after: MetadataView) -> set[str]:
    """Return the topics whose dynamic configs differ."""
    return {
        resource.name
        for resource in after.configs.keys() | before.configs.keys()
        if resource.type is ConfigResourceType.TOPIC
        and after.dynamic_configs(resource) != before.dynamic_configs(resource)
    }
