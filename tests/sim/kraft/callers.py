"""Requests of administrators to the active controller in a run: topics, moves, elections, configs, features."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

from controller_core.metadata.config_alterations import alter_configs
from controller_core.metadata.feature_changes import QuorumFeatures, update_features
from controller_core.model import TopicPartition, events, quorum_events
from controller_core.rules.features import FeatureUpdate, UpgradeType
from controller_core.shell.kraft.controller import KRaftController
from controller_core.shell.kraft.features import SUPPORTED
from kafka_metadata.metadata_versions import ELR_VERSION, LATEST_PRODUCTION, METADATA_VERSION
from kafka_metadata.records import ResourceType
from kafka_node.configs.layered_settings import Settings
from kafka_wire import Body

if TYPE_CHECKING:
    from tests.sim.kraft.cluster import KRaftCluster

CALLER_ID = 0
"""Place of all callers in the network, whose links are never cut."""

MAX_TOPICS = 5

MIN_ISR = "min.insync.replicas"
UNCLEAN = "unclean.leader.election.enable"


class Callers:
    """All administrators. They know the current state of the active controller, as if they had just read it."""

    def __init__(self, cluster: "KRaftCluster") -> None:
        self._cluster = cluster
        self._random = cluster.scheduler.random
        self._topics = 0

    def call(self) -> None:
        """Send one request, drawn from all kinds."""
        kinds: tuple[tuple[int, Callable[[], None]], ...] = (
            (4, self._create_topic),
            (1, self._create_partitions),
            (1, self._delete_topic),
            (6, self._reassign),
            (2, self._cancel),
            (3, self._elect),
            (2, self._configure),
            (1, self._unregister),
            (2, self._raise_features),
        )
        weights = [weight for weight, _ in kinds]
        (chosen,) = self._random.choices([act for _, act in kinds], weights)
        chosen()

    def submit(self, event: events.Event) -> None:
        """Send an event to the active controller."""
        self._ask(lambda controller: controller.submit(event))

    def elect_uncleanly(self) -> None:
        """Elect any leader where there is none: the last resort, once the faults have ended."""
        self.submit(events.ElectLeaders(None, unclean=True))

    def _ask(self, work: Callable[[KRaftController], Awaitable[Any]]) -> None:
        active = self._cluster.active()
        if active is not None:
            self._cluster.deliver(CALLER_ID, active.id, work, lambda _answer: None)

    def _partition(self) -> TopicPartition | None:
        """Choose a partition."""
        image = self._cluster.metadata.image
        names = [
            TopicPartition(topic.name, number) for topic in image.topics.values() for number in sorted(topic.partitions)
        ]
        return self._random.choice(names) if names else None

    def _brokers(self) -> list[int]:
        return sorted(self._cluster.metadata.image.brokers)

    def _replicas(self) -> tuple[int, ...] | None:
        known = self._brokers()
        return tuple(self._random.sample(known, self._random.randint(1, min(3, len(known))))) if known else None

    def _seed(self) -> int:
        return self._random.getrandbits(31)

    def _create_topic(self) -> None:
        replicas = self._replicas()
        if replicas is None or len(self._cluster.metadata.image.topics) >= MAX_TOPICS:
            return
        self._topics += 1
        configs = {MIN_ISR: str(self._random.randint(1, 2))} if self._random.random() < 0.7 else {}
        if self._cluster.wishes.unclean and self._random.random() < 0.5:
            configs[UNCLEAN] = "true"
        given = self._random.random() < 0.4
        new = events.NewTopic(
            f"t{self._topics}",
            UUID(int=self._random.getrandbits(100) + 2),
            -1 if given else self._random.randint(1, 4),
            -1 if given else len(replicas),
            {0: replicas} if given else {},
            configs,
            seed=self._seed(),
        )
        self.submit(events.CreateTopics((new,)))

    def _create_partitions(self) -> None:
        if (name := self._partition()) is not None:
            topic = self._cluster.metadata.image.topic(name.topic)
            assert topic is not None, name
            count = min(6, len(topic.partitions) + 1)
            self.submit(events.CreatePartitions((events.NewPartitions(name.topic, count, seed=self._seed()),)))

    def _delete_topic(self) -> None:
        if (name := self._partition()) is not None and self._random.random() < 0.3:
            self.submit(events.DeleteTopics((name.topic,)))

    def _reassign(self) -> None:
        name, replicas = self._partition(), self._replicas()
        if name is not None and replicas is not None:
            self.submit(events.AlterReassignments({name: replicas}))

    def _cancel(self) -> None:
        if (name := self._partition()) is not None:
            self.submit(events.AlterReassignments({name: None}))

    def _elect(self) -> None:
        unclean = self._cluster.wishes.unclean and self._random.random() < 0.5
        self.submit(events.ElectLeaders(None, unclean=unclean))

    def _configure(self) -> None:
        name = self._partition()
        is_topic = name is not None and self._random.random() < 0.8
        resource = {
            "resource_type": ResourceType.TOPIC if is_topic else ResourceType.BROKER,
            "resource_name": name.topic if name is not None and is_topic else "",
            "configs": [{"name": MIN_ISR, "config_operation": 0, "value": str(self._random.randint(1, 3))}],
        }
        self._ask(partial(_configure, resource))

    def _unregister(self) -> None:
        image = self._cluster.metadata.image
        dead = [
            broker
            for broker in self._brokers()
            if image.brokers[broker].fenced and self._cluster.brokers[broker].process is None
        ]
        if dead:
            self.submit(events.UnregisterBroker(self._random.choice(dead)))

    def _raise_features(self) -> None:
        """Raise metadata.version, or enable eligible leader replicas where it has them."""
        levels = {name: record.feature_level for name, record in self._cluster.metadata.image.features.items()}
        current = levels.get(METADATA_VERSION, LATEST_PRODUCTION)
        wanted = FeatureUpdate(ELR_VERSION, 1, UpgradeType.UPGRADE)
        if current < LATEST_PRODUCTION and (ELR_VERSION in levels or self._random.random() < 0.7):
            level = self._random.randint(current + 1, LATEST_PRODUCTION)
            wanted = FeatureUpdate(METADATA_VERSION, level, UpgradeType.UPGRADE)
        self._ask(partial(_update, self._cluster, wanted))


async def _update(cluster: "KRaftCluster", wanted: FeatureUpdate, controller: KRaftController) -> Any:
    quorum = QuorumFeatures(controller.identity.node_id, SUPPORTED, list(cluster.hosts), 1)
    return await controller.write(partial(update_features, quorum=quorum, updates=[wanted], validate_only=False))


async def _configure(resource: Body, controller: KRaftController) -> Any:
    """Change a config, as `ConfigApis`."""
    decided = alter_configs(controller.image, Settings(controller.identity.node_id), [resource], incremental=True)
    return await controller.submit(quorum_events.ChangeConfigs(decided.changes)) if decided.changes else None
