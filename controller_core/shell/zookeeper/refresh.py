"""Re-reading after a rejected write: the state in ZooKeeper replaces the known one, whichever process wrote it."""

from dataclasses import dataclass, field

import numpy as np

from controller_core.model import Cluster, Origin, zookeeper_events
from controller_core.model.changes import Change, ProducerIdsObserved, TopicRemoved
from controller_core.model.events import PRODUCER_IDS
from controller_core.shell.store import Outcome
from controller_core.shell.zookeeper import reading
from controller_core.shell.zookeeper.unreadable_topics import UnreadableTopics
from controller_core.zookeeper_mode.observed_topics import build_topic_observed
from controller_core.zookeeper_mode.znode_versions import ZnodeVersions
from kafka_zookeeper.session import ZooKeeperSession


@dataclass(slots=True)
class Refreshed:
    """State in ZooKeeper that differs from the known one."""

    changes: list[Change] = field(default_factory=list)
    """To be applied: changes of known topics and partitions."""
    unknown_topics: tuple[zookeeper_events.StoredTopic, ...] = ()
    """To be decided on: topics that are not in the known state."""
    versions: dict[str, int] = field(default_factory=dict)
    """Versions of the znodes that the changes follow from (`znode_versions.Versions`)."""


async def refresh(
    session: ZooKeeperSession,
    cluster: Cluster,
    outcome: Outcome,
    versions: ZnodeVersions,
    unreadable: UnreadableTopics,
) -> Refreshed:
    """Read the states, topics and producer ids that an outcome reports as stale.

    A topic whose znode cannot be decoded is not treated as deleted: it keeps its known state, and changes that write its znode fail.
    """
    found = Refreshed()
    if outcome.stale_rows:
        rows = np.array(sorted(set(outcome.stale_rows)), dtype=np.int32)
        states = await reading.read_states(session, cluster, rows)
        if states is not None and (states.partition_epoch != cluster.columns.partition_epoch[states.rows]).any():
            found.changes.append(states)
    if outcome.stale_topics:
        names = sorted(set(outcome.stale_topics))
        topics = await reading.find_topics(session, names)
        unreadable.note(names, topics)
        records = {record.name: record for record in topics.records}
        unknown = [record for name, record in records.items() if name not in cluster.topics]
        found.unknown_topics = await reading.with_configs(session, unknown)
        known = [name for name in names if name in cluster.topics and name not in topics.unreadable]
        found.changes += [change for name in known if (change := _topic(versions, name, records.get(name))) is not None]
        found.versions |= {name: record.version for name, record in records.items()}
    if outcome.stale_producer_ids:
        producer_ids = await reading.read_producer_ids(session)
        if producer_ids != reading.ProducerIds(cluster.last_producer_id, versions.known(PRODUCER_IDS)):
            found.changes.append(ProducerIdsObserved(producer_ids.block_end))
            found.versions[PRODUCER_IDS] = producer_ids.version
    return found


def _topic(versions: ZnodeVersions, name: str, record: zookeeper_events.StoredTopic | None) -> Change | None:
    if record is None:
        return TopicRemoved(name, Origin.OBSERVED)
    if record.version == versions.known(name):
        return None
    return build_topic_observed(record)
