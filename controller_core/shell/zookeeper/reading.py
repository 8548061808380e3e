"""Reading of the cluster's state from ZooKeeper into the core's values: brokers, topics, partition states, producer ids.

A znode that cannot be decoded or that is invalid (`validation`) affects nothing else: it is logged and ignored.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from controller_core import model
from controller_core.model import settings, zookeeper_changes, zookeeper_events
from controller_core.model.ids import MAX_BROKER_ID
from controller_core.shell.pace import Pauses
from controller_core.shell.zookeeper.validation import check_assignment, is_valid_state
from controller_core.zookeeper_mode.znode_versions import NO_ZNODE
from kafka_zookeeper import formats, paths
from kafka_zookeeper.formats import partition_columns, producer_ids
from kafka_zookeeper.session import Node, ZooKeeperSession

log = logging.getLogger(__name__)

MIN_LONGEST_ISR = 8
"""Members of an ISR that are read even if all assignments are shorter: an administrator may have shortened an assignment."""
TOPIC_BYTES_PER_STEP = 65_536
"""Bytes of topics' assignments that are decoded before the event loop runs: about 4,000 partitions, 15 ms. One topic is decoded
in one step: at most 65,000 partitions, the capacity of a znode of 1 MiB."""
CONFIGS_PER_STEP = 2_000
"""Topic configurations that are decoded before the event loop runs: about 10 ms."""


def decode_brokers(nodes: Mapping[str, Node | None], controller_id: int) -> tuple[model.Broker, ...]:
    """Decode registrations; deleted ones and those that cannot be decoded are omitted.

    A broker with the controller's own id is omitted as well: its actions could not be distinguished from the controller's.
    """
    brokers: list[model.Broker] = []
    for name, node in nodes.items():
        if node is None or not (name.isascii() and name.isdigit()) or int(name) > MAX_BROKER_ID:
            continue
        broker_id = int(name)
        if broker_id == controller_id:
            log.error(
                "Ignoring broker that has the controller's id; give the controller another one",
                extra={"broker": broker_id},
            )
            continue
        try:
            found = formats.decode_broker(broker_id, node.data)
        except formats.FormatError as error:
            log.error(
                "Ignoring broker; failed to decode its registration", extra={"broker": broker_id, "error": str(error)}
            )
            continue
        endpoints = tuple(
            model.Endpoint(endpoint.listener, endpoint.host, endpoint.port, endpoint.security_protocol)
            for endpoint in found.endpoints
        )
        brokers.append(model.Broker(broker_id, node.czxid, endpoints, found.rack))
    return tuple(brokers)


def brokers_read(
    nodes: Mapping[str, Node | None], controller_id: int, inter_broker_listener: str
) -> zookeeper_events.BrokersRead:
    """Decode registrations, and separate the brokers without the inter-broker listener from the others."""
    found = decode_brokers(nodes, controller_id)
    reachable = tuple(broker for broker in found if broker.endpoint(inter_broker_listener) is not None)
    return zookeeper_events.BrokersRead(reachable, tuple(broker for broker in found if broker not in reachable))


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A topic's znode that cannot be decoded."""

    version: int
    reason: str


@dataclass(frozen=True, slots=True)
class TopicsFound:
    """Topics as read from ZooKeeper. Names in neither list have no znode."""

    records: tuple[zookeeper_events.StoredTopic, ...]
    unreadable: Mapping[str, Unreadable]


async def find_topics(session: ZooKeeperSession, names: Sequence[str]) -> TopicsFound:
    """Read topics' assignments; those that cannot be decoded are returned apart from those that do not exist."""
    nodes = await session.multi_get([paths.topic(name) for name in names])
    records: list[zookeeper_events.StoredTopic] = []
    unreadable: dict[str, Unreadable] = {}
    pauses = Pauses(TOPIC_BYTES_PER_STEP)
    for name, node in zip(names, nodes, strict=True):
        if node is None:
            continue
        await pauses.after(len(node.data or b""))
        try:
            found = formats.decode_topic(name, node.data)
            check_assignment(name, found)
        except formats.FormatError as error:
            unreadable[name] = Unreadable(node.version, str(error))
            continue
        records.append(
            zookeeper_events.StoredTopic(
                name, found.topic_id, found.replicas, found.adding, found.removing, node.version
            )
        )
    return TopicsFound(tuple(records), unreadable)


async def read_topics(session: ZooKeeperSession, names: Sequence[str]) -> tuple[zookeeper_events.StoredTopic, ...]:
    """Read topics' assignments; deleted topics and those that cannot be decoded are omitted."""
    found = await find_topics(session, names)
    for name, unreadable in found.unreadable.items():
        log.error("Ignoring topic; failed to decode its assignment", extra={"topic": name, "error": unreadable.reason})
    return found.records


