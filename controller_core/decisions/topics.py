"""Creation of topics and partitions.

Topics of a request are independent of each other. Error messages are Kafka's (ZkAdminManager.createTopics, createPartitions), since
users and tools know them.

In ZooKeeper mode a topic is first written without partition states. Its partitions then become online in the same way as those of a topic
that a broker created (auto-creation), so a crash between the two writes loses nothing. In KRaft mode the first leaders and ISRs are in the
same write: a partition gets its live replicas as its ISR, and needs at least one.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from uuid import UUID

import numpy as np

from controller_core import model
from controller_core.model import changes, events, settings
from controller_core.model.columns import pad, unpad
from controller_core.model.decision import Decision
from controller_core.rules import election_columns, mutation_quota, striped_placement
from controller_core.rules.placement import PlacementError, place_added, place_replicas
from kafka_node.configs.topic_configs import topic_config_error
from kafka_node.topic_names import topic_name_error
from kafka_wire import ErrorCode, Failure

MAX_PARTITIONS_PER_REQUEST = 10_000
"""Total number of partitions that one request may add. It is the limit of Kafka's KRaft controller (KIP-599 limits only rates), and
keeps one request from occupying the controller for long."""


@dataclass(frozen=True, slots=True)
class TopicCreation:
    """Result for one topic of a CreateTopics request."""

    failure: Failure | None
    topic_id: UUID | None = None
    partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


def decide_create_topics(cluster: model.Cluster, event: events.CreateTopics) -> Decision[dict[str, TopicCreation]]:
    """Check and place each topic; write the valid ones, unless the request is only to be validated."""
    results: dict[str, TopicCreation] = {}
    made: list[changes.Change] = []
    remaining = MAX_PARTITIONS_PER_REQUEST
    spending = mutation_quota.Spending(event.allowance)
    for new in event.topics:
        if (repeated := _created_earlier(cluster, new)) is not None:
            results[new.name] = repeated
            continue
        placed = _place_topic(cluster, new, event, results)
        if isinstance(placed, Failure):
            results[new.name] = TopicCreation(placed)
            continue
        if len(placed) > remaining:
            message = f"Unable to create more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request."
            results[new.name] = TopicCreation(Failure(ErrorCode.POLICY_VIOLATION, message))
            continue
        if not event.validate_only and (refused := spending.take(len(placed))) is not None:
            results[new.name] = TopicCreation(refused)
            continue
        states = _first_states(cluster, placed)
        if isinstance(states, Failure):
            results[new.name] = TopicCreation(states)
            continue
        remaining -= len(placed)
        configs = _configs(new)
        replication_factor = len(unpad(placed[0]))
        results[new.name] = TopicCreation(None, new.topic_id, len(placed), replication_factor, configs)
        if not event.validate_only:
            partitions = np.arange(len(placed), dtype=np.int32)
            made.append(
                changes.TopicAdded(
                    new.name, new.topic_id, partitions, placed, model.Origin.REQUESTED, configs=configs, states=states
                )
            )
    created = frozenset(name for name, result in results.items() if result.failure is None)
    needs_leaders = created and not event.validate_only and not cluster.rules.new_leader_at_once
    then = (events.RepairPartitions(created),) if needs_leaders else ()
    return Decision(tuple(made), then=then, reply=results)


def _first_states(cluster: model.Cluster, replicas: model.IntArray) -> changes.FirstStates | Failure | None:
    """Return first leaders, ISRs and directories; None where the mode writes them later."""
    if not cluster.rules.new_leader_at_once:
        return None
    elections = election_columns.elect_new(replicas, _flags(cluster.may_lead(), replicas))
    if not elections.elected.all():
        message = f"All replicas of partition {int(np.argmin(elections.elected))} are fenced or in controlled shutdown."
        return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    placed = [broker for broker in np.unique(replicas).tolist() if broker in cluster.brokers]
    directories = {broker: cluster.brokers[broker].default_directory for broker in placed}
    return changes.FirstStates(elections.leader, elections.isr, directories)


def _flags(brokers: Iterable[int], replicas: model.IntArray) -> model.BoolArray:
    """Return flags by broker id that `replicas` can index: new replicas may be on brokers that no partition has yet."""
    flags = np.zeros(int(replicas.max(initial=0)) + 2, dtype=np.bool_)
    flags[[broker for broker in brokers if broker < len(flags) - 1]] = True
    return flags


def _created_earlier(cluster: model.Cluster, new: events.NewTopic) -> TopicCreation | None:
    """Return the topic that an earlier attempt at this request created, whose write was refused in part or whose result was lost.

    The topic id, generated for the request, distinguishes it from another topic of that name.
    """
    topic = cluster.topics.get(new.name)
    if topic is None or topic.topic_id != new.topic_id or not len(topic.rows):
        return None
    replication_factor = len(cluster.columns.replicas_of(int(topic.rows[0])))
    return TopicCreation(None, new.topic_id, len(topic.rows), replication_factor, _configs(new))


def _configs(new: events.NewTopic) -> dict[str, str]:
    return {key: value for key, value in new.configs.items() if value is not None}


def _place_topic(
    cluster: model.Cluster, new: events.NewTopic, event: events.CreateTopics, earlier: Mapping[str, TopicCreation]
) -> model.IntArray | Failure:
    """Check one new topic against those of the cluster and of the same request, and place its replicas.

    Shape (partitions, replication factor).
    """
    if new.name in cluster.topics:
        return Failure(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{new.name}' already exists.")
    made = [name for name, creation in earlier.items() if creation.failure is None]
    if (failure := topic_name_error(new.name, chain(cluster.topics, made))) is not None:
        return failure
    if (wrong := topic_config_error(new.configs, cluster.rules.topic_configs)) is not None:
        return Failure(ErrorCode.INVALID_CONFIG, wrong.message)
    if new.assignment:
        if new.partitions != -1 or new.replication_factor != -1:
            message = "Both numPartitions or replicationFactor and replicasAssignments were set. Both cannot be used at the same time."
            return Failure(ErrorCode.INVALID_REQUEST, message)
        return _given(cluster, new.assignment)
    partitions = event.default_partitions if new.partitions == -1 else new.partitions
    replication_factor = event.default_replication_factor if new.replication_factor == -1 else new.replication_factor
    if partitions > MAX_PARTITIONS_PER_REQUEST:
        message = f"Unable to create more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request."
        return Failure(ErrorCode.POLICY_VIOLATION, message)
    try:
        if cluster.rules.striped_placement:
            return striped_placement.place_striped(_usable(cluster), partitions, replication_factor, seed=new.seed)
        return place_replicas(_racks(cluster), partitions, replication_factor, new.start_index, new.replica_shift)
    except PlacementError as error:
        return _refused_placement(error)


def _usable(cluster: model.Cluster) -> list[striped_placement.StripedBroker]:
    """Return the brokers that may get replicas in KRaft mode: fenced ones too, but none in shutdown or without a free directory."""
    return [
        striped_placement.StripedBroker(broker.id, broker.rack, broker.fenced)
        for broker in cluster.brokers.values()
        if broker.id not in cluster.shutting_down and broker.may_get_replicas
    ]


def _given(cluster: model.Cluster, assignment: Mapping[int, model.Replicas]) -> model.IntArray | Failure:
    """Check an assignment given by the caller."""
    message = None
    lists = [assignment[partition] for partition in sorted(assignment)]
    if sorted(assignment) != list(range(len(assignment))):
        message = "partitions should be a consecutive 0-based integer sequence"
    elif len({len(replicas) for replicas in lists}) != 1:
        message = "All partitions should have the same number of replicas"
    else:
        known = _known_brokers(cluster, lists)
        message = next(
            (bad for replicas in lists if (bad := _refuse_replicas(cluster, replicas, known)) is not None), None
        )
    return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message) if message else pad(lists)


def _known_brokers(cluster: model.Cluster, lists: Iterable[model.Replicas]) -> frozenset[int]:
    """Return the brokers that a new topic may be assigned to: registered ones, and offline ones that have replicas.

    Kafka in ZooKeeper mode accepts any id (ZkAdminManager.createTopics); an id that nothing in the cluster contains is a mistake.
    """
    known = frozenset(cluster.registered())
    if not cluster.rules.striped_placement and not known.issuperset(chain.from_iterable(lists)):
        columns = cluster.columns
        known |= frozenset(np.unique(columns.replicas[columns.used()]).tolist())
    return known - {model.NO_BROKER, cluster.controller_id}


def _refuse_replicas(cluster: model.Cluster, replicas: model.Replicas, known: Iterable[int]) -> str | None:
    if not replicas:
        return "Cannot have replication factor of 0 for any partition."
    if len(set(replicas)) != len(replicas):
        return f"Duplicate replica assignment found: {list(replicas)}"
    if cluster.controller_id in replicas:
        return f"Node {cluster.controller_id} is the controller and holds no data: it cannot have a replica."
    if unknown := sorted(set(replicas).difference(known)):
        return f"Unknown broker(s) in replica assignment: {', '.join(map(str, unknown))}."
    return None


def decide_create_partitions(
    cluster: model.Cluster, event: events.CreatePartitions
) -> Decision[dict[str, Failure | None]]:
    """Check and place the partitions to add to each topic."""
    results: dict[str, Failure | None] = {}
    made: list[changes.Change] = []
    spending = mutation_quota.Spending(event.allowance)
    for new in event.topics:
        placed = _place_partitions(cluster, new)
        states = None if isinstance(placed, Failure) else _first_states(cluster, placed)
        if isinstance(states, Failure):
            placed, states = states, None
        if not isinstance(placed, Failure) and not event.validate_only:
            placed = spending.take(len(placed)) or placed
        results[new.topic] = placed if isinstance(placed, Failure) else None
        if not isinstance(placed, Failure) and not event.validate_only:
            first = len(cluster.topics[new.topic].rows)
            partitions = np.arange(first, first + len(placed), dtype=np.int32)
            made.append(changes.PartitionsAdded(new.topic, partitions, placed, model.Origin.REQUESTED, states))
    # Also for refused topics: an earlier attempt at the request may have added their partitions.
    needs_leaders = not event.validate_only and not cluster.rules.new_leader_at_once
    then = (events.RepairPartitions(frozenset(results)),) if needs_leaders else ()
    return Decision(tuple(made), then=then, reply=results)


def _place_partitions(cluster: model.Cluster, new: events.NewPartitions) -> model.IntArray | Failure:
    topic = cluster.topics.get(new.topic)
    if topic is None or new.topic in cluster.deletions:
        return Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{new.topic}' does not exist.")
    if cluster.is_moving(topic):
        message = f"A partition reassignment is in progress for the topic '{new.topic}'."
        return Failure(ErrorCode.REASSIGNMENT_IN_PROGRESS, message)
    current, added = len(topic.rows), new.count - len(topic.rows)
    if cluster.columns.partition[topic.rows].tolist() != list(range(max(1, current))):
        # The znode was edited manually: the next partition id and the number of replicas are unclear.
        message = f"The partitions of the topic '{new.topic}' are not numbered from 0 on without gaps."
        return Failure(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    if added < 0:
        message = f"Topic currently has {current} partitions, which is higher than the requested {new.count}."
        return Failure(ErrorCode.INVALID_PARTITIONS, message)
    if added == 0:
        return Failure(ErrorCode.INVALID_PARTITIONS, f"Topic already has {current} partitions.")
    if added > MAX_PARTITIONS_PER_REQUEST:
        message = f"Unable to add more than {MAX_PARTITIONS_PER_REQUEST} partitions in one request."
        return Failure(ErrorCode.POLICY_VIOLATION, message)
    first_replicas = cluster.columns.replicas_of(int(topic.rows[0]))
    if new.assignments is not None:
        return _given_added(cluster, new.assignments, added, len(first_replicas))
    try:
        if cluster.rules.striped_placement:
            return striped_placement.place_striped(_usable(cluster), added, len(first_replicas), seed=new.seed)
        return place_added(_racks(cluster), first_replicas, current, added)
    except PlacementError as error:
        return _refused_placement(error)


def _given_added(
    cluster: model.Cluster, assignments: Sequence[model.Replicas], added: int, replication_factor: int
) -> model.IntArray | Failure:
    message = None
    if len(assignments) != added:
        message = f"Increasing the number of partitions by {added} but {len(assignments)} assignments provided."
    elif any(len(replicas) != replication_factor for replicas in assignments):
        message = f"Existing topic has replication factor {replication_factor}; every added partition must have as many replicas."
    else:
        # Unlike those of a new topic, brokers of added partitions must be alive (ZkAdminManager.createPartitions).
        live = cluster.registered() if cluster.rules.striped_placement else cluster.may_lead()
        message = next(
            (bad for replicas in assignments if (bad := _refuse_replicas(cluster, replicas, live)) is not None), None
        )
    return Failure(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message) if message else pad(assignments)


def check_deletions(cluster: model.Cluster, event: events.DeleteTopics) -> dict[str, Failure | None]:
    """Return for each name why its topic may not be deleted; None: it may."""
    if cluster.topic_deletion is settings.TopicDeletion.DISABLED:
        disabled = Failure(ErrorCode.TOPIC_DELETION_DISABLED, ErrorCode.TOPIC_DELETION_DISABLED.message)
        return dict.fromkeys(event.names, disabled)
    spending = mutation_quota.Spending(event.allowance)
    unknown = Failure(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return {
        name: spending.take(len(cluster.topics[name].rows)) if name in cluster.topics else unknown
        for name in event.names
    }


def _racks(cluster: model.Cluster) -> dict[int, str | None]:
    """Return live brokers and their racks; the controller's id is not among them (protocol notes, Z22)."""
    return {broker: cluster.brokers[broker].rack for broker in sorted(cluster.may_lead())}


def _refused_placement(error: PlacementError) -> Failure:
    return Failure(ErrorCode[error.code], str(error))
