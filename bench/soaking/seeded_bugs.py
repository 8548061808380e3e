"""Bugs to seed into the controller, one at a time: each breaks an invariant, and its tests have to fail.

Each bug replaces a piece of a module's text: a small, plausible mistake. `bench.mutants` seeds them and runs the tests.
"""

from dataclasses import dataclass

CORE = ("tests/controller_core/decisions", "tests/controller_core/rules", "tests/controller_core/zookeeper_mode")
CHANNELS = ("tests/controller_core/shell/brokers",)
KRAFT_MODE = ("tests/controller_core/quorum_mode", "tests/controller_core/rules")
SIMULATED = ("tests/sim/kraft",)
TERM = ("tests/controller_core/shell/test_term_ends.py", "tests/controller_core/shell/zookeeper")


@dataclass(frozen=True, slots=True)
class SeededBug:
    """One bug."""

    invariant: str
    name: str
    """The broken behaviour of the controller."""
    path: str
    before: str
    """Text that the module contains once."""
    after: str
    tests: tuple[str, ...] = CORE
    """Files and folders of the tests that have to catch it."""


_DECISIONS = "controller_core/decisions"
_RULES = "controller_core/rules"
_ZOOKEEPER_MODE = "controller_core/zookeeper_mode"
_QUORUM_MODE = "controller_core/quorum_mode"
_METADATA = "controller_core/metadata"
_KRAFT = "controller_core/shell/kraft"

