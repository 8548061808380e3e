"""A Kafka cluster in memory behind the Admin port, with the errors, delays and outages that a real one has."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka_operator.admin.port import ClusterUnreachableError, ConnectionRejectedError, ControllerUnavailableError
from kafka_operator.decide.clusters.cluster_metrics import ClusterMetrics, read_versions
from kafka_operator.decide.elections.election import Elect
from kafka_operator.decide.kafka.observed import (
    NO_LEADER,
    ConfigValue,
    Failure,
    KafkaPartition,
    KafkaTopic,
    Move,
    ObservedCluster,
    ObservedQuorum,
)
from kafka_operator.decide.kafka.replica_health import PartitionReplicas, ReplicaHealth
from kafka_operator.decide.steps import AlterConfig, CreateTopic, GrowTopic
from kafka_operator.resources.cluster import Versions
from kafka_operator.resources.election import ElectionType
from kafka_operator.resources.reassignment import Partition
from kafka_operator.resources.security import Security
from tests.kafka_operator.fake_brokers import FakeBrokers
from tests.kafka_operator.seats import Seat, count_partitions
from tests.reconciler.gate import Gate

KNOWN_SETTINGS = {
    "retention.ms": "LONG",
    "cleanup.policy": "LIST",
    "min.insync.replicas": "INT",
    "leader.replication.throttled.replicas": "LIST",
    "follower.replication.throttled.replicas": "LIST",
}

T = TypeVar("T")
ActionT = TypeVar("ActionT", CreateTopic, GrowTopic, AlterConfig)


@dataclass
class HeldTopic:
    topic_id: str
    replicas: list[tuple[int, ...]]
    config: dict[str, str] = field(default_factory=dict)
    visible_s: float = 0.0


@dataclass
class HeldMove:
    base: tuple[int, ...]
    target: tuple[int, ...]
    ends_s: float
    began_s: float = 0.0


class FakeKafka(FakeBrokers):
    """One cluster: set its attributes to make it behave badly; `gate` counts and kills."""

    def __init__(self, gate: Gate, broker_ids: Sequence[int] = (1, 2, 3, 4)) -> None:
        super().__init__()
        self.gate = gate
        self.broker_ids = tuple(broker_ids)
        self.cluster_id = "fake-cluster"
        self.controller_id = 1
        self.quorum: ObservedQuorum = None
        self.features: dict[str, int] = {}
        """Finalized features; with metadata.version the cluster is one in KRaft mode."""
        self.reachable = True
        self.security: Security | None = None
        """The credentials that the cluster accepts; None: all."""
        self.has_controller = True
        self.deletion_enabled = True
        self.visible_after_s = 0.0
        self.move_s = 3.0
        self.topics: dict[str, HeldTopic] = {}
        self.moves: dict[Partition, HeldMove] = {}
        self.submitted: list[dict[Partition, tuple[int, ...] | None]] = []
        self.refuse_partitions: dict[Partition, Failure] = {}
        self.on_delete: Callable[[], None] | None = None
        """Called when a topic is deleted, for something that happens at the same moment."""
        self.leaders: dict[Partition, int] = {}
        """Leaders that are not the first replica that is alive; -1 for none."""
        self.elections: list[Elect] = []
        self.lags: dict[str, int] = {}
        """Lag of each consumer group, in records."""
        self.lose_answers = 0
        """So many of the next calls have their effect and give no answer."""
        self._ids = itertools.count(1)

    async def describe_cluster(self) -> ObservedCluster:
        return await self._call(
            "describe_cluster",
            lambda: ObservedCluster(self.cluster_id, self.controller_id, self.broker_ids, self.quorum),
        )

    async def describe_topics(self, names: Sequence[str]) -> Mapping[str, KafkaTopic | Failure]:
        if not names:
            return {}
        return await self._call("describe_topics", lambda: {n: self.shown(n) for n in names if self._visible(n)})

    async def describe_configs(
        self, wanted: Mapping[str, frozenset[str]]
    ) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        if not wanted:
            return {}
        return await self._call("describe_configs", lambda: {n: self._config(n, keys) for n, keys in wanted.items()})

    async def describe_all_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue] | Failure]:
        every = frozenset(KNOWN_SETTINGS)
        return await self._call("describe_all_configs", lambda: {name: self._config(name, every) for name in names})

    async def create_topics(
        self, topics: Sequence[CreateTopic], *, validate_only: bool = False
    ) -> Mapping[str, Failure]:
        return await self._topic_calls("create_topics", topics, self._check_create, self._create, validate_only)

    async def grow_topics(self, topics: Sequence[GrowTopic], *, validate_only: bool = False) -> Mapping[str, Failure]:
        return await self._topic_calls("grow_topics", topics, self._check_grow, self._grow, validate_only)

    async def alter_configs(
        self, topics: Sequence[AlterConfig], *, validate_only: bool = False
    ) -> Mapping[str, Failure]:
        return await self._topic_calls("alter_configs", topics, self._check_alter, self._alter, validate_only)

    async def delete_topics(self, names: Sequence[str]) -> Mapping[str, Failure]:
        return await self._change("delete_topics", lambda: _refused({name: self._delete(name) for name in names}))

    async def list_reassignments(self) -> Mapping[Partition, Move]:
        return await self._change("list_reassignments", self._listed_moves)

    async def alter_reassignments(
        self, targets: Mapping[Partition, tuple[int, ...] | None]
    ) -> Mapping[Partition, Failure]:
        def effect() -> Mapping[Partition, Failure]:
            self.submitted.append(dict(targets))
            answers = {partition: self._reassign(partition, target) for partition, target in targets.items()}
            return {partition: failure for partition, failure in answers.items() if failure is not None}

        return await self._change("alter_reassignments", effect)

    async def describe_health(self) -> ReplicaHealth:
        return await self._change("describe_health", self._health)

    async def elect_leaders(self, wanted: Elect) -> Mapping[Partition, Failure]:
        def effect() -> Mapping[Partition, Failure]:
            self.elections.append(wanted)
            answers = {partition: self._elect(wanted.type, partition) for partition in wanted.partitions}
            return {partition: failure for partition, failure in answers.items() if failure is not None}

        return await self._change("elect_leaders", effect)

    async def describe_cluster_metrics(self) -> ClusterMetrics:
        def seats() -> ClusterMetrics:
            self._settle()
            found = [
                Seat(
                    Partition(name, index), self.leader(Partition(name, index)), replicas, len(self._in_sync(replicas))
                )
                for name, held in self.topics.items()
                for index, replicas in enumerate(held.replicas)
            ]
            return count_partitions(found, {})

        return await self._change("describe_cluster_metrics", seats)

    async def describe_versions(self, broker_ids: Collection[int]) -> Versions:
        def versions() -> Versions:
            return read_versions([(3, 9)] * len(broker_ids), self.features, "3.9-IV0")

        return await self._call("describe_versions", versions)

    async def describe_min_isr(self, topics: Collection[str]) -> Mapping[str, int]:
        def wanted() -> Mapping[str, int]:
            return {name: int(self.topics[name].config.get("min.insync.replicas", "1")) for name in topics}

        return await self._change("describe_min_isr", wanted)

    async def describe_group_lags(self, groups: Collection[str]) -> Mapping[str, int | Failure]:
        def lags() -> Mapping[str, int | Failure]:
            missing = Failure(69, "GROUP_ID_NOT_FOUND", "The group id does not exist.")
            return {group: self.lags.get(group, missing) for group in groups}

        return await self._call("describe_group_lags", lags)

    async def close(self) -> None:
        """Nothing is open."""

    def add(self, name: str, replicas: Sequence[tuple[int, ...]], **config: str) -> None:
        """Add a topic that no Topic declares."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.topics[name] = HeldTopic(str(uuid.UUID(int=next(self._ids))), list(replicas), settings)

    def shown(self, name: str) -> KafkaTopic:
        """Return a topic as Metadata shows it: while a partition moves, with all replicas."""
        self._settle()
        held = self.topics[name]
        partitions = []
        for index, replicas in enumerate(held.replicas):
            partition = Partition(name, index)
            move = self.moves.get(partition)
            union = replicas if move is None else (*move.target, *(b for b in move.base if b not in move.target))
            isr = tuple(b for b in replicas if (partition, b) not in self.out_of_sync)
            leader = self.leaders.get(partition, replicas[0])
            partitions.append(KafkaPartition(index, leader, union, isr))
        return KafkaTopic(name, held.topic_id, tuple(partitions))

    def state(self) -> dict[str, object]:
        """Return what a user of the cluster sees, ids aside; moves that are due are over."""
        self._settle()
        self.settle_dirs()
        return {
            "topics": {name: (held.replicas, held.config) for name, held in sorted(self.topics.items())},
            "moves": {str(partition): move.target for partition, move in sorted(self.moves.items())},
            "dirs": {f"{partition}@{broker}": path for (broker, partition), path in sorted(self.replica_dirs.items())},
            "dir_moves": sorted(self.futures),
            "brokers": {broker: config for broker, config in sorted(self.broker_configs.items()) if config},
        }

    async def _topic_calls(
        self,
        name: str,
        topics: Sequence[ActionT],
        check: Callable[[ActionT], Failure | None],
        act: Callable[[ActionT], None],
        validate_only: bool,
    ) -> Mapping[str, Failure]:
        def effect() -> Mapping[str, Failure]:
            refused = {}
            for topic in topics:
                failure = check(topic)
                if failure is not None:
                    refused[topic.name] = failure
                elif not validate_only:
                    act(topic)
            return refused

        return await self._change(f"validate_{name}" if validate_only else name, effect)

    async def _call(self, name: str, effect: Callable[[], T]) -> T:
        await asyncio.sleep(0.001)  # others get their turn, as over a network
        if not self.reachable:
            raise ClusterUnreachableError("the fake is down")
        return self.gate.call(f"kafka {name}", effect)

    async def _change(self, name: str, effect: Callable[[], T]) -> T:
        if self.reachable and not self.has_controller:
            raise ControllerUnavailableError("the fake has no controller")
        answer = await self._call(name, effect)
        if self.lose_answers:
            self.lose_answers -= 1
            raise ControllerUnavailableError("the answer was lost")
        return answer

    def _in_sync(self, replicas: tuple[int, ...]) -> list[int]:
        return [broker for broker in replicas if broker in self.broker_ids]

    def leader(self, partition: Partition) -> int:
        """Return the leader of a partition; -1 for none."""
        replicas = self.topics[partition.topic].replicas[partition.index]
        return self.leaders.get(partition, next(iter(self._in_sync(replicas)), NO_LEADER))

    def _elect(self, election_type: ElectionType, partition: Partition) -> Failure | None:
        held = self.topics.get(partition.topic)
        if held is None or partition.index >= len(held.replicas):
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such partition")
        if partition in self.refuse_partitions:
            return self.refuse_partitions[partition]
        alive = self._in_sync(held.replicas[partition.index])
        if election_type is ElectionType.PREFERRED:
            preferred = held.replicas[partition.index][0]
            if preferred not in alive:
                return Failure(80, "PREFERRED_LEADER_NOT_AVAILABLE", "The preferred leader is not available.")
            self.leaders[partition] = preferred
        elif self.leader(partition) == NO_LEADER:
            if not alive:
                return Failure(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", "No replica is alive.")
            self.leaders[partition] = alive[0]
        return None

    def _health(self) -> ReplicaHealth:
        """Replicas are in sync as long as their broker is alive."""
        self._settle()
        partitions = [
            PartitionReplicas(Partition(name, index), replicas, tuple(b for b in replicas if b in self.broker_ids))
            for name, held in self.topics.items()
            for index, replicas in enumerate(held.replicas)
        ]
        return ReplicaHealth(self.controller_id, self.broker_ids, tuple(partitions), quorum=self.quorum)

    def _visible(self, name: str) -> bool:
        return name in self.topics and _now_s() >= self.topics[name].visible_s

    def _config(self, name: str, keys: frozenset[str]) -> Mapping[str, ConfigValue] | Failure:
        if name not in self.topics:
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic")
        config = self.topics[name].config
        return {key: ConfigValue(config[key], KNOWN_SETTINGS[key]) for key in keys if key in config}

    def _check_create(self, topic: CreateTopic) -> Failure | None:
        if topic.name in self.topics:
            return Failure(36, "TOPIC_ALREADY_EXISTS", f"Topic '{topic.name}' already exists.")
        alive = len(self.broker_ids)
        if topic.replication_factor > alive:
            message = f"Replication factor: {topic.replication_factor} larger than available brokers: {alive}."
            return Failure(38, "INVALID_REPLICATION_FACTOR", message)
        return self._refused_settings(dict(topic.config))

    def _create(self, topic: CreateTopic) -> None:
        ring = itertools.cycle(self.broker_ids)
        replicas = [tuple(itertools.islice(ring, topic.replication_factor)) for _ in range(topic.partitions)]
        self.add(topic.name, replicas)
        self.topics[topic.name].config = dict(topic.config)
        self.topics[topic.name].visible_s = _now_s() + self.visible_after_s

    def _check_grow(self, topic: GrowTopic) -> Failure | None:
        held = self.topics.get(topic.name)
        if held is None:
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic")
        if topic.partitions <= len(held.replicas):
            return Failure(37, "INVALID_PARTITIONS", f"Topic already has {len(held.replicas)} partitions.")
        return None

    def _grow(self, topic: GrowTopic) -> None:
        held = self.topics[topic.name]
        held.replicas += [held.replicas[0]] * (topic.partitions - len(held.replicas))

    def _check_alter(self, topic: AlterConfig) -> Failure | None:
        if topic.name not in self.topics:
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic")
        return self._refused_settings(dict(topic.set))

    def _alter(self, topic: AlterConfig) -> None:
        held = self.topics[topic.name]
        held.config.update(topic.set)
        for key in topic.reset:
            held.config.pop(key, None)

    def _delete(self, name: str) -> Failure | None:
        if not self.deletion_enabled:
            return Failure(73, "TOPIC_DELETION_DISABLED", "Topic deletion is disabled.")
        if self.topics.pop(name, None) is None:
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "no such topic")
        if self.on_delete is not None:
            self.on_delete()
        return None

    @staticmethod
    def _refused_settings(settings: Mapping[str, str]) -> Failure | None:
        unknown = sorted(settings.keys() - KNOWN_SETTINGS.keys())
        if unknown:
            return Failure(40, "INVALID_CONFIG", f"Unknown topic config name: {unknown[0]}")
        return None

    def _reassign(self, partition: Partition, target: tuple[int, ...] | None) -> Failure | None:
        if partition in self.refuse_partitions:
            return self.refuse_partitions[partition]
        self._settle()
        held = self.topics.get(partition.topic)
        if held is None or partition.index >= len(held.replicas):
            return Failure(3, "UNKNOWN_TOPIC_OR_PARTITION", "The partition does not exist.")
        if target is None:
            if self.moves.pop(partition, None) is None:
                return Failure(85, "NO_REASSIGNMENT_IN_PROGRESS", "No reassignment is in progress.")
            return None
        base = held.replicas[partition.index]
        if set(target) == set(base):
            held.replicas[partition.index] = target
        else:
            self.moves[partition] = HeldMove(base, target, _now_s() + self.move_s * (1 + partition.index), _now_s())
        return None

    def _listed_moves(self) -> dict[Partition, Move]:
        self._settle()
        return {
            partition: Move(
                (*move.target, *(b for b in move.base if b not in move.target)),
                tuple(b for b in move.target if b not in move.base),
                tuple(b for b in move.base if b not in move.target),
            )
            for partition, move in self.moves.items()
        }

    def _settle(self) -> None:
        for partition, move in list(self.moves.items()):
            if partition.topic not in self.topics:
                del self.moves[partition]
            elif move.ends_s <= _now_s():
                self.topics[partition.topic].replicas[partition.index] = move.target
                del self.moves[partition]


class GuardedKafka:
    """A connection with credentials; each of its calls is refused while the cluster does not accept them."""

    def __init__(self, kafka: FakeKafka, security: Security) -> None:
        self._kafka = kafka
        self._security = security

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        call = getattr(self._kafka, name)

        async def guarded(*arguments: Any, **named: Any) -> Any:
            if name != "close" and self._kafka.security not in {None, self._security}:
                raise ConnectionRejectedError(
                    "AuthenticationFailed", "Kafka rejected the authentication: invalid credentials."
                )
            return await call(*arguments, **named)

        return guarded


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _refused(answers: Mapping[str, Failure | None]) -> dict[str, Failure]:
    return {name: failure for name, failure in answers.items() if failure is not None}
