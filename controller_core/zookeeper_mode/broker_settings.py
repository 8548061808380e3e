"""Settings of brokers and topics: `delete.topic.enable` and `unclean.leader.election.enable`.

Topic deletion. ZooKeeper-mode brokers read `delete.topic.enable` from their configuration files. Kafka's controller is a broker and
does the same; this controller queries the brokers. `/admin/delete_topics` may contain names before any broker has responded, so
deletions wait for the setting:

    UNKNOWN       Brokers have not been queried yet. Deletions wait; no leaders are elected for their topics, and no states are sent.
    NOT_REPORTED  No queried broker responded. Deletions still wait, and their topics return to service.
    ENABLED       Deletions start.
    DISABLED      Names are removed from the queue, nothing is deleted, and the topics return to service.

The setting may differ between brokers, for example during a rolling restart with a changed file. One that reports false is
enough for DISABLED, since a deletion cannot be undone. A broker that restarts is queried again.

An earlier controller, or this one before the setting changed, may have sent StopReplica for a topic whose deletion is
withdrawn. Brokers ignore a LeaderAndIsr with a leader epoch that they know, so the topic resumes with higher ones. A replica
that was deleted starts again with an empty log, as with Kafka's controller.

Unclean election. A topic's own `unclean.leader.election.enable` takes precedence over the brokers' default, of which the dynamic
cluster-wide one takes precedence over the one in configuration files. When it becomes true, partitions without a leader are checked at
once; when it becomes false, nothing follows.

Sources: KafkaController.processTopicDeletion, UncleanLeaderElectionEnable and TopicUncleanLeaderElectionEnable,
TopicDeletionManager.init (Kafka 3.9).
"""

from collections.abc import Iterable

from controller_core.model import NO_EPOCH, Cluster, events, settings, zookeeper_changes, zookeeper_events
from controller_core.model.decision import Decision, decision
from controller_core.rules.partition_change import raise_epochs


def combined_setting(reported: Iterable[bool]) -> settings.TopicDeletion:
    """Combine the reports of brokers: a single false is enough.

    >>> combined_setting([True, False]), combined_setting([True]), combined_setting([])
    (<TopicDeletion.DISABLED: 'disabled'>, <TopicDeletion.ENABLED: 'enabled'>, <TopicDeletion.NOT_REPORTED: 'not reported'>)
    """
    values = set(reported)
    if not values:
        return settings.TopicDeletion.NOT_REPORTED
    return settings.TopicDeletion.DISABLED if False in values else settings.TopicDeletion.ENABLED


def decide_topic_deletion_read(cluster: Cluster, event: zookeeper_events.TopicDeletionRead) -> Decision[None]:
    """Record the setting, and continue the deletions that waited for it."""
    known = cluster.topic_deletion
    is_reported = event.setting not in {
        settings.TopicDeletion.UNKNOWN,
        settings.TopicDeletion.NOT_REPORTED,
    }
    if event.setting is known or (
        not is_reported and known in {settings.TopicDeletion.ENABLED, settings.TopicDeletion.DISABLED}
    ):
        return decision()  # The last reported value remains in force until a broker reports another one.
    then: list[events.Event] = [zookeeper_events.AdvanceDeletions(retry=True)]
    if not is_reported and cluster.deletions:
        names = frozenset(cluster.deletions)
        then += [events.RepairPartitions(names), zookeeper_events.ResumeTopics(names), events.AdvanceMoves(names)]
    return decision(zookeeper_changes.TopicDeletionObserved(event.setting), then=then)


def decide_resume_topics(cluster: Cluster, event: zookeeper_events.ResumeTopics) -> Decision[None]:
    """Send the states of all partitions with higher leader epochs; `RepairPartitions` has elected leaders where possible."""
    columns = cluster.columns
    rows = [
        row
        for name in sorted(event.topics)
        if name in cluster.topics and not cluster.is_pending_deletion(name)
        for row in cluster.topics[name].rows.tolist()
        if columns.partition_epoch[row] != NO_EPOCH
    ]
    return decision(raise_epochs(cluster, rows))


def decide_unclean_election_read(cluster: Cluster, event: zookeeper_events.UncleanElectionRead) -> Decision[None]:
    """Record the settings of topics and defaults, and elect leaders where that has become possible."""
    topics = {
        name: allowed
        for name, allowed in event.topics.items()
        if name in cluster.topics and cluster.unclean_topics.get(name) != allowed
    }
    defaults = {
        source: allowed for source, allowed in event.defaults.items() if cluster.unclean_defaults.get(source) != allowed
    }
    if not topics and not defaults:
        return decision()
    then = events.RepairPartitions() if defaults else events.RepairPartitions(frozenset(topics))
    return decision(zookeeper_changes.UncleanElectionObserved(topics, defaults), then=(then,))
