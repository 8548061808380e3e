"""Changes, messages and replies as lines of text, for golden scripts and failing tests.

Values that differ between runs are omitted (topic ids, epochs of registrations).
"""

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from controller_core.decisions.broker_requests import PartitionAnswer, ProducerIdBlock
from controller_core.decisions.topics import TopicCreation
from controller_core.model import Cluster, IntArray, Origin, TopicPartition, changes, quorum_changes, zookeeper_changes
from controller_core.model.columns import unpad
from controller_core.quorum_mode.heartbeats import HeartbeatAnswer
from controller_core.quorum_mode.registration import Registered, Unregistered
from controller_core.zookeeper_mode.controlled_shutdown import Remaining
from kafka_metadata.directory_ids import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kafka_wire import Failure
from tests.controller_core.decisions.messages import LeaderAndIsr, Message, SentState, UpdateMetadata

VERBS = {
    Origin.REQUESTED: "write",
    Origin.OBSERVED: "found",
    Origin.REPAIRED: "rewrite",
}


def ids(replicas: Iterable[int]) -> str:
    """Format a list of broker ids."""
    return f"[{','.join(map(str, replicas))}]"


def name(partition: TopicPartition) -> str:
    """Format a partition's name."""
    return f"{partition.topic}-{partition.partition}"


def change_lines(cluster: Cluster, change: changes.Change, expected: int) -> list[str]:
    """Describe a change before it is applied; `expected` is the version of the znode for which it is valid."""
    match change:
        case changes.PartitionStates():
            return _state_lines(cluster, change)
        case zookeeper_changes.StatesObserved():
            rows = zip(change.rows.tolist(), change.leader, change.leader_epoch, change.isr, strict=True)
            return [f"found state {name(cluster.name_of(row))} {_state(*state)}" for row, *state in rows]
        case changes.TopicAdded(states=changes.FirstStates() as states):
            first = [_state(*state) for state in zip(states.leader, [0] * len(states.leader), states.isr, strict=True)]
            return [
                _topic("write", change.name, _assignment(change.partitions, change.replicas), {}),
                *(
                    f"write state {change.name}-{partition} {state}"
                    for partition, state in zip(change.partitions.tolist(), first, strict=True)
                ),
            ]
        case changes.TopicAdded():
            moves = {p: (m.adding, m.removing) for p, m in change.moves.items()}
            return [_topic(VERBS[change.origin], change.name, _assignment(change.partitions, change.replicas), moves)]
        case changes.PartitionsAdded():
            return [_topic(VERBS[change.origin], change.topic, _assignment(change.partitions, change.replicas), {})]
        case zookeeper_changes.TopicObserved():
            moves = {
                p: (change.adding.get(p, ()), change.removing.get(p, ())) for p in {**change.adding, **change.removing}
            }
            return [_topic("found", change.name, change.replicas, moves)]
        case zookeeper_changes.TopicIdAssigned(topic=topic):
            return [f"write topic id of {topic}"]
        case zookeeper_changes.AssignmentRestored(topic=topic):
            return [f"write topic {topic} as it is known, over version {expected}"]
        case zookeeper_changes.MovesStarted():
            union = {partition: move.replicas for partition, move in change.moves.items()}
            moves = {partition: (move.adding, move.removing) for partition, move in change.moves.items()}
            return [_topic("write", change.topic, union, moves)]
        case zookeeper_changes.MovesFinished():
            return [_topic("write", change.topic, change.replicas, {})]
        case _:
            return [_memory_line(change)]


def _state_lines(cluster: Cluster, change: changes.PartitionStates) -> list[str]:
    lines = []
    for position, row in enumerate(change.rows.tolist()):
        state = _state(change.leader[position], change.leader_epoch[position], change.isr[position])
        unclean = " UNCLEAN" if change.unclean is not None and change.unclean[position] else ""
        if change.elr is not None:
            lines.append(
                f"write state {name(cluster.name_of(row))} {state}{_kraft_state(cluster, change, position)}{unclean}"
            )
            continue
        removed = (
            "" if change.replicas is None else f" removing {ids(_removed(cluster, row, change.replicas[position]))}"
        )
        lines.append(f"write state {name(cluster.name_of(row))} {state}{removed}{unclean}")
    return lines


def _kraft_state(cluster: Cluster, change: changes.PartitionStates, position: int) -> str:
    """Describe what a change in KRaft mode has in addition to leader and ISR: only what differs from the usual."""
    assert change.elr is not None
    assert change.last_known_elr is not None
    row = int(change.rows[position])
    parts = [
        ("elr", unpad(change.elr[position])),
        ("last leader", unpad(change.last_known_elr[position])),
    ]
    if change.replicas is not None and unpad(change.replicas[position]) != cluster.columns.replicas_of(row):
        parts.append(("replicas", unpad(change.replicas[position])))
    words = [f" {what} {ids(found)}" for what, found in parts if found]
    if row in (change.moves or {}):
        move = (change.moves or {})[row]
        words.append(" moved" if move is None else f" adding {ids(move.adding)} removing {ids(move.removing)}")
    if row in (change.directories or {}):
        words.append(
            f" directories [{','.join(directory(directory_id) for directory_id in (change.directories or {})[row])}]"
        )
    if change.recovering is not None and change.recovering[position]:
        words.append(" recovering")
    return "".join(words)