SEEDED_BUGS = (
    SeededBug(
        "C1",
        "preferred_replica_elected_outside_isr",
        f"{_RULES}/election_columns.py",
        "available = live.take(preferred) & is_in(preferred, slots_of(isr))",
        "available = live.take(preferred)",
    ),
    SeededBug(
        "C1",
        "unclean_election_not_flagged",
        f"{_RULES}/election_columns.py",
        "    elections.unclean[chosen] = True\n",
        "",
    ),
    SeededBug(
        "C2",
        "isr_with_broker_outside_assignment_accepted",
        f"{_DECISIONS}/broker_requests.py",
        "if others := set(change.isr) - set(cluster.columns.replicas_of(row)):",
        "if others := set(change.isr) - set(change.isr):",
    ),
    SeededBug(
        "C3",
        "reassignment_target_with_duplicate_broker_accepted",
        f"{_DECISIONS}/reassignment.py",
        "elif len(set(target)) != len(target):",
        "elif len(set(target)) > len(target):",
    ),
    SeededBug(
        "C4",
        "leader_epoch_not_raised_on_election",
        f"{_RULES}/partition_change.py",
        "        next_leader_epochs(cluster, rows[chosen]),",
        "        cluster.columns.leader_epoch[rows[chosen]],",
    ),
    SeededBug(
        "C4",
        "alter_partition_with_stale_leader_epoch_accepted",
        f"{_DECISIONS}/broker_requests.py",
        "if change.leader_epoch < leader_epoch:",
        "if change.leader_epoch < 0:",
    ),
    SeededBug(
        "C4",
        "alter_partition_with_stale_partition_epoch_accepted",
        f"{_DECISIONS}/broker_requests.py",
        "if change.partition_epoch != partition_epoch:",
        "if change.partition_epoch > partition_epoch:",
    ),
    SeededBug(
        "C5",
        "writes_not_fenced_by_controller_epoch",
        "controller_core/shell/zookeeper/store.py",
        "Check(paths.CONTROLLER_EPOCH, epoch_version)",
        "Check(paths.CONTROLLER_EPOCH, -1)",
        TERM,
    ),
    SeededBug(
        "C7",
        "unclean_leader_elected_without_permission",
        f"{_ZOOKEEPER_MODE}/failover.py",
        "unclean = cluster.unclean_allowed(rows)",
        "unclean = np.ones(len(rows), dtype=np.bool_)",
    ),
    SeededBug(
        "C7",
        "isr_shrunk_while_all_replicas_are_offline",
        f"{_RULES}/election_columns.py",
        "    new_isr[leaderless] = isr[leaderless]\n",
        "    new_isr[leaderless, :1] = isr[leaderless, :1]\n",
    ),
    SeededBug(
        "C7",
        "cancelled_reassignment_removes_all_in_sync_replicas",
        f"{_DECISIONS}/reassignment.py",
        "return not serving or not serving.isdisjoint(target)",
        "return bool(serving)",
    ),
    SeededBug(
        "C8",
        "broker_in_controlled_shutdown_elected_leader",
        "controller_core/model/cluster.py",
        "return self.unfenced() - self.shutting_down",
        "return self.unfenced()",
    ),
    SeededBug(
        "C8",
        "broker_in_controlled_shutdown_not_removed_from_isrs",
        f"{_ZOOKEEPER_MODE}/controlled_shutdown.py",
        "zookeeper_changes.ControlledShutdownStarted(event.broker), moved, following,",
        "zookeeper_changes.ControlledShutdownStarted(event.broker), moved,",
    ),
    SeededBug(
        "C9",
        "old_replicas_removed_when_one_target_replica_is_in_sync",
        f"{_ZOOKEEPER_MODE}/moves.py",
        "set(move.target) <= set(isr)",
        "not set(move.target).isdisjoint(isr)",
    ),
    SeededBug(
        "C9",
        "reassignment_completed_before_old_logs_are_deleted",
        f"{_ZOOKEEPER_MODE}/moves.py",
        "if set(move.waiting).isdisjoint(cluster.unfenced()):",
        "if move.target:",
    ),
    SeededBug(
        "C10",
        "replicas_deleted_before_they_are_stopped",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "for delete in (False, True):",
        "for delete in (True, False):",
    ),
    SeededBug(
        "C10",
        "topic_deleted_before_last_broker_responds",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if not deletion.waiting:",
        "if len(deletion.waiting) < 2:",
    ),
    SeededBug(
        "C10",
        "topic_with_offline_replica_deleted",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if offline := sorted(hosts - cluster.unfenced()):",
        "if offline := sorted(hosts - hosts):",
    ),
    SeededBug(
        "C10",
        "topic_pending_deletion_returned_to_service",
        "controller_core/model/cluster.py",
        "return rows[~np.isin(self.columns.topic[rows], pending)] if pending else rows",
        "return rows if pending else rows",
    ),
    SeededBug(
        "C10",
        "reassignment_started_on_topic_pending_deletion",
        f"{_ZOOKEEPER_MODE}/partition_transitions.py",
        "    if cluster.is_pending_deletion(change.name):\n        return",
        "    if change.name not in cluster.topics:\n        return",
    ),
    SeededBug(
        "C9",
        "leader_epochs_missing_in_stop_replica_answers",
        "controller_core/shell/brokers/answers.py",
        "return zookeeper_events.StopReplicaAnswered(broker, done, failed, asked)",
        "return zookeeper_events.StopReplicaAnswered(broker, done, failed)",
    ),
    SeededBug(
        "C10",
        "deletion_started_before_brokers_report_that_it_is_enabled",
        f"{_ZOOKEEPER_MODE}/deletion.py",
        "if cluster.topic_deletion is not settings.TopicDeletion.ENABLED:",
        "if cluster.topic_deletion is settings.TopicDeletion.DISABLED:",
    ),
    SeededBug(
        "C11",
        "first_replicas_not_distributed_round_robin",
        f"{_RULES}/placement.py",
        "leaders = (np.arange(broker_count) + start_index % broker_count) % broker_count",
        "leaders = np.minimum(np.arange(broker_count) + start_index % broker_count, broker_count - 1)",
    ),
    SeededBug(
        "C12",
        "leader_and_isr_not_sent_to_registered_broker",
        f"{_ZOOKEEPER_MODE}/registered_brokers.py",
        "            *_leader_and_isr_for_hosted(cluster, added),\n",
        "",
    ),
    SeededBug(
        "C12",
        "restarted_broker_taken_for_its_earlier_incarnation",
        f"{_ZOOKEEPER_MODE}/registered_brokers.py",
        "if broker_id not in read or read[broker_id].epoch != known.epoch",
        "if broker_id not in read or read[broker_id].id != known.id",
    ),
    SeededBug(
        "C12",
        "observed_leader_change_not_announced",
        f"{_ZOOKEEPER_MODE}/propagation.py",
        "new_leader_epoch = in_service & (change.leader_epoch != leader_epoch)",
        "new_leader_epoch = in_service & (change.leader_epoch < leader_epoch)",
    ),
    SeededBug(
        "C13",
        "request_for_earlier_incarnation_sent_to_restarted_broker",
        "controller_core/shell/brokers/channels.py",
        "if now is None or now.epoch != broker.epoch:",
        "if now is None or now.id != broker.id:",
        CHANNELS,
    ),
    SeededBug(
        "C14",
        "leader_imbalance_percentage_ignored",
        f"{_DECISIONS}/leader_elections.py",
        "rows[elsewhere & over[preferred] & available]",
        "rows[elsewhere & available]",
    ),
    SeededBug(
        "C14",
        "rebalance_started_at_exactly_the_imbalance_percentage",
        f"{_DECISIONS}/leader_elections.py",
        "not_led * PERCENT > preferring * percentage",
        "not_led * PERCENT >= preferring * percentage",
    ),
    SeededBug(
        "C17",
        "broker_fenced_before_its_last_step",
        f"{_QUORUM_MODE}/heartbeats.py",
        "decision(left.change, fenced if left.is_last else None)",
        "decision(left.change, fenced)",
        KRAFT_MODE,
    ),
    SeededBug(
        "C17",
        "broker_fenced_without_elections",
        f"{_QUORUM_MODE}/heartbeats.py",
        "decision(left.change, fenced if left.is_last else None)",
        "decision(fenced)",
        KRAFT_MODE,
    ),
    SeededBug(
        "C20",
        "replica_eligible_after_unclean_shutdown",
        f"{_QUORUM_MODE}/registration.py",
        "is_lost=cluster.rules.elr and not is_clean",
        "is_lost=False",
        KRAFT_MODE,
    ),
    SeededBug(
        "C20",
        "replicas_eligible_with_a_whole_isr",
        f"{_RULES}/eligible_replicas.py",
        "    kept &= ((isr != NO_BROKER).sum(axis=1) < min_isr)[:, None]\n",
        "",
        KRAFT_MODE,
    ),
    SeededBug(
        "C20",
        "eligible_replicas_kept_when_min_insync_replicas_changes",
        f"{_QUORUM_MODE}/decide.py",
        "if settings.MIN_ISR in change.values",
        "if settings.MIN_ISR not in change.values",
        KRAFT_MODE,
    ),
    SeededBug(
        "C16",
        "broker_epoch_not_the_offset_of_its_record",
        f"{_QUORUM_MODE}/registration.py",
        "            return Decision((left.change,), then=(event,))\n",
        "            return Decision((left.change, quorum_changes.BrokerRegistered(Broker(event.broker, event.log_end, event.endpoints, fenced=True))))\n",
        KRAFT_MODE,
    ),
    SeededBug(
        "C13",
        "session_of_an_earlier_incarnation_fences_its_successor",
        f"{_QUORUM_MODE}/heartbeats.py",
        "    if broker is None or broker.epoch != event.broker_epoch:\n        return decision()\n    fenced = _fence(cluster, broker)",
        "    if broker is None:\n        return decision()\n    fenced = _fence(cluster, broker)",
        KRAFT_MODE,
    ),
    SeededBug(
        "C8",
        "broker_shuts_down_before_the_others_know_its_successors",
        f"{_QUORUM_MODE}/heartbeats.py",
        ".metadata_offset >= needed for other in others)",
        ".metadata_offset >= 0 for other in others)",
        KRAFT_MODE,
    ),
    SeededBug(
        "C9",
        "move_ends_before_its_added_replicas_are_in_sync",
        "controller_core/model/move.py",
        "if (self.removing and not (staying and target)) or not set(self.adding) <= set(staying):",
        "if self.removing and not (staying and target):",
        KRAFT_MODE,
    ),
    SeededBug(
        "C7",
        "last_known_leader_not_flagged_as_unclean",
        f"{_RULES}/election_columns.py",
        "elections.unclean[stays], elections.unclean[returns] = False, True",
        "elections.unclean[stays], elections.unclean[returns] = False, False",
        KRAFT_MODE,
    ),
    SeededBug(
        "C13",
        "process_with_other_directories_registered_beside_its_predecessor",
        f"{_QUORUM_MODE}/registration.py",
        "set(known.directories) <= set(event.directories)",
        "set(known.directories) - set(event.directories) != known.directories",
        KRAFT_MODE,
    ),
    SeededBug(
        "C8",
        "suspected_broker_elected_first",
        f"{_RULES}/election_columns.py",
        "trusted = [fit & ~flag for fit, flag in",
        "trusted = [fit & flag for fit, flag in",
        KRAFT_MODE,
    ),
    SeededBug(
        "C17",
        "broker_unfenced_before_it_has_read_the_metadata",
        f"{_QUORUM_MODE}/heartbeats.py",
        "if state is BrokerState.IN_SERVICE or _is_caught_up(broker, event) else state",
        "if state is BrokerState.IN_SERVICE or not event.wants_fence else state",
        SIMULATED,
    ),
    SeededBug(
        "C8",
        "controlled_shutdown_moves_no_leaders",
        f"{_QUORUM_MODE}/heartbeats.py",
        "made = decision(begun if left.is_last and not broker.in_controlled_shutdown else None, left.change)",
        "made = decision(begun if left.is_last and not broker.in_controlled_shutdown else None)",
        SIMULATED,
    ),
    SeededBug(
        "C9",
        "move_back_drops_the_only_replica_in_sync",
        f"{_QUORUM_MODE}/moves.py",
        "ends = move.returns_to_origin and keeps_service(cluster, row, move.target)",
        "ends = move.returns_to_origin",
        KRAFT_MODE,
    ),
    SeededBug(
        "C18",
        "request_answered_before_its_commit",
        f"{_KRAFT}/controller.py",
        "outcome = term.process(*waiting)\n            await term.settled()",
        "outcome = term.process(*waiting)",
        ("tests/controller_core/shell/kraft/test_active_term.py",),
    ),
    SeededBug(
        "C15",
        "uncommitted_changes_kept_after_the_term",
        f"{_KRAFT}/follower.py",
        "self._role.deposed()\n            yield from self._rebuild()",
        "self._role.deposed()",
        SIMULATED,
    ),
    SeededBug(
        "C19",
        "producer_ids_given_again_after_a_fail_over",
        f"{_METADATA}/replayed_records.py",
        "changes.ProducerIdsObserved(record.next_producer_id - 1)",
        "changes.ProducerIdsObserved(record.next_producer_id - 1001)",
        SIMULATED,
    ),
    SeededBug(
        "C21",
        "open_transaction_not_aborted",
        f"{_METADATA}/activation.py",
        "abort = () if log.transaction is None else (AbortTransactionRecord(ABORT_REASON),)",
        "abort = ()",
        SIMULATED,
    ),
    SeededBug(
        "C21",
        "aborted_transaction_applied",
        "kafka_metadata/metadata_log.py",
        "image = log.transaction.image if isinstance(record, EndTransactionRecord) else log.image",
        "image = log.transaction.image",
        SIMULATED,
    ),
    SeededBug(
        "C15",
        "snapshot_without_producer_ids",
        "kafka_metadata/snapshot.py",
        "if image.producer_ids is not None and image.producer_ids.next_producer_id >= 0:",
        "if image.producer_ids is not None and image.producer_ids.next_producer_id < 0:",
        SIMULATED,
    ),
    SeededBug(
        "C9",
        "move_forgotten_at_a_fail_over",
        f"{_METADATA}/replayed_records.py",
        "if record.adding_replicas or record.removing_replicas",
        "if record.adding_replicas and record.removing_replicas",
        SIMULATED,
    ),
    SeededBug(
        "C17",
        "restarted_broker_registered_while_it_leads",
        f"{_QUORUM_MODE}/registration.py",
        "        if left.change is not None:\n",
        "        if left.change is not None and is_clean:\n",
        SIMULATED,
    ),
    SeededBug(
        "C15",
        "written_records_not_applied",
        f"{_KRAFT}/active_term.py",
        "        replayed_records.replay_records(self.cluster, decision.records, offset)\n",
        "        replayed_records.replay_records(self.cluster, (), offset)\n",
        SIMULATED,
    ),
)
