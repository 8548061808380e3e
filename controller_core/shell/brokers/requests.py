"""Bodies of the requests that a controller sends to brokers: pure functions of the cluster's current state.

Field names are those of Kafka's messages (LeaderAndIsrRequest 4 to 7, UpdateMetadataRequest 6 to 8, StopReplicaRequest 3
and 4); the codec omits what a version does not have. The broker's epoch is added for each broker.

Partition states of LeaderAndIsr and UpdateMetadata are copied from the columns and become bytes when the version is known. Their
readable twin, with one dict for each partition, is in the tests; both produce the same bytes. The controller lists itself among the
live brokers, on each of its listeners, so that brokers and clients find it (protocol notes, Z20, Z24).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from controller_core.model import NO_BROKER, NO_EPOCH, Broker, Cluster, Endpoint, IntArray, Replicas, TopicPartition
from controller_core.model.columns import keep_ids, pad, positions_of
from controller_core.model.decision import SendLeaderAndIsr, SendMetadata, SendStopReplica
from controller_core.model.ids import LEADER_DURING_DELETE
from controller_core.rules.election_columns import offline_flags
from kafka_metadata.records import SECURITY_PROTOCOL_IDS
from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ApiKey, Body, codec
from kafka_wire.columns.leader_and_isr_errors import decode_errors
from kafka_wire.columns.states import StateColumns, TopicStates, request_parts


@dataclass(frozen=True, slots=True, eq=False)
class StatesBody:
    """Body of a request that contains partition states."""

    key: ApiKey
    head: Body
    """All fields except the states."""
    states: StateColumns

    def to(self, broker_epoch: int) -> "StatesBody":
        """Return the body for one incarnation of a broker; the states are shared."""
        return replace(self, head={**self.head, "broker_epoch": broker_epoch})

    def parts(self, version: int) -> Iterator[bytes]:
        """Encode the request in parts that are to be joined; the first ones and the last one are small."""
        return request_parts(f"{self.key.message}Request", version, self.head, self.states)

    @property
    def partitions(self) -> int:
        """Number of partitions."""
        return len(self.states)

    @property
    def topic_names(self) -> Mapping[UUID, str]:
        """Names of the topics, by id."""
        return {topic.topic_id: topic.name for topic in self.states.topics}

    @property
    def leader_epochs(self) -> Mapping[TopicPartition, int]:
        """The leader epochs that the request contains."""
        numbers = self.states.numbers
        names = (topic.name for topic in self.states.topics for _ in range(topic.partitions))
        states = zip(names, numbers["partition_index"].tolist(), numbers["leader_epoch"].tolist(), strict=True)
        return {TopicPartition(name, partition): epoch for name, partition, epoch in states}

    @property
    def deletes_partitions(self) -> bool:
        """Whether the request reports any partition as deleted."""
        return bool((self.states.numbers["leader"] == LEADER_DURING_DELETE).any())


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """How the controller is listed among the brokers."""

    endpoints: tuple[Endpoint, ...]
    inter_broker_listener: str
    rack: str | None = None
    """Only sent if the brokers have racks; None: the rack of the broker with the lowest id. If only some of the listed brokers have a
    rack, brokers refuse automatic topic creation ("Not all brokers have rack information")."""


def leader_and_isr(cluster: Cluster, send: SendLeaderAndIsr, own: OwnAddress) -> StatesBody:
    """Return the LeaderAndIsr request of the partitions that a broker has to lead and follow."""
    leaders = np.unique(cluster.columns.leader[send.rows]).tolist()
    head = {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "live_leaders": list(addresses(cluster, leaders, own.inter_broker_listener)),
    }
    return StatesBody(ApiKey.LEADER_AND_ISR, head, leader_states(cluster, send))


def update_metadata(cluster: Cluster, send: SendMetadata, own: OwnAddress) -> StatesBody:
    """Return the UpdateMetadata request: the live brokers, and the leaders of the rows."""
    head = {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "live_brokers": [live_broker(broker) for broker in known_brokers(cluster, own)],
    }
    return StatesBody(ApiKey.UPDATE_METADATA, head, metadata_states(cluster, send))


def stop_replica(cluster: Cluster, send: SendStopReplica) -> Body:
    """Return the StopReplica request: the broker stops fetching and, with `send.delete`, deletes its logs."""
    topics: dict[str, list[Body]] = {}
    for (name, partition), leader_epoch in zip(send.partitions, send.leader_epochs, strict=True):
        state = {"partition_index": partition, "leader_epoch": leader_epoch, "delete_partition": send.delete}
        topics.setdefault(name, []).append(state)
    return {
        "controller_id": cluster.controller_id,
        "controller_epoch": cluster.controller_epoch,
        "topic_states": [{"topic_name": name, "partition_states": states} for name, states in topics.items()],
    }


def known_brokers(cluster: Cluster, own: OwnAddress) -> Sequence[Broker]:
    """List the registered brokers, and the controller as one more."""
    brokers = [cluster.brokers[broker_id] for broker_id in sorted(cluster.brokers)]
    racks = [broker.rack for broker in brokers if broker.rack is not None]
    rack = own.rack or racks[0] if racks else None
    return [*brokers, Broker(cluster.controller_id, NO_EPOCH, own.endpoints, rack)]


def live_broker(broker: Broker) -> Body:
    """Return one broker's entry in UpdateMetadata."""
    endpoints = [
        {
            "host": endpoint.host,
            "port": endpoint.port,
            "listener": endpoint.listener,
            "security_protocol": SECURITY_PROTOCOL_IDS[endpoint.security_protocol],
        }
        for endpoint in broker.endpoints
    ]
    return {"id": broker.id, "endpoints": endpoints, "rack": broker.rack}


