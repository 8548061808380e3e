"""The part of a Kafka cluster in memory that each broker answers for itself: its logs' sizes, and its own settings."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_operator.decide.kafka.layout import BrokerDisks, BrokerSizes, Disks, Layout
from kafka_operator.decide.kafka.log_dirs import BrokerLogDirs, LogDir
from kafka_operator.decide.kafka.observed import Failure, KafkaTopic
from kafka_operator.decide.kafka.replica_dirs import BrokerReplicaDirs, DirectoryLogs, Targets
from kafka_operator.decide.reassignments.reassignment_steps import AlterBroker
from kafka_operator.resources.reassignment import Partition

T = TypeVar("T")

LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
BROKER_SETTINGS = {
    "leader.replication.throttled.rate",
    "follower.replication.throttled.rate",
    "cordoned.log.dirs",
    LOG_DIRS_RATE,
}


@dataclass
class HeldFuture:
    """A replica that moves to another directory of its broker until a time."""

    path: str
    began_s: float
    ends_s: float


class FakeBrokers:
    """Logs and settings by broker; a part of FakeKafka."""

    def __init__(self) -> None:
        self.sizes: dict[Partition, int] = {}
        """Bytes of a whole replica; 0 where none are given."""
        self.growth: dict[Partition, float] = {}
        """Bytes that a partition's log grows by each second."""
        self.broker_configs: dict[int, dict[str, str]] = {}
        self.disks: dict[int, Disks] = {}
        self.log_dirs: dict[int, tuple[LogDir, ...]] = {}
        self.replica_dirs: dict[tuple[int, Partition], str] = {}
        """Directory of a replica, if it is not the first one of its broker."""
        self.futures: dict[tuple[int, Partition], HeldFuture] = {}
        self.dirs_asked: list[Collection[Partition] | None] = []
        """Partitions of each read of directories with their logs; None for all."""
        self.dir_calls: list[Targets] = []
        """Accepted requests for moves between directories."""
        self.rates_at_dir_calls: list[str | None] = []
        """Rate of a broker when it was asked for such a move."""
        self.racks: dict[int, str] = {}
        self.silent: set[int] = set()
        """Brokers that are alive and do not answer for themselves."""
        self.refuse_settings: dict[int, Failure] = {}
        """Brokers that reject changes of their settings."""
        self.out_of_sync: set[tuple[Partition, int]] = set()
        """Replicas that fell out of the ISR, as partition and broker."""
        self.still: set[Partition] = set()
        """Partitions whose moves copy nothing."""

    if TYPE_CHECKING:  # what FakeKafka has
        topics: dict[str, Any]
        moves: dict[Partition, Any]
        broker_ids: tuple[int, ...]
        move_s: float
        refuse_partitions: dict[Partition, Failure]

        async def _change(self, name: str, effect: Callable[[], T]) -> T: ...
        def shown(self, name: str) -> KafkaTopic: ...
        def _visible(self, name: str) -> bool: ...
        def _settle(self) -> None: ...

    async def describe_layout(self, names: Sequence[str] | None) -> Layout:
        def effect() -> Layout:
            wanted = sorted(self.topics) if names is None else names
            topics = {name: self.shown(name) for name in wanted if self._visible(name)}
            return Layout(topics, {broker: self.racks.get(broker) for broker in self.broker_ids})

        return await self._change("describe_layout", effect)

    async def describe_log_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerSizes:
        return await self._change(
            "describe_log_dirs", lambda: {broker: self._logs(broker, partitions) for broker in broker_ids}
        )

    async def describe_disks(self, broker_ids: Collection[int]) -> BrokerDisks:
        def effect() -> BrokerDisks:
            silent = {broker: _away(broker) for broker in broker_ids if broker in self.silent}
            return silent | {broker: self.disks[broker] for broker in broker_ids if broker in self.disks}

        return await self._change("describe_disks", effect)

    async def describe_log_dir_states(self, broker_ids: Collection[int]) -> BrokerLogDirs:
        def effect() -> BrokerLogDirs:
            return {
                broker: _away(broker) if broker in self.silent else self.log_dirs.get(broker, (LogDir("/data"),))
                for broker in broker_ids
            }

        return await self._change("describe_log_dir_states", effect)

    async def describe_replica_dirs(
        self, broker_ids: Collection[int], partitions: Collection[Partition] | None
    ) -> BrokerReplicaDirs:
        def effect() -> BrokerReplicaDirs:
            self.dirs_asked.append(partitions)
            return {broker: self._directories(broker, partitions) for broker in broker_ids}

        return await self._change("describe_replica_dirs", effect)

    async def move_log_dirs(self, targets: Targets) -> Mapping[Partition, Failure]:
        def effect() -> Mapping[Partition, Failure]:
            self.dir_calls.append(targets)
            failures = {}
            for broker, paths in targets.items():
                self.rates_at_dir_calls.append(self.broker_configs.get(broker, {}).get(LOG_DIRS_RATE))
                for partition, path in paths.items():
                    failure = self._move_log_dir(broker, partition, path)
                    if failure is not None:
                        failures[partition] = failure
            return failures

        return await self._change("move_log_dirs", effect)

    async def describe_broker_configs(
        self, broker_ids: Collection[int], names: Sequence[str]
    ) -> Mapping[int, Mapping[str, str] | Failure]:
        def effect() -> Mapping[int, Mapping[str, str] | Failure]:
            return {broker: self._own_config(broker, names) for broker in broker_ids}

        return await self._change("describe_broker_configs", effect)

    async def alter_broker_configs(self, changes: Sequence[AlterBroker]) -> Mapping[int, Failure]:
        def effect() -> Mapping[int, Failure]:
            answers = {change.broker_id: self._alter_broker(change) for change in changes}
            return {broker: failure for broker, failure in answers.items() if failure is not None}

        return await self._change("alter_broker_configs", effect)

    def throttled(self) -> dict[str, object]:
        """Return every throttle that is set, on brokers and on topics."""
        brokers = {str(broker): config for broker, config in sorted(self.broker_configs.items()) if config}
        topics = {
            name: settings
            for name, held in sorted(self.topics.items())
            if (settings := {key: value for key, value in held.config.items() if "throttled" in key})
        }
        return brokers | topics

    def _logs(self, broker: int, partitions: Collection[Partition] | None) -> Mapping[Partition, int] | Failure:
        if broker not in self.broker_ids or broker in self.silent:
            return _away(broker)
        self._settle()
        found: dict[Partition, int] = {}
        now_s = _now_s()
        for name, held in self.topics.items():
            for index, replicas in enumerate(held.replicas):
                partition = Partition(name, index)
                if partitions is not None and partition not in partitions:
                    continue
                whole = self.sizes.get(partition, 0) + int(self.growth.get(partition, 0) * now_s)
                move = self.moves.get(partition)
                if broker in replicas:
                    found[partition] = whole
                elif move is not None and broker in move.target:
                    share = (now_s - move.began_s) / max(1e-9, move.ends_s - move.began_s)
                    found[partition] = 0 if partition in self.still else int(whole * share)
        return found

    def settle_dirs(self) -> None:
        """Let each replica that is due be in its new directory."""
        for key, future in list(self.futures.items()):
            if future.ends_s <= _now_s():
                self.replica_dirs[key] = future.path
                del self.futures[key]

    def dir_of(self, broker: int, partition: Partition) -> str:
        """Return the directory of a replica."""
        return self.replica_dirs.get((broker, partition), self.log_dirs.get(broker, (LogDir("/data"),))[0].path)

    def _directories(
        self, broker: int, partitions: Collection[Partition] | None
    ) -> tuple[DirectoryLogs, ...] | Failure:
        logs = self._logs(broker, partitions)
        if isinstance(logs, Failure):
            return logs
        self.settle_dirs()
        futures = {name: future for (held, name), future in self.futures.items() if held == broker and name in logs}
        copied = {name: int(logs[name] * _share_of(future)) for name, future in futures.items()}
        return tuple(
            DirectoryLogs(
                log_dir,
                {
                    name: size
                    for name, size in logs.items()
                    if self.dir_of(broker, name) == log_dir.path and log_dir.online
                },
                {
                    name: copied[name]
                    for name, future in futures.items()
                    if future.path == log_dir.path and log_dir.online
                },
            )
            for log_dir in self.log_dirs.get(broker, (LogDir("/data"),))
        )

    def _move_log_dir(self, broker: int, partition: Partition, path: str) -> Failure | None:
        """As ReplicaManager.alterReplicaLogDirs: another directory replaces the future log, the current one removes it."""
        if broker not in self.broker_ids or broker in self.silent:
            return _away(broker)
        if partition in self.refuse_partitions:
            return self.refuse_partitions[partition]
        directory = next((log_dir for log_dir in self.log_dirs[broker] if log_dir.path == path), None)
        if directory is None:
            return Failure(57, "LOG_DIR_NOT_FOUND", f"The log dir {path} is not found in the broker config.")
        if not directory.online:
            return Failure(56, "KAFKA_STORAGE_ERROR", f"Log directory {path} is offline")
        self.settle_dirs()
        key, current = (broker, partition), self.futures.get((broker, partition))
        if current is not None and current.path == path:
            return None
        self.futures.pop(key, None)
        if self.dir_of(broker, partition) != path:
            self.futures[key] = HeldFuture(path, _now_s(), _now_s() + self.move_s)
        return None

    def _own_config(self, broker: int, names: Sequence[str]) -> Mapping[str, str] | Failure:
        if broker not in self.broker_ids or broker in self.silent:
            return _away(broker)
        held = self.broker_configs.get(broker, {})
        return {name: held[name] for name in names if name in held}

    def _alter_broker(self, change: AlterBroker) -> Failure | None:
        if change.broker_id not in self.broker_ids or change.broker_id in self.silent:
            return _away(change.broker_id)
        if change.broker_id in self.refuse_settings:
            return self.refuse_settings[change.broker_id]
        held = self.broker_configs.setdefault(change.broker_id, {})
        for name, value in change.changes:
            assert name in BROKER_SETTINGS, name
            held.pop(name, None)
            if value is not None:
                held[name] = value
        return None


def _away(broker: int) -> Failure:
    return Failure(8, "BROKER_NOT_AVAILABLE", f"Broker {broker} does not answer.")


def _share_of(future: HeldFuture) -> float:
    return (_now_s() - future.began_s) / max(1e-9, future.ends_s - future.began_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
