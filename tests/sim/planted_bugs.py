"""Protocol bugs that are planted one at a time: the checks of the simulator must find each, or they would not find a real one."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from controller_core.quorum import elections, following, leader, reconfigure, roles, start, transitions
from controller_core.quorum.batches import Position
from controller_core.quorum.connections import Connections, InFlight
from controller_core.quorum.log_view import LogView, Validity
from controller_core.quorum.messages import VoteRequest
from controller_core.quorum.node import Node, StoredElection
from controller_core.quorum.progress import Progress, Replicas
from controller_core.quorum.ready import Draft
from controller_core.quorum.rules import Settings
from controller_core.quorum.states import Candidate, Leader, Prospective, State, Unattached, Votes
from controller_core.quorum.voter_history import VoterHistory
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode
from tests.sim.disk import Damaged, Disk

Plant = Callable[[pytest.MonkeyPatch], None]


def vote_twice(patch: pytest.MonkeyPatch) -> None:
    """A vote in an epoch does not bind."""

    def may_grant(node: Node, candidate: ReplicaKey, *, up_to_date: bool, pre_vote: bool) -> bool:
        return up_to_date and (pre_vote or isinstance(node.state, Unattached | Prospective)) and candidate != node.key

    def vote(draft: Draft, candidate: ReplicaKey) -> None:
        assert isinstance(draft.state, Unattached | Prospective)
        draft.set_state(replace(draft.state, voted=candidate))
        draft.store_election()

    def answers(draft: Draft, body: VoteRequest) -> tuple[ErrorCode, bool]:
        if body.epoch > draft.node.epoch:
            roles.become_unattached(draft, body.epoch)
        granted = body.epoch == draft.node.epoch and may_grant(
            draft.node, body.candidate, up_to_date=body.last >= draft.node.log.end, pre_vote=body.pre_vote
        )
        if granted and not body.pre_vote:
            vote(draft, body.candidate)
        return ErrorCode.NONE, granted

    patch.setattr(elections, "_vote", answers)


def vote_for_shorter_logs(patch: pytest.MonkeyPatch) -> None:
    """The candidate's log is not compared."""
    plain = elections.may_grant
    patch.setattr(
        elections,
        "may_grant",
        lambda node, candidate, *, up_to_date, pre_vote: plain(
            node, candidate, up_to_date=up_to_date or True, pre_vote=pre_vote
        ),
    )


def forget_votes(patch: pytest.MonkeyPatch) -> None:
    """A crash loses the vote in quorum-state."""
    plain = Disk.crash

    def crash(disk: Disk, random: object) -> None:
        plain(disk, random)
        disk.election = disk.election and replace(disk.election, voted=None)

    patch.setattr(Disk, "crash", crash)


def store_no_election(patch: pytest.MonkeyPatch) -> None:
    """Epoch and vote stay in memory."""
    patch.setattr(Draft, "store_election", lambda _draft: None)


def count_own_end_before_its_flush(patch: pytest.MonkeyPatch) -> None:
    """The leader counts what it has only written, as Kafka does."""

    def append(draft: Draft, batch: object) -> None:
        plain(draft, batch)
        state = leader.leading(draft)
        own = replace(
            state.replicas.find(draft.node.key) or Progress(draft.node.key), end_offset=draft.node.log.end_offset
        )
        draft.set_state(replace(state, replicas=state.replicas.update(draft.node.key, own)))
        leader.update_high_watermark(draft)

    plain = leader.append
    patch.setattr(leader, "append", append)


def commit_by_a_minority(patch: pytest.MonkeyPatch) -> None:
    """One replica is enough for the high watermark."""
    patch.setattr(Replicas, "majority_end", lambda replicas: replicas.by_descending_end()[0].end_offset)


def fetch_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """A follower asks for the next records before the last ones are on disk."""
    patch.setattr(following, "may_fetch", lambda node: node.installing is None)


def ask_for_votes_before_the_flush(patch: pytest.MonkeyPatch) -> None:
    """A candidate names a log that a crash would shorten, and votes for it are repeated afterwards."""
    patch.setattr(elections, "may_ask", lambda _node: True)


def lead_again_in_an_epoch(patch: pytest.MonkeyPatch) -> None:
    """A leader that starts again goes on as a candidate in its epoch, where it may have lost records."""
    plain = start._first_state

    def first_state(draft: Draft, found: StoredElection) -> State:
        if found.leader_id == draft.node.id and draft.node.is_voter:
            votes = Votes.start(draft.node.voters.keys, draft.node.key)
            return Candidate(found.epoch, roles.election_due_ms(draft), replace(votes, granted=votes.voters))
        return plain(draft, found)

    patch.setattr(start, "_first_state", first_state)


def truncate_committed_records(patch: pytest.MonkeyPatch) -> None:
    """A diverging log is cut three records too early, and the high watermark is ignored."""
    plain_divergence, plain_truncate = LogView.divergence, LogView.truncate
    patch.setattr(LogView, "divergence", lambda log, end: max(log.start_offset, plain_divergence(log, end) - 3))
    patch.setattr(LogView, "truncate", lambda log, end: plain_truncate(replace(log, high_watermark=0), end))


