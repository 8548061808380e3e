"""Invariants of the quorum, checked after each event on what the nodes did: Q1 to Q15, Q18 and Q19 of docs/invariants.md.

The checks keep their own record of what was committed, voted and appended, and take nothing from the node that it could compute wrongly.
"""

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from controller_core.quorum import messages
from controller_core.quorum import ready as results
from controller_core.quorum.batches import BOOTSTRAP_SNAPSHOT, Batch
from controller_core.quorum.node import Node
from controller_core.quorum.states import Candidate, Leader, Prospective, Resigned
from controller_core.quorum.voters import ReplicaKey
from kafka_wire import ErrorCode
from tests.sim.disk import Chain, Entry, SnapshotFile

if TYPE_CHECKING:
    from tests.sim.cluster import Cluster
    from tests.sim.host import Host

CHECK_QUORUM_FACTOR = 1.5
"""Kafka's factor; the checks do not take it from what they check."""

EMPTY: Chain = ""
"""Chain of an empty log."""


def chain(before: Chain, batch: Batch) -> Chain:
    """Return the chain after a batch."""
    text = f"{before} {batch.base_offset} {batch.last_offset} {batch.epoch} {batch.payload!r} {batch.control!r}"
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class Checks:
    """Record of a run. A broken invariant is an AssertionError that names it."""

    def __init__(self, cluster: "Cluster") -> None:
        self._cluster = cluster
        self.leaders: dict[int, int] = {}
        self._votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self._chains: dict[tuple[int, int], Chain] = {}
        self.committed_end = 0
        self.committed: dict[int, tuple[int, Chain]] = {}
        """End of each committed batch -> its epoch and the chain of the log up to there."""
        self._named: dict[int, int] = {}
        self._committed_by: dict[int, int] = {}
        """Epoch of a leader -> end of what it has committed."""
        self._stored_epochs: dict[int, int] = {}
        self._last_majority_ms: dict[tuple[int, int], int] = {}
        self._fetched: dict[tuple[int, int], set[int]] = {}
        self._acknowledged: dict[int, int] = {}
        """End of the log that a node has named as on its disk."""

    def started(self, host: "Host", node: Node) -> None:
        """Q2, Q15: a restart forgets no epoch, and no record that the node has acknowledged."""
        self._epoch_rises(host, node)
        acknowledged = self._acknowledged.get(host.id, 0)
        assert node.log.end_offset >= acknowledged, ("Q15", host.id, node.log.end_offset, acknowledged)

    def forget(self, host: "Host") -> None:
        """Expect nothing of what a disk had that was lost."""
        self._stored_epochs.pop(host.id, None)
        self._acknowledged.pop(host.id, None)
        self._votes = {key: vote for key, vote in self._votes.items() if key[0].id != host.id}

    def crashed(self, host: "Host") -> None:
        """Nothing durable is lost: the disk itself checks its crash."""

    def stepped(self, host: "Host", before: Node, ready: results.Ready) -> None:
        """Check a step before it is carried out."""
        node = ready.node
        self._epoch_rises(host, node)
        for notice in ready.notices:
            # A wiped leader hears of itself as the leader of an epoch that it has forgotten.
            assert not isinstance(notice, results.Violation) or host.id == self._cluster.wiped, (host.id, notice)
        if isinstance(before.state, Leader) and before.epoch == node.epoch:
            assert not any(isinstance(change, results.Truncated) for change in ready.log), ("Q9", host.id, ready.log)
        if isinstance(node.state, Prospective | Candidate) and type(before.state) is not type(node.state):
            assert self._may_be_voter(node), ("Q13", host.id, node.state)

    @staticmethod
    def _may_be_voter(node: Node) -> bool:
        """Whether any voter set that the node knows has it: a removal may not be committed yet."""
        history = node.history
        return any(
            voters.is_voter(node.key) for voters in (history.static, *(entry.value for entry in history.voter_sets))
        )

    def _epoch_rises(self, host: "Host", node: Node) -> None:
        assert node.epoch >= self._stored_epochs.get(host.id, 0), ("Q2", host.id, node.epoch)

    def before_answers(self, host: "Host", before: Node | None, ready: results.Ready) -> None:
        """Check what is committed before others learn of it: the process may end after some of its answers."""
        for notice in ready.notices:
            if isinstance(notice, results.Committed):
                led = any(
                    some_node is not None and isinstance(some_node.state, Leader) for some_node in (before, ready.node)
                )
                self._commits(host, ready.node, notice.high_watermark, led=led)

    def carried_out(self, host: "Host", ready: results.Ready) -> None:
        """Check a step after it was carried out."""
        node, stored = ready.node, host.disk.election
        assert stored is not None, host.id
        assert (stored.epoch, stored.leader_id, stored.voted) == self._expected_election(node), ("Q2", host.id, stored)
        self._stored_epochs[host.id] = stored.epoch
        assert node.log.end_offset == host.disk.end_offset, ("log", host.id)
        if isinstance(node.state, Leader):
            self._leads(host, node, node.state)

    @staticmethod
    def _expected_election(node: Node) -> tuple[int, int | None, ReplicaKey | None]:
        return node.epoch, node.leader_id, node.voted

    def _leads(self, host: "Host", node: Node, state: Leader) -> None:
        """Q1, Q11, Q12, Q13, Q19."""
        if node.epoch not in self.leaders:
            self.leaders[node.epoch] = host.id
            self._last_majority_ms[host.id, node.epoch] = self._cluster.scheduler.now_ms
            self._fetched[host.id, node.epoch] = set()
            assert self._has_all_committed(host, node.epoch, state.start_offset), ("Q11", host.id, node.epoch)
            assert self._may_be_voter(node), ("Q13", host.id)
        assert self.leaders[node.epoch] == host.id, ("Q1", node.epoch, host.id, self.leaders[node.epoch])
        self._keeps_majority(host, node)
        committed_end = node.high_watermark or 0
        entries = node.history.voter_sets
        pending = [entry.value.keys for entry in entries if entry.offset >= committed_end]
        base = [entry.value.keys for entry in entries if entry.offset < committed_end][-1:]
        if node.high_watermark is not None:
            assert len({*base, *pending}) <= 2, ("Q19", host.id, entries)

    def _has_all_committed(self, host: "Host", epoch: int, end_offset: int) -> bool:
        """Whether a leader has what leaders of lower epochs have committed; one that is elected late may lack what came after its epoch."""
        needed = max((end for other_epoch, end in self._committed_by.items() if other_epoch < epoch), default=0)
        if needed > end_offset:
            return False
        return needed == 0 or host.disk.chain_at(needed) == self.committed[needed][1]

    def _keeps_majority(self, host: "Host", node: Node) -> None:
        """Q12: a leader without fetches from a majority resigns; twice the time allows for when the window began."""
        if node.is_only_voter or host.paused_until_ms or host.clock.percent != 100:
            return
        silent_ms = self._cluster.scheduler.now_ms - self._last_majority_ms[host.id, node.epoch]
        assert silent_ms <= 2 * CHECK_QUORUM_FACTOR * node.settings.fetch_timeout_ms, ("Q12", host.id, silent_ms)

    def request_arrives(self, host: "Host", body: messages.RequestBody) -> None:
        """Note that a replica follows a leader."""
        node = host.node
        if node is None or not isinstance(node.state, Leader):
            return
        if isinstance(body, messages.FetchRequest | messages.FetchSnapshotRequest) and body.epoch == node.epoch:
            fetched = self._fetched[host.id, node.epoch]
            fetched.add(body.replica.id)
            followers = fetched & set(node.voters.ids)
            if len(followers | ({host.id} & set(node.voters.ids))) >= node.voters.majority:
                self._last_majority_ms[host.id, node.epoch] = self._cluster.scheduler.now_ms
                fetched.clear()

    def _commits(self, host: "Host", node: Node, high_watermark: int, *, led: bool) -> None:
        """Q5 to Q7: a majority has it on disk, and it is what others have committed."""
        if high_watermark > self.committed_end:
            assert led, ("Q6", host.id, high_watermark)
            self._note_committed(host, high_watermark)
            self._is_on_majority(node, high_watermark)
        elif led and node.epoch >= max(self.leaders, default=0):
            assert high_watermark >= self.committed_end, ("Q5", host.id, high_watermark, self.committed_end)
        if led:
            self._committed_by[node.epoch] = max(high_watermark, self._committed_by.get(node.epoch, 0))
        self._agrees(host, high_watermark)

    def _note_committed(self, host: "Host", high_watermark: int) -> None:
        for entry in reversed(host.disk.entries):
            batch = entry.batch
            if batch.base_offset < self.committed_end:
                break
            if batch.end_offset <= high_watermark:
                self.committed[batch.end_offset] = (batch.epoch, entry.chain)
        self.committed_end = high_watermark
        assert high_watermark in self.committed, ("Q6", host.id, high_watermark, "within a batch")

    def _is_on_majority(self, node: Node, high_watermark: int) -> None:
        """Q6, with what is on the voters' disks."""
        expected = self.committed[high_watermark][1]
        count = 0
        for voter in node.voters.voters:
            disk = self._cluster.hosts[voter.key.id].disk
            if not voter.key.accepts(self._cluster.hosts[voter.key.id].settings.key):
                continue
            if (
                disk.durable_end > high_watermark
                or disk.start_offset > high_watermark
                or (disk.durable_end >= high_watermark and disk.chain_at(high_watermark) == expected)
            ):
                count += 1
        # What a voter had acknowledged before it lost its disk counts, as long as it is no voter again.
        lost = 0 if self._cluster.wiped is None else 1
        assert count + lost >= node.voters.majority, ("Q6", node.id, high_watermark, count, node.voters.ids)

    def _agrees(self, host: "Host", high_watermark: int) -> None:
        """Q7 on one node."""
        if high_watermark in self.committed:
            known = host.disk.chain_at(high_watermark)
            assert known in {None, self.committed[high_watermark][1]}, ("Q7", host.id, high_watermark)

    def appended(self, host: "Host", batch: Batch) -> Chain:
        """Q8: a log with a record of an offset and epoch is the same up to there as every other with it; return the chain."""
        disk = host.disk
        before = disk.chain_at(disk.end_offset) if disk.end_offset else EMPTY
        assert before is not None, (host.id, batch)
        new = chain(before, batch)
        known = self._chains.setdefault((batch.last_offset, batch.epoch), new)
        assert known == new, ("Q8", host.id, batch)
        return new

    def truncated(self, host: "Host", removed: Iterable[Entry]) -> None:
        """Q10: no committed record is removed."""
        self._acknowledged[host.id] = min(self._acknowledged.get(host.id, 0), host.disk.end_offset)
        for entry in removed:
            end = entry.batch.end_offset
            assert self.committed.get(end, (0, None))[1] != entry.chain, ("Q10", host.id, entry)

    def installed(self, host: "Host", snapshot: SnapshotFile) -> None:
        """Q18: a leader loads no snapshot, and a snapshot is of committed records."""
        node = host.node
        assert node is not None, host.id
        assert not isinstance(node.state, Leader | Candidate | Resigned), ("Q18", host.id, node.state)
        assert snapshot.id.offset <= self.committed_end, ("Q18", host.id, snapshot.id)
        assert snapshot.id != BOOTSTRAP_SNAPSHOT, ("Q18", host.id)

    def sends(self, host: "Host", outgoing: results.Outgoing) -> None:
        """Q15: what a request promises is on disk."""
        stored, body = host.disk.election, outgoing.body
        assert stored is not None, host.id
        match body:
            case messages.VoteRequest(pre_vote=False):
                assert (stored.epoch, stored.voted) == (body.epoch, body.candidate), ("Q15", host.id, stored)
                assert host.disk.durable_end >= body.last.offset, ("Q15", host.id, body)
                self._votes_once(host.settings.key, body.epoch, body.candidate)
            case messages.FetchRequest() if host.settings.can_become_voter:
                assert host.disk.durable_end >= body.fetched.offset, ("Q15", host.id, body)
                self._acknowledged[host.id] = body.fetched.offset
            case messages.BeginQuorumEpochRequest():
                assert (stored.epoch, stored.leader_id) == (body.epoch, host.id), ("Q15", host.id, stored)
            case _:
                pass

    def answers(self, body: object) -> None:
        """What ends a Java node: INVALID_REQUEST for a well-formed request, and two leaders named for one epoch."""
        if isinstance(body, messages.AddRaftVoterResponse | results.AppendResult | results.UpgradeResult):
            return
        assert getattr(body, "error", None) is not ErrorCode.INVALID_REQUEST, body
        known = getattr(body, "leadership", messages.Leadership())
        if known.leader_id >= 0:
            assert self._named.setdefault(known.epoch, known.leader_id) == known.leader_id, ("Q1", body)

    def votes(self, host: "Host", request: messages.VoteRequest, response: messages.VoteResponse) -> None:
        """Q3, Q4, Q15 of a granted vote."""
        stored, node = host.disk.election, host.node
        if not response.granted or stored is None or node is None:
            return
        is_repeated = not request.pre_vote and (host.settings.key, request.epoch) in self._votes
        if not is_repeated:
            # A vote that is repeated is not compared again: a crash may have brought back records that were truncated before it.
            assert request.last >= node.log.end, ("Q4", host.id, request)
        if not request.pre_vote:
            is_stored = (stored.epoch, stored.voted) == (request.epoch, request.candidate)
            # A node whose election timeout is over may repeat a vote, which was on disk, and store the next epoch in the same step.
            assert is_stored or (is_repeated and stored.epoch > request.epoch), ("Q15", host.id, stored)
            self._votes_once(host.settings.key, request.epoch, request.candidate)

    def _votes_once(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        known = self._votes.setdefault((voter, epoch), candidate)
        assert known == candidate, ("Q3", voter, epoch, known, candidate)
