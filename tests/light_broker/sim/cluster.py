"""A simulated partition with three replicas under faults, and the checks of B1, B2, B3 and B6 after each event.

Messages are lost, late and overtaken; links are cut; processes are killed, which keeps their logs; of min.insync.replicas - 1 brokers the disk
is lost. In the end faults stop, and all replicas must have the same log with every acknowledged record.
"""

from collections.abc import Callable
from functools import partial

from light_broker.core.isr import AlterPartitionAnswer, Pending
from light_broker.core.metadata_view import NO_LEADER
from light_broker.core.partition import IsrRules
from tests.light_broker.sim.controller import Controller, Metadata
from tests.light_broker.sim.replica import MAX_LAG_MS, FetchRequest, FetchResponse, Produce, Replica, Rules
from tests.sim.scheduler import Scheduler

BROKERS = (1, 2, 3)
FAULTS_MS = 6_000
HEALED_MS = 8_000
"""Time without faults in which everything must converge: fencing, elections and several fetches of each follower."""
SESSION_MS = 400
PRODUCE_TIMEOUT_MS = 500


class Cluster:
    """One run of a seed."""

    def __init__(self, seed: int, rules: Rules | None = None) -> None:
        self.scheduler = Scheduler(seed)
        draw = self.scheduler.random
        self.min_isr = draw.choice([1, 2, 2])
        self.loss = draw.choice([0, 0.02, 0.2])
        self.late_ms = draw.choice([5, 50, 400])
        self.kill_every_ms = draw.choice([400, 1_000, 3_000])
        self.fetch_every_ms = draw.choice([10, 10, 60])
        self.checkpoint_every_ms = draw.choice([100, 3_000])
        self.disks_to_lose = self.min_isr - 1 if draw.random() < 0.5 else 0
        self.is_healed = False
        self.cut: set[frozenset[int]] = set()
        self.acknowledged: dict[int, int] = {}
        self.seen: dict[int, int] = {}
        """Values that consumers have read, by offset."""
        self._seen_of: dict[int, int] = dict.fromkeys(BROKERS, 0)
        """Offset up to which each broker's log was compared with them."""
        self.produces: list[Produce] = []
        self.replicas = {
            broker_id: Replica(
                broker_id,
                rules or Rules(),
                IsrRules(self.min_isr, MAX_LAG_MS),
                self._acknowledge,
                self._truncated,
            )
            for broker_id in BROKERS
        }
        self.controller = Controller(BROKERS, self.min_isr, self._publish, draw.choice)
        for broker_id in BROKERS:
            self._start(broker_id, is_empty=False)
        self._schedule()

    def run(self) -> None:
        """Run faults, then heal. Raises AssertionError for a violation."""
        self.scheduler.run_until(FAULTS_MS)
        self.is_healed = True
        self.cut.clear()
        for broker_id, replica in self.replicas.items():
            if not replica.is_alive:
                self._start(broker_id, is_empty=False)
        self.scheduler.run_until(FAULTS_MS + HEALED_MS)
        self._check_end()

    # Faults and load

    def _schedule(self) -> None:
        every = self.scheduler.every
        every(20, self._produce)
        every(15, self._consume)
        every(self.kill_every_ms, self._kill)
        every(900, self._cut_link)
        every(self.checkpoint_every_ms, self._checkpoint)
        every(250, self.controller.publish)
        for broker_id in BROKERS:
            every(self.fetch_every_ms, partial(self._fetch, broker_id))
            every(MAX_LAG_MS // 2, partial(self._find_slow, broker_id))
            every(50, partial(self._expire, broker_id))

    def _kill(self) -> None:
        broker_id = self.scheduler.random.choice(BROKERS)
        replica = self.replicas[broker_id]
        if self.is_healed or not replica.is_alive:
            return
        replica.is_alive = False
        is_empty = self.disks_to_lose > 0 and self.scheduler.chance(0.3)
        if is_empty:
            self.disks_to_lose -= 1
            replica.lose_disk()
            self._seen_of[broker_id] = 0
        epoch = replica.broker_epoch
        self.scheduler.after(SESSION_MS, lambda: self._session_over(broker_id, epoch))
        pause_ms = self.scheduler.random.choice([10, 300, 1_500])
        self.scheduler.after(pause_ms, lambda: self._start(broker_id, is_empty=is_empty))

    def _session_over(self, broker_id: int, epoch: int) -> None:
        if self.controller.live.get(broker_id) == epoch:
            self.controller.fence(broker_id)
            self._check_leader()

    def _start(self, broker_id: int, *, is_empty: bool) -> None:
        replica = self.replicas[broker_id]
        if not replica.is_alive:
            replica.start()
            replica.broker_epoch = self.controller.register(broker_id, is_empty=is_empty)
            # B8: what was sent to an earlier incarnation is refused. A lost disk could otherwise lead its old epoch again.
            replica.version = self.controller.version - 1
            self._check_leader()

    def _cut_link(self) -> None:
        self.cut.clear()
        if not self.is_healed and self.scheduler.chance(0.5):
            self.cut.add(frozenset(self.scheduler.random.sample(BROKERS, 2)))

    def _produce(self) -> None:
        if self.scheduler.now_ms > FAULTS_MS + HEALED_MS // 2:
            return
        leaders = [replica for replica in self.replicas.values() if replica.is_alive and replica.leader is not None]
        if leaders:
            leader = self.scheduler.random.choice(leaders)
            waiting = leader.produce(len(self.produces), self.scheduler.now_ms, PRODUCE_TIMEOUT_MS)
            if waiting is not None:
                self.produces.append(waiting)

    def _consume(self) -> None:
        for broker_id, replica in self.replicas.items():
            if replica.is_alive and replica.leader is not None:
                for offset in range(self._seen_of[broker_id], replica.high_watermark):
                    value = self.seen.setdefault(offset, replica.log[offset].value)
                    assert value == replica.log[offset].value, f"B3: offset {offset} changed after a consumer read it"
                self._seen_of[broker_id] = max(self._seen_of[broker_id], replica.high_watermark)

    def _checkpoint(self) -> None:
        for replica in self.replicas.values():
            if replica.is_alive:
                replica.checkpoint = replica.high_watermark

    def _expire(self, broker_id: int) -> None:
        if self.replicas[broker_id].is_alive:
            self.replicas[broker_id].purgatory.expire(self.scheduler.now_ms)

    # Messages

    def _send(self, one: int, other: int, action: Callable[[], None]) -> None:
        if frozenset({one, other}) in self.cut or (not self.is_healed and self.scheduler.chance(self.loss)):
            return
        late_ms = self.scheduler.random.randrange(self.late_ms) if not self.is_healed else 2
        self.scheduler.after(1 + late_ms, action)

    def _publish(self, metadata: Metadata) -> None:
        for broker_id, replica in self.replicas.items():
            self._send(0, broker_id, partial(self._learn, replica, metadata))

    def _learn(self, replica: Replica, metadata: Metadata) -> None:
        if replica.is_alive:
            replica.learn(metadata, self.scheduler.now_ms)

    def _fetch(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        request = replica.next_fetch() if replica.is_alive else None
        if request is not None:
            leader = self.replicas[replica.role.leader_id]
            self._send(broker_id, leader.broker_id, partial(self._serve, leader, request))

    def _serve(self, leader: Replica, request: FetchRequest) -> None:
        if not leader.is_alive:
            return
        response, pending = leader.serve(request, self.scheduler.now_ms)
        if pending is not None:
            self._propose(leader, pending)
        follower = self.replicas[request.broker_id]
        self._send(leader.broker_id, follower.broker_id, partial(self._take, follower, request, response))

    def _take(self, follower: Replica, request: FetchRequest, response: FetchResponse) -> None:
        if follower.is_alive:
            follower.take(request, response)

    def _find_slow(self, broker_id: int) -> None:
        replica = self.replicas[broker_id]
        pending = replica.find_slow(self.scheduler.now_ms) if replica.is_alive else None
        if pending is not None:
            self._propose(replica, pending)

    def _propose(self, leader: Replica, pending: Pending) -> None:
        state, broker_epoch = leader.leader, leader.broker_epoch
        assert state is not None
        members = tuple((member, leader.live.get(member, -1)) for member in pending.proposed)

        def decide() -> None:
            answer = self.controller.alter_partition(
                leader.broker_id, state.leader_epoch, state.partition_epoch, members
            )
            self._send(0, leader.broker_id, partial(self._answer, leader, broker_epoch, pending, answer))

        self._send(leader.broker_id, 0, decide)
        self.scheduler.after(SESSION_MS, partial(self._repeat, leader, broker_epoch, pending))

    def _answer(self, leader: Replica, broker_epoch: int, pending: Pending, answer: AlterPartitionAnswer) -> None:
        if leader.is_alive and leader.broker_epoch == broker_epoch:
            leader.take_answer(pending, answer, self.scheduler.now_ms)

    def _repeat(self, leader: Replica, broker_epoch: int, pending: Pending) -> None:
        """Send a change again whose answer was lost."""
        state = leader.leader
        if leader.is_alive and leader.broker_epoch == broker_epoch and state is not None and state.isr == pending:
            self._propose(leader, pending)

    # Checks

    def _acknowledge(self, offset: int, value: int) -> None:
        assert self.acknowledged.setdefault(offset, value) == value, f"B2: offset {offset} is acknowledged twice"

    def _truncated(self, broker_id: int, offset: int) -> None:
        self._seen_of[broker_id] = min(self._seen_of[broker_id], offset)

    def _check_leader(self) -> None:
        """Compare the log of an elected leader with what was acknowledged. One whose process is dead serves nothing."""
        leader_id = self.controller.state.leader
        if leader_id == NO_LEADER:
            return
        leader = self.replicas[leader_id]
        if leader.is_alive and leader.broker_epoch == self.controller.live.get(leader_id):
            self._check_has_all(leader)

    def _check_has_all(self, replica: Replica) -> None:
        for known, rule in ((self.acknowledged, "B1"), (self.seen, "B3")):
            for offset, value in known.items():
                there = replica.log[offset].value if offset < len(replica.log) else None
                assert there == value, f"{rule}: broker {replica.broker_id} has {there} at offset {offset}, not {value}"

    def _check_end(self) -> None:
        logs = [replica.log for replica in self.replicas.values()]
        assert logs[0] == logs[1] == logs[2], "the replicas do not converge"
        assert sorted(self.controller.state.isr) == list(BROKERS), "a replica does not join the ISR again"
        for replica in self.replicas.values():
            self._check_has_all(replica)
            assert len(replica.purgatory) == 0, "B6: a produce is not answered"
        assert self.acknowledged, "nothing was acknowledged: the run shows nothing"