def keep_leading_without_followers(patch: pytest.MonkeyPatch) -> None:
    """A leader does not notice that no majority fetches."""
    patch.setattr(Settings, "check_quorum_timeout_ms", property(lambda _settings: 1_000_000))


def change_two_voters_at_once(patch: pytest.MonkeyPatch) -> None:
    """A change of the voters does not wait for the one before it."""

    def not_now(draft: Draft) -> None:
        state = leader.leading(draft)
        draft.set_state(replace(state, change=None))

    patch.setattr(reconfigure, "_not_now", not_now)


def count_old_voters(patch: pytest.MonkeyPatch) -> None:
    """A leader counts the voters at the start of its epoch, not those that the log has since."""
    patch.setattr(Replicas, "with_voters", lambda replicas, _voters: replicas)


def elect_without_a_majority(patch: pytest.MonkeyPatch) -> None:
    """Half of the votes are enough."""
    patch.setattr(Votes, "majority", property(lambda votes: max(1, len(votes.voters) // 2)))


def commit_records_of_earlier_epochs(patch: pytest.MonkeyPatch) -> None:
    """The high watermark does not wait for a record of the leader's own epoch."""
    plain = leader.update_high_watermark

    def update(draft: Draft) -> None:
        state = leader.leading(draft)
        draft.set_state(replace(state, start_offset=-1))
        plain(draft)
        if isinstance(draft.state, Leader):
            draft.set_state(replace(draft.state, start_offset=state.start_offset))

    patch.setattr(leader, "update_high_watermark", update)


def stay_in_the_epoch(patch: pytest.MonkeyPatch) -> None:
    """A candidate does not raise the epoch."""

    def become_candidate(draft: Draft) -> None:
        node = draft.node
        votes = Votes.start(node.voters.keys, node.key)
        roles.enter(draft, Candidate(max(1, node.epoch), roles.election_due_ms(draft), votes))
        draft.store_election()
        if votes.is_won:
            roles.become_leader(draft)

    patch.setattr(roles, "become_candidate", become_candidate)
    patch.setattr(transitions, "check", lambda _before, _after: None)


def forget_epochs(patch: pytest.MonkeyPatch) -> None:
    """A crash loses quorum-state as a whole."""
    plain = Disk.crash

    def crash(disk: Disk, random: object) -> None:
        plain(disk, random)
        disk.election = None

    patch.setattr(Disk, "crash", crash)


def accept_every_end(patch: pytest.MonkeyPatch) -> None:
    """A leader does not compare the epoch of a follower's last record: records that differ stay."""
    plain = LogView.validate

    def validate(log: LogView, fetched: Position) -> tuple[Validity, Position]:
        found, position = plain(log, fetched)
        is_within = fetched.offset <= log.end_offset
        return (Validity.VALID, fetched) if found is Validity.DIVERGING and is_within else (found, position)

    patch.setattr(LogView, "validate", validate)


def keep_voters_that_were_truncated(patch: pytest.MonkeyPatch) -> None:
    """A truncation does not bring back the voter set before it."""
    patch.setattr(VoterHistory, "truncate", lambda history, _end_offset: history)


def load_a_snapshot_without_its_voters(patch: pytest.MonkeyPatch) -> None:
    """A fetched snapshot replaces the log, and the voters stay those of the replaced log."""
    patch.setattr(VoterHistory, "from_snapshot", lambda history, _end_offset, _voters, _version: history)


def take_late_responses(patch: pytest.MonkeyPatch) -> None:
    """A response counts although its request has timed out and was sent again."""

    def is_expected(connections: Connections, node_id: int, _correlation_id: int, _now_ms: int) -> bool:
        return isinstance(connections.by_id.get(node_id), InFlight)

    patch.setattr(Connections, "is_expected", is_expected)


def cut_the_log_at_any_damage(patch: pytest.MonkeyPatch) -> None:
    """A log is cut at the first invalid batch wherever it is, as Kafka does."""
    patch.setattr("tests.sim.disk.is_torn_tail", lambda _damage: True)


def start_without_an_unreadable_quorum_state(patch: pytest.MonkeyPatch) -> None:
    """A voter whose quorum-state cannot be read starts at the epoch of its log, as Kafka 3 does."""
    plain = Disk.open

    def open_disk(disk: Disk) -> None:
        if disk.damage is Damaged.UNREADABLE_ELECTION:
            disk.damage, disk.election = None, None
        plain(disk)

    patch.setattr(Disk, "open", open_disk)


BUGS: Mapping[str, Plant] = {
    plant.__name__: plant
    for plant in (
        vote_twice,
        vote_for_shorter_logs,
        forget_votes,
        store_no_election,
        count_own_end_before_its_flush,
        commit_by_a_minority,
        fetch_before_the_flush,
        ask_for_votes_before_the_flush,
        lead_again_in_an_epoch,
        truncate_committed_records,
        keep_leading_without_followers,
        change_two_voters_at_once,
        count_old_voters,
        elect_without_a_majority,
        commit_records_of_earlier_epochs,
        stay_in_the_epoch,
        forget_epochs,
        accept_every_end,
        keep_voters_that_were_truncated,
        load_a_snapshot_without_its_voters,
        take_late_responses,
        cut_the_log_at_any_damage,
        start_without_an_unreadable_quorum_state,
    )
}
