"""Notification znodes of brokers: written ISRs and failed log directories.

Brokers with an inter.broker.protocol.version below 2.7 write the ISR themselves and leave a notification. The written state is applied
and sent to all brokers, and moves that waited for it continue (KafkaController.processIsrChangeNotification). A notification of a failed
log directory does not list its partitions: the broker gets all its partitions again, and its response reports those that it has lost
(processLogDirEventNotification).

A notification is removed by the decision that processes it. If the controller fails before the removal, its successor reads all states
and sends them to all brokers anyway.
"""

from controller_core.model import changes, events
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.zookeeper_mode.registered_brokers import leader_and_isr_for_hosted


def decide_isr_changes_read(cluster: Cluster, event: events.IsrChangesRead) -> Decision[None]:
    """Apply the states that brokers wrote, and advance the moves that may have waited for them."""
    rows = [] if event.states is None else event.states.rows.tolist()
    moving = frozenset(cluster.topic_at(row).name for row in rows if row in cluster.moves)
    then = (events.AdvanceMoves(moving),) if moving else ()
    return decision(event.states, changes.NotificationsProcessed(event.notifications), then=then)


def decide_log_dirs_failed(cluster: Cluster, event: events.LogDirsFailed) -> Decision[None]:
    """Send brokers all partitions that they lead or follow, with the epochs that they know; they report lost replicas."""
    live = tuple(sorted(set(event.brokers).intersection(cluster.unfenced())))
    return decision(changes.NotificationsProcessed(event.notifications), sends=leader_and_isr_for_hosted(cluster, live))