def directory(found: UUID) -> str:
    """Format a directory: tests number theirs."""
    reserved = {UNASSIGNED_DIRECTORY: "unassigned", LOST_DIRECTORY: "lost", MIGRATING_DIRECTORY: "migrating"}
    return reserved.get(found, f"d{found.int % (1 << 64)}")


def _removed(cluster: Cluster, row: int, replicas: IntArray) -> list[int]:
    return [replica for replica in cluster.columns.replicas_of(row) if replica not in replicas]


def _state(leader: int, leader_epoch: int, isr: IntArray) -> str:
    return f"leader {leader} epoch {leader_epoch} isr {ids(unpad(isr))}"


def _assignment(partitions: IntArray, replicas: IntArray) -> dict[int, Sequence[int]]:
    return dict(zip(partitions.tolist(), map(unpad, replicas), strict=True))


def _topic(
    verb: str,
    topic: str,
    replicas: Mapping[int, Sequence[int]],
    moves: Mapping[int, tuple[Sequence[int], Sequence[int]]],
) -> str:
    words = []
    for partition, assigned in replicas.items():
        adding, removing = moves.get(partition, ((), ()))
        lists = [f" adding {ids(adding)}" if adding else "", f" removing {ids(removing)}" if removing else ""]
        words.append(f"{partition}={ids(assigned)}{''.join(lists)}")
    return f"{verb} topic {topic} {', '.join(words)}"


def _memory_line(change: changes.Change) -> str:
    match change:
        case zookeeper_changes.BrokersObserved(brokers=brokers):
            return f"brokers {ids(sorted(broker.id for broker in brokers))}"
        case quorum_changes.BrokerRegistered(broker=broker):
            state = "fenced" if broker.fenced else "in service"
            dirs = f" directories [{','.join(map(directory, broker.directories))}]" if broker.directories else ""
            return f"write broker {broker.id} epoch {broker.epoch} {state}{dirs}"
        case quorum_changes.BrokerChanged():
            words = {True: " fenced", False: " unfenced", None: ""}[change.fenced]
            words += " in controlled shutdown" if change.in_controlled_shutdown else ""
            if change.directories is not None:
                words += f" directories [{','.join(map(directory, change.directories))}]"
            if change.cordoned_directories is not None:
                words += f" cordoned [{','.join(map(directory, change.cordoned_directories))}]"
            return f"write broker {change.broker}{words}"
        case quorum_changes.HeartbeatObserved(broker=broker, metadata_offset=offset):
            return f"broker {broker} has read up to {offset}"
        case quorum_changes.ShutdownOffsetObserved(broker=broker, offset=offset):
            return f"broker {broker} may shut down when others have read up to {offset}"
        case quorum_changes.BrokerLeaving(broker=broker):
            return f"broker {broker} is leaving"
        case quorum_changes.BrokerSuspected(broker=broker):
            return f"broker {broker} is suspected"
        case quorum_changes.ElrCleared(topic=topic):
            return f"clear eligible replicas of {topic or 'all topics'}"
        case quorum_changes.ConfigsChanged(type=kind, name=resource, values=values):
            return f"write configs of {kind.name} {resource or 'default'} {dict(values)}"
        case quorum_changes.FeatureLevelChanged(name=feature, level=level):
            return f"write feature {feature} level {level}"
        case zookeeper_changes.ControlledShutdownStarted(broker=broker):
            return f"broker {broker} is shutting down"
        case zookeeper_changes.ReplicaRemovalAnswered(topic=topic, partition=partition, broker=broker):
            return f"removal of {topic}-{partition} from broker {broker} is no longer awaited"
        case zookeeper_changes.DeletionQueued(topics=topics, origin=origin):
            return f"{VERBS[origin]} deletion of {' '.join(topics)}"
        case zookeeper_changes.DeletionDequeued(names=names):
            return f"remove deletion of {' '.join(names)}"
        case zookeeper_changes.DeletionStarted(topic=topic, waiting=waiting):
            words = " ".join(f"{broker}={ids(partitions)}" for broker, partitions in sorted(waiting.items()))
            return f"deletion of {topic} waits for brokers {words}"
        case zookeeper_changes.DeletionBlocked(topic=topic, reason=reason):
            return f"deletion of {topic} is blocked: {reason}"
        case zookeeper_changes.ReplicasDeleted(topic=topic, broker=broker, partitions=partitions):
            return f"broker {broker} has deleted {topic} {ids(partitions)}"
        case zookeeper_changes.PendingReassignmentRequestsChanged(targets=targets, origin=origin, refused=refused):
            left = " ".join(f"{name(partition)}={ids(target)}" for partition, target in targets.items())
            why = "".join(f"; {name(partition)} {failure}" for partition, failure in refused.items())
            return f"{VERBS[origin]} requested moves {left or 'none'}{why}"
        case zookeeper_changes.ElectionRequestsProcessed(failed=failed):
            why = "".join(f"; {name(partition)} {failure}" for partition, failure in failed.items())
            return f"remove requested elections{why}"
        case changes.TopicRemoved(topic=topic, origin=origin):
            return f"{'remove' if origin is Origin.REQUESTED else 'missing'} topic {topic}"
        case zookeeper_changes.OfflineReplicasObserved(broker=broker, offline=offline, online=online):
            words = [f" offline {' '.join(map(name, offline))}"] if offline else []
            words += [f" online {' '.join(map(name, online))}"] if online else []
            words += [f" refused {name(partition)} ({error})" for partition, error in change.refused.items()]
            return f"broker {broker} has{''.join(words)}"
        case zookeeper_changes.StrayReplicasObserved(broker=broker, partitions=partitions):
            return f"broker {broker} has stray replicas {' '.join(map(name, partitions))}"
        case changes.BrokerUnregistered(broker=broker):
            return f"broker {broker} is unregistered"
        case zookeeper_changes.NotificationsProcessed(paths=paths):
            return f"remove {len(paths)} notifications"
        case changes.ProducerIdsAllocated(broker=broker, first=first, last=last):
            return f"write producer ids {first} to {last} for broker {broker}"
        case zookeeper_changes.TopicDeletionObserved(setting=setting):
            return f"brokers report delete.topic.enable: {setting.value}"
        case changes.ProducerIdsObserved(block_end=block_end):
            return f"found producer ids up to {block_end}"
        case _:
            return repr(change)


