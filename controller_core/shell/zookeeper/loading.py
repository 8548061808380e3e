"""Loading of the cluster's state at the beginning of an active term: everything is read once, in bulk.

Later changes are found by the first read of each watch (`watching`).
"""

import logging
import time

import numpy as np

from controller_core.model import NO_EPOCH, Cluster, Origin, changes, zookeeper_changes
from controller_core.shell import pace, startup_checks, state_log
from controller_core.shell.zookeeper import controller_election, reading
from controller_core.shell.zookeeper.store import Store
from controller_core.zookeeper_mode import observed_topics, transitions
from controller_core.zookeeper_mode.controller_id import claimed_by_states, claimed_partitions
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper import formats, paths, writes
from kafka_zookeeper.session import ZooKeeperSession

log = logging.getLogger(__name__)

WATCHED_PARENTS = (
    "/brokers",
    paths.BROKER_IDS,
    paths.TOPICS,
    "/config",
    "/config/topics",
    paths.CONFIG_CHANGES,
    "/admin",
    paths.DELETE_TOPICS,
    paths.ISR_CHANGE_NOTIFICATION,
    paths.LOG_DIR_EVENT_NOTIFICATION,
)
"""Znodes that brokers create as well when they start (ZkData.PersistentZkPaths); a controller may start before them."""


STATES_PER_READ = 5_000
"""Partition states read before they become columns: as znodes they take twenty times the memory, and decoding them blocks the
event loop for some 20 ms."""
TOPICS_PER_READ = 200
"""Topics read before they become columns, for the same reason: the garbage collector traverses each partition's replicas."""


async def create_parents(store: Store) -> None:
    """Create the watched znodes that are missing; one after another, since some are children of others."""
    for path, node in zip(WATCHED_PARENTS, await store.nodes_of(WATCHED_PARENTS), strict=True):
        if node is None:
            await store.ensure([path])


async def create_features(store: Store) -> None:
    """Create `/feature` where it is missing: enabled, without any feature (KafkaController.enableFeatureVersioning).

    Brokers then report finalized features of epoch 0 instead of none. An existing znode is not changed: it was written for the
    brokers' inter.broker.protocol.version, which the controller does not know.
    """
    (current,) = await store.nodes_of([paths.FEATURE])
    if current is None:
        await store.transact([writes.Create(paths.FEATURE, formats.encode_features(formats.FinalizedFeatures()))])


async def require_no_broker_with_id(session: ZooKeeperSession, own: int) -> None:
    """Raise IdentityError when a broker is registered under the controller's id."""
    node = await session.get(paths.broker(own))
    if node is not None:
        raise startup_checks.is_registered(own, next(iter(reading.decode_brokers({str(own): node}, -1)), None))


async def require_no_replicas_with_id(session: ZooKeeperSession, controller_id: int) -> None:
    """Raise IdentityError if a broker may have replicas under the controller's id. Writes nothing."""
    await _load_partitions(session, Cluster(controller_id, NO_EPOCH), ZnodeVersions())


async def load_cluster(
    session: ZooKeeperSession,
    versions: ZnodeVersions,
    controller_id: int,
    controllership: controller_election.Controllership,
    inter_broker_listener: str,
) -> Cluster:
    """Read brokers, topics, states, deletions and producer ids, and note the znodes' versions in `versions`.

    Raises IdentityError if a broker may have replicas under the controller's id.
    """
    started = time.perf_counter()
    cluster = Cluster(controller_id, controllership.epoch)
    ids = await session.children(paths.BROKER_IDS) or []
    nodes = await session.multi_get([f"{paths.BROKER_IDS}/{name}" for name in ids])
    read = reading.brokers_read(dict(zip(ids, nodes, strict=True)), controller_id, inter_broker_listener)
    observed = zookeeper_changes.BrokersObserved(read.brokers, read.unreachable)
    state_log.log_unreachable(cluster, observed)
    transitions.apply(cluster, observed)
    await _load_partitions(session, cluster, versions)
    cluster.unclean_topics = await reading.read_unclean_topics(session, list(cluster.topics))
    producer_ids = await reading.read_producer_ids(session)
    _apply(cluster, versions, changes.ProducerIdsObserved(producer_ids.block_end), producer_ids.version)
    queued = tuple(name for name in await session.children(paths.DELETE_TOPICS) or [] if name in cluster.topics)
    transitions.apply(cluster, zookeeper_changes.DeletionQueued(queued, Origin.OBSERVED))
    log.info(
        "Loaded cluster state",
        extra={
            "brokers": sorted(cluster.brokers),
            "topics": len(cluster.topics),
            "partitions": len(cluster.columns.used()),
            "milliseconds": round((time.perf_counter() - started) * 1000, 1),
        },
    )
    return cluster


async def _load_partitions(session: ZooKeeperSession, cluster: Cluster, versions: ZnodeVersions) -> None:
    """Read topics and the states of their partitions. Raises IdentityError."""
    names = await session.children(paths.TOPICS) or []
    pauses = pace.Pauses(STATES_PER_READ)
    for start in range(0, len(names), TOPICS_PER_READ):
        for record in await reading.read_topics(session, names[start : start + TOPICS_PER_READ]):
            _apply(
                cluster, versions, observed_topics.build_topic_added(cluster, record, repaired=False), record.version
            )
            await pauses.after(len(record.replicas))
    rows = cluster.columns.used()
    claimed = [rows[:0]]
    for start in range(0, len(rows), STATES_PER_READ):
        states = await reading.read_states(
            session, cluster, rows[start : start + STATES_PER_READ], shares_a_replica=False
        )
        if states is not None:
            # Before they are applied: members of an ISR that are not replicas are not kept in memory.
            claimed.append(claimed_by_states(states, cluster.controller_id))
            transitions.apply(cluster, states)
    partitions = claimed_partitions(cluster, np.concatenate(claimed))
    if partitions:
        raise startup_checks.holds_replicas(cluster.controller_id, partitions)


def _apply(cluster: Cluster, versions: ZnodeVersions, change: changes.Change, version: int) -> None:
    transitions.apply(cluster, change)
    versions.note(change, version)


async def read_cluster_id(session: ZooKeeperSession) -> str:
    """Read the cluster's id; empty if no broker has created it yet."""
    node = await session.get(paths.CLUSTER_ID)
    if node is None:
        return ""
    try:
        return formats.decode_cluster_id(node.data)
    except formats.FormatError as error:
        log.error("Failed to decode the cluster's id", extra={"error": str(error)})
        return ""