def addresses(cluster: Cluster, ids: Iterable[int], listener: str) -> Iterable[Body]:
    """Return brokers' addresses on one listener; brokers that are not live or do not have it are omitted."""
    for broker_id in sorted(ids):
        broker = cluster.brokers.get(broker_id)
        endpoint = None if broker is None else broker.endpoint(listener)
        if endpoint is not None:
            yield {"broker_id": broker_id, "host_name": endpoint.host, "port": endpoint.port}


def leader_states(cluster: Cluster, send: SendLeaderAndIsr) -> StateColumns:
    """Copy the states of the partitions that a broker has to lead and follow."""
    topics, order = _by_topic(cluster, send.rows)
    rows = send.rows[order]
    numbers, lists = _common(cluster, rows)
    numbers["partition_epoch"] = cluster.columns.partition_epoch[rows]
    flags = {"is_new": send.is_new[order], "leader_recovery_state": cluster.columns.recovering[rows]}
    return StateColumns(topics, numbers, lists | _moves(cluster, rows), flags)


def metadata_states(cluster: Cluster, send: SendMetadata) -> StateColumns:
    """Copy the states that brokers answer Metadata requests from."""
    topics, order = _by_topic(cluster, send.rows)
    rows = send.rows[order]
    numbers, lists = _common(cluster, rows)
    # UpdateMetadata has the same number under its older name.
    numbers["zk_version"] = cluster.columns.partition_epoch[rows]
    if send.deleting:
        numbers["leader"] = np.full(len(rows), LEADER_DURING_DELETE, dtype=np.int32)
    replicas = lists["replicas"]
    offline = (~cluster.columns.flags(cluster.may_lead())[replicas] | offline_flags(cluster, rows, replicas)) & (
        replicas != NO_BROKER
    )
    if offline.any():
        lists["offline_replicas"] = keep_ids(replicas, offline)
    return StateColumns(topics, numbers, lists, {}, shared=True)


def _common(cluster: Cluster, rows: IntArray) -> tuple[dict[str, IntArray], dict[str, IntArray]]:
    columns = cluster.columns
    numbers = {
        "partition_index": columns.partition[rows],
        "controller_epoch": columns.controller_epoch[rows],
        "leader": columns.leader[rows],
        "leader_epoch": columns.leader_epoch[rows],
    }
    return numbers, {"isr": columns.isr[rows], "replicas": columns.replicas[rows]}


def _moves(cluster: Cluster, rows: IntArray) -> dict[str, IntArray]:
    """List the replicas that moves add and remove; none for a move whose target replicas are the only ones left."""
    moves = [
        (place, move)
        for place in positions_of(cluster.moves, rows)
        if (move := cluster.moves[int(rows[place])]).replicas == cluster.columns.replicas_of(int(rows[place]))
    ]
    if not moves:
        return {}
    places = [place for place, _ in moves]
    return {
        "adding_replicas": _at(places, [move.adding for _, move in moves], len(rows)),
        "removing_replicas": _at(places, [move.removing for _, move in moves], len(rows)),
    }


def _at(places: Sequence[int], lists: Sequence[Replicas], count: int) -> IntArray:
    """Put lists at their places among many rows; all other rows have an empty list."""
    given = pad(lists)
    ids = np.full((count, given.shape[1]), NO_BROKER, dtype=np.int32)
    ids[places] = given
    return ids


def _by_topic(cluster: Cluster, rows: IntArray) -> tuple[tuple[TopicStates, ...], IntArray]:
    """Group rows by topic, in order of first occurrence; returns the topics, and the rows' places in that order."""
    indices = cluster.columns.topic[rows]
    order = np.arange(len(rows), dtype=np.int32)
    begins = _begins(indices)
    if len(np.unique(indices[begins])) < len(begins):
        # The rows of some topic are not adjacent: group them at the place of its first row.
        _, first, inverse = np.unique(indices, return_index=True, return_inverse=True)
        order = np.argsort(first[inverse], kind="stable").astype(np.int32)
        indices = indices[order]
        begins = _begins(indices)
    counts = np.diff(begins, append=len(rows)).tolist()
    topics = cluster.topics_at(indices[begins])
    states = (
        TopicStates(topic.name, topic.topic_id or NO_TOPIC_ID, count)
        for topic, count in zip(topics, counts, strict=True)
    )
    return tuple(states), order


def _begins(indices: IntArray) -> IntArray:
    """Return the places at which a number differs from the one before."""
    return np.flatnonzero(np.diff(indices, prepend=NO_BROKER - 1)).astype(np.int32)


def decode_answer(key: ApiKey, version: int, frame: bytes) -> Body:
    """Decode a whole response to such a request; partitions without an error are omitted. Raises CodecError."""
    if key is ApiKey.LEADER_AND_ISR:
        return decode_errors(version, frame)
    return codec.decode_response(key, version, frame)[1]


def stopped_partitions(body: Body) -> dict[TopicPartition, int]:
    """Return the partitions that a StopReplica request deletes, with their leader epochs."""
    return {
        TopicPartition(topic["topic_name"], state["partition_index"]): state["leader_epoch"]
        for topic in body["topic_states"]
        for state in topic["partition_states"]
        if state["delete_partition"]
    }


def is_covered_by_full_update(body: Body | StatesBody) -> bool:
    """Return whether the full current state contains the information of a request; it does not contain deleted topics."""
    return isinstance(body, StatesBody) and not body.deletes_partitions
