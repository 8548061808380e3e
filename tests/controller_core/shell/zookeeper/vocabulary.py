"""Changes as lines of the golden scripts: parsing and printing.

topic orders 0=1,2,3 1=2,3,1 id=7 version=3 retention.ms=5     TopicAdded (observed; `new` requested, `repaired`); see `read_versions`
partitions orders 2=3,1                                        PartitionsAdded
states orders-0=1/4/1,2 orders-1=2/0/2,3                       PartitionStates: leader/leader epoch/ISR[/replicas]
known orders-0=1/4/1,2/7                                       StatesObserved: …/version of the znode
move orders 0=2,3,4                                            MovesStarted, to these targets
moved orders 0=2,3,4                                           MovesFinished
queue a b / queued a b                                         DeletionQueued: requested, observed
forget a b                                                     DeletionDequeued
remove a / removed a                                           TopicRemoved: requested, observed
producer-ids 1 0 999                                           ProducerIdsAllocated
"""

from collections.abc import Sequence
from uuid import UUID

import numpy as np

from controller_core.model import Cluster, Move, Origin, Replicas, TopicPartition
from controller_core.model.changes import (
    Change,
    PartitionsAdded,
    PartitionStates,
    ProducerIdsAllocated,
    ProducerIdsObserved,
    RequestsToBrokers,
    TopicAdded,
    TopicRemoved,
)
from controller_core.model.columns import pad, unpad
from controller_core.model.move import plan_move
from controller_core.model.zookeeper_changes import (
    DeletionDequeued,
    DeletionQueued,
    MovesFinished,
    MovesStarted,
    StatesObserved,
    TopicIdAssigned,
    TopicObserved,
)
from controller_core.model.zookeeper_events import StoredTopic, TopicsRead
from tests.controller_core.states import NewState, column, partition_states

TOPIC_ORIGINS = {"topic": Origin.OBSERVED, "new": Origin.REQUESTED, "repaired": Origin.REPAIRED}


def read_change(cluster: Cluster, text: str) -> Change:
    """Read one change; rows are those of the cluster."""
    kind, *words = text.split()
    match kind:
        case "topic" | "new" | "repaired":
            return _topic(TOPIC_ORIGINS[kind], words)
        case "partitions":
            given = replicas(words[1:])
            return PartitionsAdded(words[0], column([*given]), pad([*given.values()]), Origin.REQUESTED)
        case "states":
            states = partition_states([_state(cluster, word) for word in words], RequestsToBrokers.LEADER_AND_ISR)
            assert states is not None
            return states
        case "known":
            return _known(cluster, words)
        case "move":
            targets = replicas(words[1:])
            return MovesStarted(words[0], {p: _move(cluster, words[0], p, target) for p, target in targets.items()})
        case "moved":
            return MovesFinished(words[0], replicas(words[1:]))
        case "queue" | "queued":
            return DeletionQueued(tuple(words), Origin.REQUESTED if kind == "queue" else Origin.OBSERVED)
        case "forget":
            return DeletionDequeued(tuple(words))
        case "remove" | "removed":
            return TopicRemoved(words[0], Origin.REQUESTED if kind == "remove" else Origin.OBSERVED)
        case "topic-id":
            return TopicIdAssigned(words[0], UUID(int=int(words[1])))
        case "producer-ids":
            return ProducerIdsAllocated(*map(int, words))
    raise ValueError(f"no such change: {text}")


def read_versions(text: str) -> dict[str, int]:
    """Read the version of the topic's znode that a change follows from: `version=3`, 0 where it is missing."""
    _, topic, *words = text.split()
    return {topic: next((int(word.removeprefix("version=")) for word in words if word.startswith("version=")), 0)}


def read_event(texts: Sequence[str]) -> TopicsRead:
    """Read the event of changes: the topics that were found, with the versions of their znodes."""
    found = [read_versions(text) for text in texts if text.split()[0] in {"topic", "repaired"}]
    versions = [version for versions in found for version in versions.items()]
    return TopicsRead(tuple(StoredTopic(name, None, {}, version=version) for name, version in versions), ())


def ids(text: str) -> Replicas:
    """Read `1,2,3`."""
    return tuple(int(word) for word in text.split(",") if word)


def replicas(words: list[str]) -> dict[int, Replicas]:
    """Read `0=1,2 1=2,1`, ignoring all other words."""
    return {int(name): ids(value) for name, _, value in (word.partition("=") for word in words) if name.isdigit()}


def tp(text: str) -> TopicPartition:
    """Read `orders-0`."""
    topic, _, partition = text.rpartition("-")
    return TopicPartition(topic, int(partition))


