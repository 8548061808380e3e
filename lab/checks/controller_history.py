"""Checks of the writes of controllers, one by one: C1 to C6 of one history, and the results of moves (C9). Pure.

The session that raised `/controller_epoch` last is the only one that may write to a topic, to a partition's state or to the queue of
deletions. Kafka itself has two exceptions: below inter.broker.protocol.version 2.7 a partition's leader writes its ISR, and a broker that
assumes that it is the controller creates a topic's znode without a check of the epoch (AdminZkClient). Writes of administrators to the
queues under `/admin` are not checked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lab.checks.zookeeper_history import DELETED, Write

TOPICS, DELETIONS, BROKER_IDS = "/brokers/topics/", "/admin/delete_topics/", "/brokers/ids/"
EPOCH = "/controller_epoch"
NO_LEADER = -1
Partition = tuple[str, int]
State = dict[str, Any]


@dataclass(slots=True)
class Judge:
    """Checks one history; `violations` describes the violations."""

    chroot: str = ""
    epoch: int = 0
    epochs: list[int] = field(default_factory=list)
    """Controller epochs in the order in which they were written."""
    violations: list[str] = field(default_factory=list)
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[Partition, State] = field(default_factory=dict)
    _holder: int | None = None
    """Session that raised the epoch last."""
    _brokers: dict[int, int] = field(default_factory=dict)
    """Broker id -> session that registered it."""

    def judge(self, writes: Iterable[Write]) -> None:
        """Check these writes."""
        for write in writes:
            if write.path.startswith(f"{self.chroot}/"):
                found = self._of(write._replace(path=write.path.removeprefix(self.chroot)))
                self.violations += (f"{violation} (zxid {write.zxid:#x}, {write.path})" for violation in found)

    def _of(self, write: Write) -> Iterator[str]:
        path = write.path
        if path == EPOCH and write.data is not DELETED:
            yield from self._epoch(write, int(write.data))
        elif path.startswith(BROKER_IDS) and write.data is not DELETED:
            self._brokers[int(path.removeprefix(BROKER_IDS))] = write.session_id
        elif path.startswith(DELETIONS) and write.data is DELETED:
            yield from self._by_the_holder(write)
        elif path.startswith(TOPICS):
            match path.removeprefix(TOPICS).split("/"):
                case [name]:
                    if not (write.is_new and write.session_id in self._brokers.values()):
                        yield from self._by_the_holder(write)
                    yield from self._topic(name, write)
                case [name, "partitions", partition, "state"]:
                    yield from self._state((name, int(partition)), write)
                case _:
                    pass

    def _epoch(self, write: Write, epoch: int) -> Iterator[str]:
        if epoch > self.epoch or write.is_new:
            self._holder = write.session_id
        if self.epochs and epoch <= self.epoch:
            yield f"C5: the controller epoch went from {self.epoch} to {epoch}"
        self.epoch = epoch
        self.epochs.append(epoch)

    def _by_the_holder(self, write: Write) -> Iterator[str]:
        if write.session_id != self._holder:
            yield f"C6: written by session {write.session_id:#x}, while epoch {self.epoch} is of {self._holder or 0:#x}"

    def _topic(self, name: str, write: Write) -> Iterator[str]:
        if write.data is DELETED:
            self.topics.pop(name, None)
            return
        before, now = self.topics.get(name), json.loads(write.data)
        self.topics[name] = now
        for partition, replicas in now["partitions"].items():
            if len(set(replicas)) != len(replicas):
                yield f"C3: a replica is twice in {replicas}"
            state = self.states.get((name, int(partition)))
            if state is not None and not set(state["isr"]) <= set(replicas):
                yield f"C2: the ISR {state['isr']} is not of the assignment {replicas} of partition {partition}"
            if before is not None and not _may_follow(before, now, partition):
                yield f"C9: the move of partition {partition} ended at {replicas}, having been {_of(before, partition)}"

    def _state(self, partition: Partition, write: Write) -> Iterator[str]:
        if write.data is DELETED:
            yield from self._by_the_holder(write)
            self.states.pop(partition, None)
            return
        before, now = self.states.get(partition), json.loads(write.data)
        self.states[partition] = now
        leader, isr = now["leader"], now["isr"]
        topic = self.topics.get(partition[0], {"partitions": {}})
        replicas = topic["partitions"].get(str(partition[1]), [])
        if leader not in {NO_LEADER, *isr}:
            yield f"C1: the leader {leader} is not in the ISR {isr}"
        if not set(isr) <= set(replicas):
            yield f"C2: the ISR {isr} is not of the assignment {replicas}"
        if len(set(isr)) != len(isr):
            yield f"C3: a replica is twice in the ISR {isr}"
        if before is not None:
            yield from _grown(before, now)
        if before is not None and self._is_leaders_own(write, before, now):
            return
        yield from self._by_the_holder(write)
        if now["controller_epoch"] != self.epoch:
            yield f"C5: written under controller epoch {now['controller_epoch']}, while it is {self.epoch}"

    def _is_leaders_own(self, write: Write, before: State, now: State) -> bool:
        """Whether the leader wrote the ISR."""
        same = all(before[name] == now[name] for name in ("leader", "leader_epoch", "controller_epoch"))
        return same and write.session_id == self._brokers.get(now["leader"])


def _grown(before: State, now: State) -> Iterator[str]:
    if now["leader_epoch"] < before["leader_epoch"]:
        yield f"C4: the leader epoch went from {before['leader_epoch']} to {now['leader_epoch']}"
    if now["leader"] != before["leader"] and now["leader_epoch"] == before["leader_epoch"]:
        yield f"C4: the leader went from {before['leader']} to {now['leader']} under epoch {now['leader_epoch']}"


def _of(topic: dict[str, Any], partition: str) -> dict[str, list[int]]:
    return {
        "replicas": topic["partitions"].get(partition, []),
        "adding": topic.get("adding_replicas", {}).get(partition, []),
        "removing": topic.get("removing_replicas", {}).get(partition, []),
    }


def _may_follow(before: dict[str, Any], now: dict[str, Any], partition: str) -> bool:
    """Whether a partition whose move has ended has exactly its target replicas or its original ones."""
    old, new = _of(before, partition), _of(now, partition)
    if not (old["adding"] or old["removing"]) or new["adding"] or new["removing"]:
        return True
    target = set(old["replicas"]) - set(old["removing"])
    origin = set(old["replicas"]) - set(old["adding"])
    return set(new["replicas"]) in (target, origin)
