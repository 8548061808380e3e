"""Reading what is written, as the core's values: brokers, topics, partition states, producer ids.

Znodes that cannot be understood, or that say what cannot be (soundness), cost only themselves: they are named in the log and
left out, as Kafka does or better. Leaves out watching, and everything that changes.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from controller_core.model import changes, events
from controller_core.model.broker import Broker, Endpoint
from controller_core.model.cluster import Cluster, ProducerIds
from controller_core.model.columns import IntArray
from controller_core.model.ids import MAX_BROKER_ID, NO_BROKER
from controller_core.shell.pace import Pauses
from controller_core.shell.zookeeper.validation import can_be, check_assignment
from kafka_zookeeper import paths
from kafka_zookeeper.formats.brokers import decode_broker
from kafka_zookeeper.formats.configs import DEFAULT_ENTITY, EntityType, decode_config
from kafka_zookeeper.formats.documents import FormatError
from kafka_zookeeper.formats.partition_columns import decode_partition_states
from kafka_zookeeper.formats.partition_states import RECOVERING
from kafka_zookeeper.formats.producer_ids import INT64_MAX, decode_producer_id_block
from kafka_zookeeper.formats.topics import decode_topic
from kafka_zookeeper.session import Node, ZooKeeperSession

log = logging.getLogger(__name__)

MIN_LONGEST_ISR = 8
"""Members of an ISR that are read even where all assignments are shorter: somebody may have shortened an assignment by hand."""
TOPIC_BYTES_PER_STEP = 65_536
"""Bytes of topics' assignments that are decoded before the event loop runs: about 4,000 partitions, 15 ms. One topic is decoded
in one go: at most 65,000 partitions, which is all that a znode of 1 MiB has room for."""
CONFIGS_PER_STEP = 2_000
"""Topic configurations that are decoded before the event loop runs: about 10 ms."""
UNCLEAN_ELECTION = "unclean.leader.election.enable"


def decode_brokers(nodes: Mapping[str, Node | None], controller_id: int) -> tuple[Broker, ...]:
    """Read registrations; one that went meanwhile, or that cannot be understood, is left out.

    So is a broker under the controller's own id: nothing that it does could be told from what we do.
    """
    brokers: list[Broker] = []
    for name, node in nodes.items():
        if node is None or not (name.isascii() and name.isdigit()) or int(name) > MAX_BROKER_ID:
            continue
        broker_id = int(name)
        if broker_id == controller_id:
            log.error(
                "a broker has the controller's id and is left out: give the controller another", extra={"id": name}
            )
            continue
        try:
            found = decode_broker(broker_id, node.data)
        except FormatError as error:
            log.error(
                "broker left out: its registration cannot be read", extra={"broker": broker_id, "why": str(error)}
            )
            continue
        endpoints = tuple(
            Endpoint(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in found.endpoints
        )
        brokers.append(Broker(broker_id, node.czxid, endpoints, found.rack))
    return tuple(brokers)


def brokers_read(
    nodes: Mapping[str, Node | None], controller_id: int, inter_broker_listener: str
) -> events.BrokersRead:
    """Read registrations, and separate the brokers without the inter-broker listener from the others."""
    found = decode_brokers(nodes, controller_id)
    reachable = tuple(broker for broker in found if broker.endpoint(inter_broker_listener) is not None)
    return events.BrokersRead(reachable, tuple(broker for broker in found if broker not in reachable))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A topic's znode that cannot be decoded."""

    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class TopicsFound:
    """Topics as they are written. Names in neither list have no znode."""

    records: tuple[events.TopicRecord, ...]
    unreadable: Mapping[str, Unreadable]


async def find_topics(session: ZooKeeperSession, names: Sequence[str]) -> TopicsFound:
    """Read topics' assignments, and tell those that cannot be decoded from those that are gone."""
    nodes = await session.multi_get([paths.topic(name) for name in names])
    records: list[events.TopicRecord] = []
    unreadable: dict[str, Unreadable] = {}
    pauses = Pauses(TOPIC_BYTES_PER_STEP)
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        await pauses.after(len(node.data or b""))
        try:
            found = decode_topic(name, node.data)
            check_assignment(name, found)
        except FormatError as error:
            unreadable[name] = Unreadable(node.version, str(error))
            continue
        records.append(
            events.TopicRecord(name, found.topic_id, found.replicas, found.adding, found.removing, node.version)
        )
    return TopicsFound(tuple(records), unreadable)


async def read_topics(session: ZooKeeperSession, names: Sequence[str]) -> tuple[events.TopicRecord, ...]:
    """Read topics' assignments; one that went in the meantime, or that cannot be decoded, is left out."""
    found = await find_topics(session, names)
    for name, unreadable in found.unreadable.items():
        log.error("topic left out: its assignment cannot be read", extra={"topic": name, "why": unreadable.reason})
    return found.records