def row_of(cluster: Cluster, text: str) -> int:
    """Find the row of `orders-0`."""
    row = cluster.row_of(*tp(text))
    assert row is not None, f"no partition {text}"
    return row


def _topic(origin: Origin, words: list[str]) -> TopicAdded:
    given = replicas(words[1:])
    named = {name: value for name, _, value in (word.partition("=") for word in words[1:]) if not name.isdigit()}
    topic_id = UUID(int=int(named.pop("id"))) if "id" in named else None
    named.pop("version", None)
    moves = {
        int(name.removeprefix("move")): Move(given[int(name.removeprefix("move"))], *map(ids, value.split("/")))
        for name, value in named.items()
        if name.startswith("move")
    }
    configs = {name: value for name, value in named.items() if not name.startswith("move")}
    return TopicAdded(words[0], topic_id, column([*given]), pad([*given.values()]), origin, moves, configs)


def _state(cluster: Cluster, word: str) -> NewState:
    """Read `orders-0=leader/epoch/isr[/replicas]`; `!` behind it: the leader was not in sync."""
    name, _, value = word.removesuffix("!").partition("=")
    leader, epoch, isr, *given = value.split("/")
    new_replicas = ids(given[0]) if given else None
    row, unclean = row_of(cluster, name), word.endswith("!")
    return NewState(row, int(leader), int(epoch), ids(isr), replicas=new_replicas, unclean=unclean)


def _known(cluster: Cluster, words: list[str]) -> StatesObserved:
    found = [(row_of(cluster, name), *value.split("/")) for name, _, value in (word.partition("=") for word in words)]
    rows, leaders, epochs, isrs, versions = zip(*found, strict=True)
    return StatesObserved(
        column([*map(int, rows)]),
        column([*map(int, leaders)]),
        column([*map(int, epochs)]),
        pad([*map(ids, isrs)]),
        column([*map(int, versions)]),
        column([1] * len(rows)),
        np.zeros(len(rows), np.bool_),
    )


def _move(cluster: Cluster, topic: str, partition: int, target: Replicas) -> Move:
    row = row_of(cluster, f"{topic}-{partition}")
    running = cluster.moves.get(row)
    present = running.replicas if running else cluster.columns.replicas_of(row)
    return plan_move(present, running.adding if running else (), target)


def joined(values: object) -> str:
    """Write `1,2,3`."""
    return ",".join(map(str, values))


def change_text(cluster: Cluster, change: Change, expected: int) -> str:
    """Write a change as one line; `expected` is the version of the znode for which it is valid."""
    match change:
        case PartitionStates() | StatesObserved():
            found = (_row_text(cluster, change, place) for place in range(len(change.rows)))
            return f"{type(change).__name__} {' '.join(found)}"
        case TopicObserved():
            assigned = " ".join(f"{partition}={joined(given)}" for partition, given in change.replicas.items())
            moving = f" adding {change.adding} removing {change.removing}" if change.adding or change.removing else ""
            return f"TopicObserved {change.name} {assigned}{moving} version {expected}"
        case TopicAdded():
            given = zip(change.partitions.tolist(), map(unpad, change.replicas), strict=True)
            assigned = " ".join(f"{partition}={joined(found)}" for partition, found in given)
            return f"TopicAdded {change.name} {assigned} {change.origin.value}"
        case TopicRemoved():
            return f"TopicRemoved {change.topic} {change.origin.value}"
        case DeletionQueued():
            return f"DeletionQueued {' '.join(change.topics)} {change.origin.value}"
        case DeletionDequeued():
            return f"DeletionDequeued {' '.join(change.names)}"
        case TopicIdAssigned():
            return f"TopicIdAssigned {change.topic} {change.topic_id.int}"
        case MovesStarted() | MovesFinished() | PartitionsAdded():
            return f"{type(change).__name__} {change.topic}"
        case ProducerIdsAllocated():
            return f"ProducerIdsAllocated {change.first} to {change.last}"
        case ProducerIdsObserved():
            return f"ProducerIdsObserved to {change.block_end} version {expected}"
    raise ValueError(f"no words for {change}")


def _row_text(cluster: Cluster, change: PartitionStates | StatesObserved, place: int) -> str:
    topic, partition = cluster.name_of(int(change.rows[place]))
    isr = joined(unpad(np.asarray(change.isr[place])))
    text = f"{topic}-{partition}={change.leader[place]}/{change.leader_epoch[place]}/{isr}"
    return f"{text}/{change.partition_epoch[place]}" if isinstance(change, StatesObserved) else text
