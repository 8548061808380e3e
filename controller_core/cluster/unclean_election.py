"""Whether a leader from outside the ISR is allowed may change while the controller acts: then it counts at once.

A topic's own `unclean.leader.election.enable` counts; where it has none the brokers' default does, the dynamic one of the whole
cluster before the one in their own files. Where it is allowed from now on, partitions without a leader are looked at
(KafkaController: UncleanLeaderElectionEnable, TopicUncleanLeaderElectionEnable). Where it is no more, nothing follows.

Leaves out who tells of it (the shell).
"""

from controller_core.model.changes import UncleanElectionObserved
from controller_core.model.cluster import Cluster
from controller_core.model.decision import Decision, decision
from controller_core.model.events import Heal, UncleanElectionRead


def decide_unclean_election_read(cluster: Cluster, event: UncleanElectionRead) -> Decision[None]:
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
    then = Heal() if defaults else Heal(frozenset(topics))
    return decision(UncleanElectionObserved(topics, defaults), then=(then,))
