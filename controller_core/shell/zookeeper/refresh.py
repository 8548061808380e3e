"""Reading again what a write was refused for: what is written counts, whoever wrote it.

Leaves out deciding anew.
"""

from controller_core.model.changes import Change, Origin, ProducerIdsObserved, TopicObserved, TopicRemoved
from controller_core.model.cluster import Cluster
from controller_core.model.columns import IntArray
from controller_core.model.events import TopicRecord
from controller_core.shell.zookeeper.reading import read_producer_ids, read_states, read_topics
from controller_core.shell.zookeeper.store import Outcome
from kafka_zookeeper.session import ZooKeeperSession


async def refresh(
    session: ZooKeeperSession, cluster: Cluster, rows: IntArray, outcome: Outcome
) -> tuple[list[Change], tuple[TopicRecord, ...]]:
    """Read states, topics and producer ids that may be other than thought.

    Returns what was found of what is known, to be applied, and the topics that nobody knew, to be decided on.
    """
    changes: list[Change] = []
    strangers: list[TopicRecord] = []
    if len(rows):
        states = await read_states(session, cluster, rows)
        if states is not None:
            changes.append(states)
    if outcome.stale_topics:
        names = sorted(set(outcome.stale_topics))
        found = {record.name: record for record in await read_topics(session, names)}
        strangers = [record for name, record in found.items() if name not in cluster.topics]
        changes += [_topic(name, found.get(name)) for name in names if name in cluster.topics]
    if outcome.unknown:
        producer_ids = await read_producer_ids(session)
        changes.append(ProducerIdsObserved(producer_ids.block_end, producer_ids.version))
    return changes, tuple(strangers)


def _topic(name: str, record: TopicRecord | None) -> Change:
    if record is None:
        return TopicRemoved(name, Origin.OBSERVED)
    return TopicObserved(record.name, record.replicas, record.adding, record.removing, record.version)