def message_line(brokers: Sequence[int], message: Message) -> str:
    """Describe a request to brokers."""
    match message:
        case LeaderAndIsr(partitions=partitions):
            states = [
                f"{name(p)} {_sent_state(t)} replicas {ids(t.replicas)}{' new' * t.is_new}{' recovering' * t.is_recovering}"
                for p, t in partitions.items()
            ]
            text = f"LeaderAndIsr {'; '.join(states)}"
        case UpdateMetadata(live=live, partitions=partitions):
            states = [
                f"; {name(p)} leader {t.leader} epoch {t.leader_epoch} isr {ids(t.isr)}" for p, t in partitions.items()
            ]
            text = f"UpdateMetadata live {ids(live)}{''.join(states)}"
        case _:
            states = [f"{name(partition)} epoch {epoch}" for partition, epoch in message.partitions.items()]
            text = f"StopReplica{' delete' * message.delete} {'; '.join(states)}"
    return f"to {','.join(map(str, brokers))}: {text}"


def _sent_state(state: SentState) -> str:
    return f"leader {state.leader} epoch {state.leader_epoch} isr {ids(state.isr)}"


def reply_lines(reply: object) -> list[str]:
    """Describe the response to a caller; an event without a caller has none."""
    match reply:
        case None:
            return []
        case Failure():
            return [f"reply {reply}"]
        case Remaining(partitions=partitions):
            return [f"reply remaining: {' '.join(map(name, partitions)) or 'none'}"]
        case Registered(broker_epoch=epoch):
            return [f"reply epoch {epoch}"]
        case Unregistered():
            return ["reply unregistered"]
        case HeartbeatAnswer():
            flags = {"behind": not reply.is_caught_up, "fenced": reply.is_fenced, "may shut down": reply.may_shut_down}
            return [f"reply {', '.join(flag for flag, is_set in flags.items() if is_set) or 'in service'}"]
        case ProducerIdBlock(first=first, size=size):
            return [f"reply {size} producer ids from {first}"]
        case Mapping():
            return [f"reply {_key(key)}: {_answer(value)}" for key, value in reply.items()]
        case _:
            raise TypeError(f"no text for a reply of {type(reply).__name__}")


def _key(key: object) -> str:
    return name(key) if isinstance(key, TopicPartition) else str(key)


def _answer(value: object) -> str:
    match value:
        case None:
            return "done"
        case TopicCreation(failure=None):
            return f"{value.partitions} partitions, replication factor {value.replication_factor}"
        case TopicCreation(failure=failure):
            return str(failure)
        case PartitionAnswer():
            return (
                f"leader {value.leader} epoch {value.leader_epoch} isr {ids(value.isr)} version {value.partition_epoch}"
            )
        case _:
            return str(value)
