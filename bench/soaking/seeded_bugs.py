"""Bugs to seed into the controller, one at a time: each breaks an invariant that its tests have to see broken.

Each is a piece of a module's text and what stands there instead: small, plausible, as a tired person would write it. Leaves out
how they are seeded and who catches them (`bench.mutants`).
"""

from dataclasses import dataclass

CORE = ("tests/controller_core/decisions", "tests/controller_core/rules", "tests/controller_core/zookeeper_mode")
CHANNELS = ("tests/controller_core/shell/brokers",)
TERM = ("tests/controller_core/shell/test_term_ends.py", "tests/controller_core/shell/zookeeper")


@dataclass(frozen=True, slots=True)
class SeededBug:
    """One bug."""

    invariant: str
    name: str
    """What the controller does wrong with it."""
    path: str
    before: str
    """Stands in the module once."""
    after: str
    tests: tuple[str, ...] = CORE
    """Who has to catch it: files and folders of tests."""


_DECISIONS = "controller_core/decisions"
_RULES = "controller_core/rules"
_ZOOKEEPER_MODE = "controller_core/zookeeper_mode"

SEEDED_BUGS = (
    SeededBug(
        "C1",
        "a preferred replica leads from outside the ISR",
        f"{_RULES}/election_columns.py",
        "available = live.take(preferred) & is_in(preferred, slots_of(isr))",
        "available = live.take(preferred)",
    ),
    SeededBug(
        "C1",
        "an unclean leader is not flagged",
        f"{_RULES}/election_columns.py",
        "    elections.unclean[chosen] = True\n",
        "",
    ),
    SeededBug(
        "C2",
        "a leader takes a stranger into its ISR",
        f"{_DECISIONS}/broker_requests.py",
        "if others := set(change.isr) - set(cluster.columns.replicas_of(row)):",
        "if others := set(change.isr) - set(change.isr):",
    ),
    SeededBug(
        "C3",
        "a move's target may name a broker twice",
        f"{_DECISIONS}/reassignment.py",
        "elif len(set(target)) != len(target):",
        "elif len(set(target)) > len(target):",
    ),
    SeededBug(
        "C4",
        "a new leader comes under the old leader epoch",
        f"{_RULES}/partition_change.py",
        "        next_leader_epochs(cluster, rows[chosen]),",
        "        cluster.columns.leader_epoch[rows[chosen]],",
    ),
    SeededBug(
        "C4",
        "an ISR is taken under a leader epoch of the past",
        f"{_DECISIONS}/broker_requests.py",
        "if change.leader_epoch < leader_epoch:",
        "if change.leader_epoch < 0:",
    ),
    SeededBug(
        "C4",
        "an ISR is taken over a partition epoch of the past",
        f"{_DECISIONS}/broker_requests.py",
        "if change.partition_epoch != partition_epoch:",
        "if change.partition_epoch > partition_epoch:",
    ),
    SeededBug(
        "C5",
        "writes are not fenced by the controller epoch",
        "controller_core/shell/zookeeper/store.py",
        "Check(paths.CONTROLLER_EPOCH, epoch_version)",
        "Check(paths.CONTROLLER_EPOCH, -1)",
        TERM,
    ),
    SeededBug(
        "C7",
        "an unclean leader is elected where nobody allows it",
        f"{_DECISIONS}/failover.py",
        "unclean = cluster.unclean_allowed(rows)",
        "unclean = np.ones(len(rows), dtype=np.bool_)",
    ),
    SeededBug(
        "C7",
        "who may lead again is forgotten while all are away",
        f"{_RULES}/election_columns.py",
        "    new_isr[leaderless] = isr[leaderless]\n",
        "    new_isr[leaderless, :1] = isr[leaderless, :1]\n",
    ),
    SeededBug(
        "C7",
        "a cancel drops all that is in sync",
        f"{_DECISIONS}/reassignment.py",
        "if isr and set(isr).isdisjoint(target):",
        "if not isr:",
    ),
    SeededBug(
        "C8",
        "a broker on its way out is given leaders",
        "controller_core/model/cluster.py",
        "return self.unfenced() - self.shutting_down",
        "return self.unfenced()",
    ),
    SeededBug(
        "C8",
        "a broker on its way out stays in ISRs",
        f"{_DECISIONS}/broker_requests.py",
        "decision(changes.ControlledShutdownStarted(event.broker), moved, following,",
        "decision(changes.ControlledShutdownStarted(event.broker), moved,",
    ),
    SeededBug(
        "C9",
        "old replicas go when one target replica is in sync",
        f"{_DECISIONS}/reassignment.py",
        "set(move.target) <= set(isr)",
        "not set(move.target).isdisjoint(isr)",
    ),
    SeededBug(
        "C9",
        "a move ends before the old replicas' logs are gone",
        f"{_DECISIONS}/reassignment.py",
        "if set(move.waiting).isdisjoint(cluster.unfenced()):",
        "if move.target:",
    ),
    SeededBug(
        "C10",
        "replicas delete before they are told to stop",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "for delete in (False, True):",
        "for delete in (True, False):",
    ),
    SeededBug(
        "C10",
        "a topic goes before the last broker answered",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if not deletion.waiting:",
        "if len(deletion.waiting) < 2:",
    ),
    SeededBug(
        "C10",
        "a topic with a dead replica is deleted",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if offline := sorted(hosts - cluster.unfenced()):",
        "if offline := sorted(hosts - hosts):",
    ),
    SeededBug(
        "C10",
        "a topic under deletion is brought back to life",
        "controller_core/model/cluster.py",
        "return rows[~np.isin(self.columns.topic[rows], pending)] if pending else rows",
        "return rows if pending else rows",
    ),
    SeededBug(
        "C10",
        "what is written of a topic under deletion begins a move",
        f"{_DECISIONS}/partition_transitions.py",
        "    if cluster.is_pending_deletion(change.name):\n        return",
        "    if change.name not in cluster.topics:\n        return",
    ),
    SeededBug(
        "C9",
        "answers to StopReplica do not carry the leader epochs of their requests",
        "controller_core/shell/brokers/answers.py",
        "return events.StopReplicaAnswered(broker, done, failed, asked)",
        "return events.StopReplicaAnswered(broker, done, failed)",
    ),
    SeededBug(
        "C10",
        "a deletion starts before brokers report that topics may be deleted",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if cluster.topic_deletion is not changes.TopicDeletion.ENABLED:",
        "if cluster.topic_deletion is changes.TopicDeletion.DISABLED:",
    ),
    SeededBug(
        "C11",
        "the first replicas do not go round",
        f"{_RULES}/placement.py",
        "leaders = (np.arange(broker_count) + start_index % broker_count) % broker_count",
        "leaders = np.minimum(np.arange(broker_count) + start_index % broker_count, broker_count - 1)",
    ),
    SeededBug(
        "C12",
        "a broker that comes is not told what it leads",
        f"{_ZOOKEEPER_MODE}/registered_brokers.py",
        "            *_leader_and_isr_for_hosted(cluster, added),\n",
        "",
    ),
    SeededBug(
        "C12",
        "a bounced broker counts as the one before",
        f"{_ZOOKEEPER_MODE}/registered_brokers.py",
        "if broker_id not in read or read[broker_id].epoch != known.epoch",
        "if broker_id not in read or read[broker_id].id != known.id",
    ),
    SeededBug(
        "C12",
        "what was written unheard is told to nobody",
        f"{_ZOOKEEPER_MODE}/propagation.py",
        "new_leader_epoch = in_service & (change.leader_epoch != leader_epoch)",
        "new_leader_epoch = in_service & (change.leader_epoch < leader_epoch)",
    ),
    SeededBug(
        "C13",
        "what was meant for a broker's former life reaches the next one",
        "controller_core/shell/brokers/channels.py",
        "if now is None or now.epoch != broker.epoch:",
        "if now is None or now.id != broker.id:",
        CHANNELS,
    ),
    SeededBug(
        "C14",
        "leaders go back whatever the percentage is",
        f"{_DECISIONS}/leader_elections.py",
        "rows[elsewhere & over[preferred] & available]",
        "rows[elsewhere & available]",
    ),
    SeededBug(
        "C14",
        "as much as the percentage is a reason",
        f"{_DECISIONS}/leader_elections.py",
        "not_led * PERCENT > preferring * percentage",
        "not_led * PERCENT >= preferring * percentage",
    ),
)