async def read_states(
    session: ZooKeeperSession, cluster: model.Cluster, rows: model.IntArray, *, shares_a_replica: bool = True
) -> zookeeper_changes.StatesObserved | None:
    """Read the states of rows; None if none of them has one.

    A state whose ISR contains none of the known replicas is invalid and ignored. When a term begins (`shares_a_replica` false) it is
    accepted: the assignment may have been edited by an administrator, and the state is then the only reliable information.
    """
    names = cluster.names_of(rows)
    where = [paths.partition_state(*name) for name in names]
    nodes = await session.multi_get(where)
    columns = partition_columns.decode_partition_states(where, [None if node is None else node.data for node in nodes])
    for place, error in columns.errors.items():
        log.error(
            "Ignoring partition state that cannot be decoded", extra={**_partition(names[place]), "error": str(error)}
        )
    replicas = cluster.columns.replicas[rows]
    counts = np.diff(columns.isr_offsets)
    # An ISR longer than any list of replicas is invalid and would only make the array wide.
    longest = max(replicas.shape[1], MIN_LONGEST_ISR)
    isr = _rectangle(columns.isr, columns.isr_offsets, np.where(counts > longest, 0, counts))
    is_valid = is_valid_state(columns.leader, columns.leader_epoch, isr, replicas, shares_a_replica=shares_a_replica)
    for place in np.flatnonzero(columns.present & ~is_valid).tolist():
        log.error(
            "Ignoring invalid partition state",
            extra={**_partition(names[place]), "state": str(columns.state(place))},
        )
    valid = np.flatnonzero(columns.present & is_valid)
    if not len(valid):
        return None
    versions = np.array([model.NO_BROKER if node is None else node.version for node in nodes], dtype=np.int32)
    return zookeeper_changes.StatesObserved(
        rows[valid],
        columns.leader[valid],
        columns.leader_epoch[valid],
        isr[valid],
        versions[valid],
        columns.controller_epoch[valid],
        columns.leader_recovery_state[valid] == formats.RECOVERING,
    )


def _partition(name: model.TopicPartition) -> dict[str, str | int]:
    return {"topic": name.topic, "partition": name.partition}


def _rectangle(flat: model.IntArray, offsets: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> model.IntArray:
    """Convert concatenated lists to one row each, padded with -1."""
    width = int(counts.max(initial=1))
    slots = np.arange(width)
    filled = slots < counts[:, None]
    rectangle = np.full((len(counts), width), model.NO_BROKER, dtype=np.int32)
    rectangle[filled] = flat[(offsets[:-1, None] + slots)[filled]]
    return rectangle


async def read_unclean_topics(session: ZooKeeperSession, names: Sequence[str]) -> dict[str, bool]:
    """Read per-topic unclean.leader.election.enable; topics that do not set it are omitted.

    A configuration that cannot be decoded counts as false, whatever the default is: an unclean election may lose records.
    """
    where = [paths.topic_config(name) for name in names]
    nodes = await session.multi_get(where)
    unclean: dict[str, bool] = {}
    pauses = Pauses(CONFIGS_PER_STEP)
    for name, path, node in zip(names, where, nodes, strict=True):
        await pauses.after()
        try:
            config = formats.decode_config(path, None if node is None else node.data)
        except formats.FormatError as error:
            log.error("Failed to decode topic configuration", extra={"topic": name, "error": str(error)})
            unclean[name] = False
            continue
        if settings.UNCLEAN_ELECTION in config:
            unclean[name] = _is_true(config[settings.UNCLEAN_ELECTION])
    return unclean


async def with_configs(
    session: ZooKeeperSession, records: Sequence[zookeeper_events.StoredTopic]
) -> tuple[zookeeper_events.StoredTopic, ...]:
    """Add the configurations that the controller uses to topics that other processes created."""
    if not records:
        return ()
    unclean = await read_unclean_topics(session, [record.name for record in records])
    configs = {name: {settings.UNCLEAN_ELECTION: str(allowed).lower()} for name, allowed in unclean.items()}
    return tuple(replace(record, configs=configs.get(record.name, {})) for record in records)


async def read_unclean_default(session: ZooKeeperSession) -> bool | None:
    """Read the brokers' dynamic default of unclean.leader.election.enable; None if it is not set."""
    path = paths.config(formats.EntityType.BROKERS, formats.DEFAULT_ENTITY)
    node = await session.get(path)
    try:
        config = formats.decode_config(path, None if node is None else node.data)
    except formats.FormatError as error:
        log.error("Failed to decode the brokers' default configuration", extra={"path": path, "error": error.reason})
        return None
    return _is_true(config[settings.UNCLEAN_ELECTION]) if settings.UNCLEAN_ELECTION in config else None


def _is_true(text: str) -> bool:
    """Parse a boolean as Kafka does, ignoring case and surrounding blanks."""
    return text.strip().lower() == "true"


@dataclass(frozen=True, slots=True)
class ProducerIds:
    """The last allocated block of producer ids, as found written."""

    block_end: int
    version: int
    """Version of the znode."""


async def read_producer_ids(session: ZooKeeperSession) -> ProducerIds:
    """Read the last allocated block of producer ids.

    If it cannot be decoded, no ids are allocated any longer: an id must never be allocated twice.
    """
    node = await session.get(paths.PRODUCER_ID_BLOCK)
    if node is None:
        return ProducerIds(-1, NO_ZNODE)
    try:
        block = formats.decode_producer_id_block(node.data)
    except formats.FormatError as error:
        log.error(
            "Failed to decode the last block of producer ids; none is allocated any longer. Correct the znode and restart the controller",
            extra={"error": str(error)},
        )
        return ProducerIds(producer_ids.INT64_MAX, node.version)
    return ProducerIds(-1 if block is None else block.last_producer_id, node.version)
