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

from collections.abc import Iterable

from controller_core.cluster.partition_change import raise_epochs
from controller_core.model.changes import TopicDeletion, TopicDeletionObserved
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import AdvanceDeletions, AdvanceMoves, Event, Heal, ResumeTopics, TopicDeletionRead
from controller_core.model.ids import NO_EPOCH


def combined_setting(reported: Iterable[bool]) -> TopicDeletion:
    """Combine what brokers reported: one that reports false is enough.

    >>> combined_setting([True, False]), combined_setting([True]), combined_setting([])
    (<TopicDeletion.DISABLED: 'disabled'>, <TopicDeletion.ENABLED: 'enabled'>, <TopicDeletion.NOT_REPORTED: 'not reported'>)
    """
    answers = set(reported)
    if not answers:
        return TopicDeletion.NOT_REPORTED
    return TopicDeletion.DISABLED if False in answers else TopicDeletion.ENABLED


def decide_topic_deletion_read(cluster: Cluster, event: TopicDeletionRead) -> Decision[None]:
    """Take the setting in, and continue the deletions that waited for it."""
    known = cluster.topic_deletion
    is_reported = event.setting not in {TopicDeletion.UNKNOWN, TopicDeletion.NOT_REPORTED}
    if event.setting is known or (not is_reported and known in {TopicDeletion.ENABLED, TopicDeletion.DISABLED}):
        return decision()  # What brokers reported last remains in force until one reports something else.
    then: list[Event] = [AdvanceDeletions(retry=True)]
    if not is_reported and cluster.deletions:
        names = frozenset(cluster.deletions)
        then += [Heal(names), ResumeTopics(names), AdvanceMoves(names)]
    return decision(TopicDeletionObserved(event.setting), then=then)


def decide_resume_topics(cluster: Cluster, event: ResumeTopics) -> Decision[None]:
    """Send the state of all partitions under higher leader epochs; `Heal` has elected leaders where it could."""
    columns = cluster.columns
    rows = [
        row
        for name in sorted(event.topics)
        if name in cluster.topics and not cluster.is_doomed(name)
        for row in cluster.topics[name].rows.tolist()
        if columns.partition_epoch[row] != NO_EPOCH
    ]
    return decision(raise_epochs(cluster, rows))