async def read_states(
    session: ZooKeeperSession, cluster: Cluster, rows: IntArray, *, shares_a_replica: bool = True
) -> changes.StatesObserved | None:
    """Read the states of rows; None when none of them has one.

    A state whose ISR shares no broker with the known replicas is an error of whoever wrote it, and ignored. At a take-over
    (`shares_a_replica` false) the assignment may be the one that was written by hand: the state is then all that is known.
    """
    names = cluster.names_of(rows)
    where = [paths.partition_state(*name) for name in names]
    nodes = await session.multi_get(where)
    columns = decode_partition_states(where, [None if node is None else node.data for node in nodes])
    for place, error in columns.errors.items():
        log.error("partition state cannot be read", extra={"partition": str(names[place]), "why": str(error)})
    replicas = cluster.columns.replicas[rows]
    counts = np.diff(columns.isr_offsets)
    # A longer ISR than any list of replicas would only make the rectangle wide.
    longest = max(replicas.shape[1], MIN_LONGEST_ISR)
    isr = _rectangle(columns.isr, columns.isr_offsets, np.where(counts > longest, 0, counts))
    sound = can_be(columns.leader, columns.leader_epoch, isr, replicas, shares_a_replica=shares_a_replica)
    for place in np.flatnonzero(columns.present & ~sound).tolist():
        log.error(
            "partition state cannot be", extra={"partition": str(names[place]), "state": str(columns.state(place))}
        )
    there = np.flatnonzero(columns.present & sound)
    if not len(there):
        return None
    versions = np.array([NO_BROKER if node is None else node.version for node in nodes], dtype=np.int32)
    return changes.StatesObserved(
        rows[there],
        columns.leader[there],
        columns.leader_epoch[there],
        isr[there],
        versions[there],
        columns.controller_epoch[there],
        columns.leader_recovery_state[there] == RECOVERING,
    )


def _rectangle(flat: IntArray, offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> IntArray:
    """Turn lists one after another into a rectangle, padded with -1."""
    width = int(counts.max(initial=1))
    slots = np.arange(width)
    filled = slots < counts[:, None]
    rectangle = np.full((len(counts), width), NO_BROKER, dtype=np.int32)
    rectangle[filled] = flat[(offsets[:-1, None] + slots)[filled]]
    return rectangle


async def read_unclean_topics(session: ZooKeeperSession, names: Sequence[str]) -> dict[str, bool]:
    """Read what topics say themselves of leaders from outside the ISR; those that say nothing are left out.

    What cannot be read allows nothing, whatever the default: records may be lost by it.
    """
    where = [paths.topic_config(name) for name in names]
    nodes = await session.multi_get(where)
    unclean: dict[str, bool] = {}
    pauses = Pauses(CONFIGS_PER_STEP)
    for name, path, node in zip(names, where, nodes, strict=True):
        await pauses.after()
        try:
            config = decode_config(path, None if node is None else node.data)
        except FormatError as error:
            log.error("topic configuration cannot be read", extra={"topic": name, "why": str(error)})
            unclean[name] = False
            continue
        if UNCLEAN_ELECTION in config:
            unclean[name] = _is_true(config[UNCLEAN_ELECTION])
    return unclean


async def with_configs(
    session: ZooKeeperSession, records: Sequence[events.TopicRecord]
) -> tuple[events.TopicRecord, ...]:
    """Add the configurations of topics that nobody here made, as far as they are the controller's business."""
    if not records:
        return ()
    unclean = await read_unclean_topics(session, [record.name for record in records])
    told = {name: {UNCLEAN_ELECTION: str(allowed).lower()} for name, allowed in unclean.items()}
    return tuple(replace(record, configs=told.get(record.name, {})) for record in records)


async def read_unclean_default(session: ZooKeeperSession) -> bool | None:
    """Read the dynamic default of all brokers for leaders from outside the ISR; None where nothing is set."""
    path = paths.config(EntityType.BROKERS, DEFAULT_ENTITY)
    node = await session.get(path)
    try:
        config = decode_config(path, None if node is None else node.data)
    except FormatError as error:
        log.error("the brokers' default configuration cannot be read", extra={"path": path, "why": error.reason})
        return None
    return _is_true(config[UNCLEAN_ELECTION]) if UNCLEAN_ELECTION in config else None


def _is_true(text: str) -> bool:
    """Read a boolean as Kafka does, without regard to case and to blanks around it."""
    return text.strip().lower() == "true"


async def read_producer_ids(session: ZooKeeperSession) -> ProducerIds:
    """Read the last block of producer ids.

    Where it cannot be read no ids are left to be handed out: to hand one out twice must not be risked.
    """
    node = await session.get(paths.PRODUCER_ID_BLOCK)
    if node is None:
        return ProducerIds()
    try:
        block = decode_producer_id_block(node.data)
    except FormatError as error:
        log.error(
            "no producer ids are handed out: the last block cannot be read; put it right, and restart the controller",
            extra={"why": str(error)},
        )
        return ProducerIds(INT64_MAX, node.version)
    return ProducerIds(-1 if block is None else block.last_producer_id, node.version)
