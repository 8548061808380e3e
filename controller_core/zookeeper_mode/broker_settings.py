"""`delete.topic.enable`: deletions start only where brokers report that topics may be deleted.

ZooKeeper-mode brokers read the setting from their own files, and a Kafka controller is one of them; this controller asks the
brokers. Names under `/admin/delete_topics` may be there before any broker has answered, so deletions wait for the setting:

    UNKNOWN       brokers have not been asked yet: deletions wait, and their topics are neither elected nor announced.
    NOT_REPORTED  brokers were asked and none answered: deletions still wait, and their topics return to service.
    ENABLED       deletions start.
    DISABLED      names are taken out of the queue, nothing is deleted, and the topics return to service.

The setting may differ between brokers, for example during a rolling restart with another file. One that reports false is
enough for DISABLED, since a deletion cannot be undone. A broker that restarts is asked again.

An earlier controller, or this one before the setting changed, may have sent StopReplica for a topic whose deletion is
withdrawn. Brokers ignore a LeaderAndIsr under a leader epoch that they know, so the topic resumes under higher ones. A replica
that was deleted starts again with an empty log, as with Kafka's controller.

Sources: KafkaController.processTopicDeletion, TopicDeletionManager.init (Kafka 3.9).
"""

# MERGED controller_core.zookeeper_mode.broker_settings: """Whether a leader from outside the ISR is allowed may change while the controller acts: then it counts at once.
# MERGED controller_core.zookeeper_mode.broker_settings:
# MERGED controller_core.zookeeper_mode.broker_settings: A topic's own `unclean.leader.election.enable` counts; where it has none the brokers' default does, the dynamic one of the whole
# MERGED controller_core.zookeeper_mode.broker_settings: cluster before the one in their own files. Where it is allowed from now on, partitions without a leader are looked at
# MERGED controller_core.zookeeper_mode.broker_settings: (KafkaController: UncleanLeaderElectionEnable, TopicUncleanLeaderElectionEnable). Where it is no more, nothing follows.
# MERGED controller_core.zookeeper_mode.broker_settings:
# MERGED controller_core.zookeeper_mode.broker_settings: Leaves out who tells of it (the shell).
# MERGED controller_core.zookeeper_mode.broker_settings: """
from collections.abc import Iterable

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.ids import NO_EPOCH
from controller_core.rules.partition_change import raise_epochs


def combined_setting(reported: Iterable[bool]) -> changes.TopicDeletion:
    """Combine what brokers reported: one that reports false is enough.

    >>> combined_setting([True, False]), combined_setting([True]), combined_setting([])
    (<TopicDeletion.DISABLED: 'disabled'>, <TopicDeletion.ENABLED: 'enabled'>, <TopicDeletion.NOT_REPORTED: 'not reported'>)
    """
    answers = set(reported)
    if not answers:
        return changes.TopicDeletion.NOT_REPORTED
    return changes.TopicDeletion.DISABLED if False in answers else changes.TopicDeletion.ENABLED


def decide_topic_deletion_read(cluster: Cluster, event: events.TopicDeletionRead) -> Decision[None]:
    """Take the setting in, and continue the deletions that waited for it."""
    known = cluster.topic_deletion
    is_reported = event.setting not in {changes.TopicDeletion.UNKNOWN, changes.TopicDeletion.NOT_REPORTED}
    if event.setting is known or (
        not is_reported and known in {changes.TopicDeletion.ENABLED, changes.TopicDeletion.DISABLED}
    ):
        return decision()  # What brokers reported last remains in force until one reports something else.
    then: list[events.Event] = [events.AdvanceDeletions(retry=True)]
    if not is_reported and cluster.deletions:
        names = frozenset(cluster.deletions)
        then += [events.RepairPartitions(names), events.ResumeTopics(names), events.AdvanceMoves(names)]
    return decision(changes.TopicDeletionObserved(event.setting), then=then)


def decide_resume_topics(cluster: Cluster, event: events.ResumeTopics) -> Decision[None]:
    """Send the state of all partitions under higher leader epochs; `RepairPartitions` has elected leaders where it could."""
    columns = cluster.columns
    rows = [
        row
        for name in sorted(event.topics)
        if name in cluster.topics and not cluster.is_pending_deletion(name)
        for row in cluster.topics[name].rows.tolist()
        if columns.partition_epoch[row] != NO_EPOCH
    ]
    return decision(raise_epochs(cluster, rows))


def decide_unclean_election_read(cluster: Cluster, event: events.UncleanElectionRead) -> Decision[None]:
    """Take in what is set for topics and as a default, and elect where that is possible now."""
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
    return decision(changes.UncleanElectionObserved(topics, defaults), then=(then,))
