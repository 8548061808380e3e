"""What brokers tell the controller by znodes of their own: ISRs that they wrote, a log directory that failed.

Brokers of an inter.broker.protocol.version below 2.7 write the ISR themselves and leave a notice. What is written then counts
like what a refused write finds: it is applied, everybody is told, and a move that waited for it goes on
(KafkaController.processIsrChangeNotification). A failed log directory is told without the partitions that were in it: the
broker is told all that it holds once more, and its answer says which of that it has lost (processLogDirEventNotification).

A notice is removed with the decision that heeds it. Should the controller die between the two, whoever comes next reads all
states and tells all brokers anyway. Leaves out which notices there are, and those that cannot be read (the shell).
"""

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.zookeeper_mode.registered_brokers import leader_and_isr_for_hosted


def decide_isr_changes_read(cluster: Cluster, event: events.IsrChangesRead) -> Decision[None]:
    """Take in the states that brokers wrote by themselves, and look at the moves that may have waited for them."""
    rows = [] if event.states is None else event.states.rows.tolist()
    moving = frozenset(cluster.topic_at(row).name for row in rows if row in cluster.moves)
    then = (events.AdvanceMoves(moving),) if moving else ()
    return decision(event.states, changes.NotificationsProcessed(event.notifications), then=then)


def decide_log_dirs_failed(cluster: Cluster, event: events.LogDirsFailed) -> Decision[None]:
    """Tell brokers all that they lead or follow, under the epochs that they know: a replica that is lost is answered so."""
    known = tuple(sorted(set(event.brokers).intersection(cluster.unfenced())))
    return decision(
        changes.NotificationsProcessed(event.notifications), sends=leader_and_isr_for_hosted(cluster, known)
    )
