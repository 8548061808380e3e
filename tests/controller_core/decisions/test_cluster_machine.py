"""State machine of a cluster: events and faults in any order keep the invariants, and the cluster converges in the end.

Brokers register, fail and restart; topics are created, found, extended and deleted; moves start, change and are cancelled; leaders
change their ISRs and acknowledge records; requests are late, writes are refused, controllers fail before and after a commit.
`checked` checks C1 to C10 and C12 and that no acknowledged record is lost; the end checks convergence.

`HYPOTHESIS_PROFILE=soak` runs longer, with new random numbers each time.
"""

import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from controller_core.decisions.broker_requests import ProducerIdBlock
from controller_core.model import NO_LEADER, events
from controller_core.model.settings import TopicDeletion
from controller_core.zookeeper_mode.controlled_shutdown import Remaining
from tests.controller_core.decisions.actors import MAX_BROKERS, Actors
from tests.controller_core.decisions.driver import CONTROLLER

PROFILE = os.environ.get("HYPOTHESIS_PROFILE")
MAX_TOPICS = 2
MAX_PARTITIONS = 4

BROKERS = st.integers(1, MAX_BROKERS)
LISTS = st.lists(BROKERS, min_size=1, max_size=3, unique=True)
CHOICES = st.integers(0, 1_000)
HAND_WRITTEN = st.lists(st.one_of(BROKERS, st.just(CONTROLLER)), min_size=1, max_size=3, unique=True)
ALLOWED = st.sampled_from([True, False, None])
"""Values of `unclean.leader.election.enable`; None: not set."""


class ClusterMachine(Actors):
    """One cluster with all events and faults."""

    # Brokers.

    @initialize(count=st.integers(3, MAX_BROKERS), factor=st.integers(1, 3), unclean=st.booleans())
    def begin(self, count: int, factor: int, unclean: bool) -> None:
        """Start a few brokers and create a topic."""
        self.driver.start(*range(1, count + 1))
        self.create(count=2, factor=factor, start=0, unclean=unclean)
        self.deliver_all()

    @rule(broker_id=BROKERS)
    def start_or_restart(self, broker_id: int) -> None:
        """A broker registers: for the first time, again, or before its absence was read."""
        self.act(lambda: self.driver.start(broker_id))

    @rule(broker_id=BROKERS)
    def kill(self, broker_id: int) -> None:
        """A broker's registration is removed."""
        if broker_id in self.driver.brokers:
            self.act(lambda: self.driver.kill(broker_id))

    @rule(broker_id=BROKERS)
    def shut_down(self, broker_id: int) -> None:
        """C8: afterwards the broker leads no partition that another can lead, and is in no ISR of another leader."""
        cluster = self.driver.cluster
        if broker_id not in cluster.brokers or not self.driver.brokers[broker_id].is_up:
            return
        if not isinstance(self.act(lambda: self.driver.shut_down(broker_id)), Remaining):
            return
        cluster = self.driver.cluster
        for row in cluster.without_pending_deletion(
            cluster.columns.led_by(cluster.columns.flags([broker_id]))
        ).tolist():
            others = (set(cluster.brokers) - cluster.shutting_down).intersection(cluster.columns.isr_of(row))
            assert not others, f"C8: {broker_id} leads {cluster.name_of(row)}, which {others} could lead"
        in_sync = cluster.without_pending_deletion(cluster.columns.with_in_isr(cluster.columns.flags([broker_id])))
        assert set(cluster.columns.leader[in_sync].tolist()) <= {broker_id, NO_LEADER}, "C8: it stays in an ISR"

    # Topics.

    @rule(count=st.integers(1, 2), factor=st.integers(1, 3), start=CHOICES, unclean=st.booleans(), again=st.booleans())
    def create(self, count: int, factor: int, start: int, unclean: bool, again: bool = False) -> None:
        """A topic is created, with a new name or with that of a deleted one, of which brokers may still have logs."""
        if len(self.driver.written.topics) >= MAX_TOPICS:
            return
        configs = {"unclean.leader.election.enable": "true"} if unclean else {}
        name = self.choose_name(again=again)
        self.act(
            lambda: self.driver.create(
                name, partitions=count, replication_factor=factor, configs=configs, start_index=start
            )
        )

    @rule(broker_id=BROKERS)
    def unregister(self, broker_id: int) -> None:
        """An administrator declares that a broker never returns; it may return nevertheless, with unknown logs."""
        self.driver.excuse_late(broker_id)
        self.act(lambda: self.driver.unregister(broker_id))

    @rule(broker_id=BROKERS)
    def list_logs(self, broker_id: int) -> None:
        """A broker lists its logs: only garbage is deleted, whatever requests are queued."""
        broker = self.driver.brokers.get(broker_id)
        if broker is not None and broker.is_up:
            self.act(lambda: self.driver.find_strays(broker_id, *broker.listed()))

    @rule(
        lists=st.lists(
            st.lists(st.one_of(BROKERS, st.just(CONTROLLER)), min_size=2, max_size=2, unique=True), max_size=2
        )
    )
    def find(self, lists: list[list[int]]) -> None:
        """A broker has created a topic, perhaps with the controller among the replicas."""
        if len(self.driver.written.topics) < MAX_TOPICS:
            self.topics += 1
            self.act(lambda: self.driver.find(f"t{self.topics}", lists))

    @rule(choice=CHOICES)
    def add_partitions(self, choice: int) -> None:
        """A partition is added to a topic."""
        if (name := self.choose_topic(choice)) and len(self.driver.written.topics[name].replicas) < MAX_PARTITIONS:
            count = len(self.driver.written.topics[name].replicas) + 1
            request = events.CreatePartitions((events.NewPartitions(name, count),))
            self.act(lambda: self.driver.submit(request))

    @rule(choice=CHOICES, replicas=HAND_WRITTEN, is_seen=st.booleans())
    def add_a_partition_in_zookeeper(self, choice: int, replicas: list[int], is_seen: bool) -> None:
        """Another process adds a partition to a known topic, perhaps one queued for deletion; read now or later."""
        if (name := self.choose_topic(choice)) and name in self.driver.written.topics:
            partitions = self.driver.written.topics[name].replicas
            if len(partitions) < MAX_PARTITIONS:
                self.driver.write_partition(name, max(partitions, default=-1) + 1, replicas)
                if is_seen:
                    self.act(self.driver.read_assignments)

    @rule(choice=CHOICES, is_seen=st.booleans())
    def reorder_in_zookeeper(self, choice: int, is_seen: bool) -> None:
        """Another process writes another preferred replica for a partition that is not moving."""
        name = self.choose_partition(choice)
        written = None if name is None else self.driver.written.topics.get(name.topic)
        if name is None or written is None or name.partition in {*written.adding, *written.removing}:
            return
        first, *others = written.replicas[name.partition]
        self.driver.write_partition(name.topic, name.partition, [*others, first])
        if is_seen:
            self.act(self.driver.read_assignments)

    @rule()
    def poll_assignments(self) -> None:
        """The shell polls assignments that other processes may have written."""
        self.act(self.driver.read_assignments)

    @rule(choice=CHOICES, allowed=ALLOWED)
    def allow_unclean(self, choice: int, allowed: bool | None) -> None:
        """C7: a topic's setting of unclean elections changes."""
        if (name := self.choose_topic(choice)) and name in self.driver.written.topics:
            self.act(lambda: self.driver.allow_unclean(name, allowed))
            self.expect_unclean_leaders()

    @rule(allowed=ALLOWED)
    def allow_unclean_by_default(self, allowed: bool | None) -> None:
        """C7: the brokers' default changes, for topics without a setting."""
        self.act(lambda: self.driver.allow_unclean_by_default(allowed))
        self.expect_unclean_leaders()

    def expect_unclean_leaders(self) -> None:
        """C7: where it is allowed, no partition stays without a leader while a replica that can lead is live."""
        cluster = self.driver.cluster
        for row in cluster.without_pending_deletion(cluster.columns.used()).tolist():
            name = cluster.name_of(row)
            if not self.driver.written.allows_unclean(name.topic):
                continue
            able = (set(cluster.brokers) - cluster.shutting_down).intersection(
                cluster.columns.replicas_of(row)
            ) - cluster.offline_at(row)
            assert not able or cluster.columns.leader[row] != NO_LEADER, (
                f"C7: {name} has no leader, and {able} may lead"
            )

    @rule(choice=CHOICES)
    def delete(self, choice: int) -> None:
        """The deletion of a topic is requested."""
        if name := self.choose_topic(choice):
            self.act(lambda: self.driver.delete(name))

    @rule(choice=CHOICES)
    def queue_a_deletion(self, choice: int) -> None:
        """Another process writes a name into the deletion queue."""
        if name := self.choose_topic(choice):
            self.act(lambda: self.driver.queue_deletion(name))

    @rule(setting=st.sampled_from([TopicDeletion.ENABLED, TopicDeletion.DISABLED]))
    def set_topic_deletion(self, setting: TopicDeletion) -> None:
        """Brokers restart with another `delete.topic.enable`: with false, only started deletions remain queued."""
        self.act(lambda: self.driver.report_topic_deletion(setting))

    # Moves and elections.

    @rule(choice=CHOICES, broker_ids=LISTS, is_sensible=st.booleans())
    def reassign(self, choice: int, broker_ids: list[int], is_sensible: bool) -> None:
        """A reassignment is requested, to live brokers or to any."""
        if (name := self.choose_partition(choice)) is not None:
            replicas = self.live_ones(broker_ids) if is_sensible else broker_ids
            self.move(name, replicas, frozenset(replicas))

    @rule(choice=CHOICES, broker_id=BROKERS, then_delete=st.booleans())
    def move_off_a_dead_broker(self, choice: int, broker_id: int, then_delete: bool) -> None:
        """A follower's broker fails, its replica is moved, and perhaps the topic is deleted: a log stays on that broker."""
        found = self.choose_led(choice)
        if found is None or self.driver.cluster.row_of(*found[1]) is None:
            return
        leader, name = found
        self.catch_up()
        row = self.driver.cluster.row_of(*name)
        if row is None:
            return
        replicas = self.driver.cluster.columns.replicas_of(row)
        dying = next(
            (replica for replica in replicas if replica != leader.id and replica in self.driver.cluster.brokers), None
        )
        target = list(dict.fromkeys([leader.id, *self.live_ones([broker_id])]))
        if dying is None or dying in target:
            return
        self.act(lambda: self.driver.kill(dying))
        self.move(name, target, frozenset(target))
        self.catch_up()
        if then_delete:
            self.act(lambda: self.driver.delete(name.topic))
            self.deliver_all()
            self.act(self.driver.answer)

    @precondition(lambda self: self.driver.cluster.moves)
    @rule(choice=CHOICES, broker_ids=LISTS, is_part_of_origin=st.booleans())
    def change_a_move(self, choice: int, broker_ids: list[int], is_part_of_origin: bool) -> None:
        """Another reassignment is requested for a moving partition."""
        if (name := self.choose_moving(choice)) is None:
            return
        replicas = self.live_ones(broker_ids)
        if is_part_of_origin:
            replicas = sorted(self.driver.origins[name] - {CONTROLLER})[: len(broker_ids)] or replicas
        self.move(name, replicas, frozenset(replicas))

    @precondition(lambda self: self.driver.cluster.moves)
    @rule(choice=CHOICES)
    def cancel(self, choice: int) -> None:
        """C9: a cancelled move returns to its origin."""
        if (name := self.choose_moving(choice)) is not None:
            self.move(name, None, self.driver.origins[name] - {CONTROLLER})

    @rule(choice=CHOICES, broker_ids=LISTS, is_sensible=st.booleans())
    def request_a_move(self, choice: int, broker_ids: list[int], is_sensible: bool) -> None:
        """A move is requested in ZooKeeper, replacing earlier requests there."""
        if (name := self.choose_partition(choice)) is not None:
            target = self.live_ones(broker_ids) if is_sensible else broker_ids
            self.act(lambda: self.driver.request_moves({f"{name.topic}-{name.partition}": target}))
            self.expect_written_target(name)

    @rule(choice=CHOICES)
    def request_an_election(self, choice: int) -> None:
        """A preferred leader is requested in ZooKeeper."""
        if (name := self.choose_partition(choice)) is not None:
            self.act(lambda: self.driver.request_elections(f"{name.topic}-{name.partition}"))

    @rule(choice=CHOICES, unclean=st.booleans(), everything=st.booleans())
    def elect(self, choice: int, unclean: bool, everything: bool) -> None:
        """Elections are requested."""
        if (name := self.choose_partition(choice)) is not None:
            event = events.ElectLeaders(None if everything else (name,), unclean)
            self.act(lambda: self.driver.submit_unclean(event) if unclean else self.driver.submit(event))

    @rule(percentage=st.sampled_from([0, 10, 50]))
    def balance(self, percentage: int) -> None:
        """The timer: preferred leaders are elected."""
        self.act(lambda: self.driver.submit(events.BalanceLeaders(percentage)))

    @rule(broker_id=BROKERS)
    def allocate_producer_ids(self, broker_id: int) -> None:
        """KIP-730: no id is allocated twice."""
        if broker_id not in self.driver.cluster.brokers:
            return
        event = events.AllocateProducerIds(broker_id, self.driver.brokers[broker_id].epoch)
        block = self.act(lambda: self.driver.submit(event))
        if isinstance(block, ProducerIdBlock):
            assert block.first >= self.next_producer_id
            self.next_producer_id = block.first + block.size

    # Brokers' actions.

    @rule(broker_id=BROKERS, count=st.integers(1, 4))
    def deliver(self, broker_id: int, count: int) -> None:
        """A broker processes its next requests."""
        self.driver.deliver(broker_id, count)

    @rule()
    def deliver_all(self) -> None:
        """Brokers process all queued requests."""
        self.driver.deliver()

    @rule(broker_id=BROKERS)
    def answer(self, broker_id: int) -> None:
        """A broker's responses arrive."""
        self.act(lambda: self.driver.answer(broker_id))

    @rule(broker_id=BROKERS, times=st.integers(1, 3))
    def refuse(self, broker_id: int, times: int) -> None:
        """A broker will throw at LeaderAndIsr requests."""
        if broker_id in self.driver.brokers:
            self.driver.refuse(broker_id, times)

    @rule(broker_id=BROKERS, choice=CHOICES)
    def fail_to_delete(self, broker_id: int, choice: int) -> None:
        """A broker's responses arrive, and one of them reports that a log could not be deleted because of a failed disk."""
        answers = [answer for answer in self.driver.answers if answer.broker == broker_id and answer.done]
        if not answers:
            return
        name = answers[0].done[choice % len(answers[0].done)]
        self.driver.brokers[broker_id].logs.setdefault(name, 0)
        self.driver.excused.add((broker_id, name))
        self.act(lambda: self.driver.answer(broker_id, {f"{name.topic}-{name.partition}": "KAFKA_STORAGE_ERROR"}))

    @rule(broker_id=BROKERS, choice=CHOICES, is_notified=st.booleans())
    def fail_dir(self, broker_id: int, choice: int, is_notified: bool) -> None:
        """A log directory fails; its notification arrives now or after the next LeaderAndIsr is answered."""
        broker = self.driver.brokers.get(broker_id)
        if broker is not None and broker.is_up and broker.logs:
            name = sorted(broker.logs)[choice % len(broker.logs)]
            self.act(lambda: self.driver.fail_dir(broker_id, f"{name.topic}-{name.partition}", is_notified=is_notified))

    @rule()
    def produce(self) -> None:
        """acks=all: a leader acknowledges a record when all of its maximal ISR have it."""
        for leader, name in self.led():
            members = [self.driver.brokers[broker_id] for broker_id in leader.maximal_isr(name)]
            if all(member is leader or member.follows(name, leader) for member in members):
                end = leader.logs[name] + 1
                for member in members:
                    member.logs[name] = end
                self.driver.acked[name] = max(self.driver.acked.get(name, 0), end)

    @rule()
    def catch_up(self) -> None:
        """A quiet period: all requests are delivered, followers catch up, records are produced."""
        self.deliver_all()
        self.grow_isrs()
        self.produce()

    @rule(choice=CHOICES, kept=st.sets(BROKERS), writes_znode=st.booleans())
    def change_isr(self, choice: int, kept: set[int], writes_znode: bool) -> None:
        """A leader drops some members and adds followers that caught up; below 2.7 it writes the znode itself."""
        if (found := self.choose_led(choice)) is not None:
            leader, name = found
            isr = [
                leader.id,
                *sorted(kept & (set(leader.states[name].isr) | self.followers(leader, name)) - {leader.id}),
            ]
            self.request_isr(leader, name, isr, writes_znode=writes_znode)

    # Faults.

    @rule(choice=CHOICES, commits=st.integers(0, 2))
    def write_before_the_next_commit(self, choice: int, commits: int) -> None:
        """A leader writes its ISR just before the controller's next commit: a stale version, or none."""
        if (found := self.choose_led(choice)) is not None:
            leader, name = found
            self.driver.intrude(lambda: self.write_isr_znode(leader, name, (leader.id,)), commits)

    @rule(choice=CHOICES)
    def notify_isr(self, choice: int) -> None:
        """A notification is read, of an ISR that its leader wrote or of one that was not written."""
        if (name := self.choose_partition(choice)) is not None:
            self.act(lambda: self.driver.notify_isrs(f"{name.topic}-{name.partition}"))

    @rule(commits=st.integers(0, 3), after=st.booleans())
    def crash_soon(self, commits: int, after: bool) -> None:
        """The controller will fail at one of its next commits, before or after it is written."""
        self.driver.die_at(commits=commits, after=after)

    @rule(commits=st.integers(0, 2))
    def lose_a_result(self, commits: int) -> None:
        """The connection is lost: one of the next commits is written, and the controller does not get the result."""
        self.driver.lose_answer(commits)

    @rule()
    def take_over(self) -> None:
        """Another controller becomes active."""
        self.driver.take_over()

    @rule()
    def tick(self) -> None:
        """The shell's periodic check of unfinished operations."""
        self.act(self.run_periodic_checks)

    @precondition(lambda self: self.driver.crash is None)
    @invariant()
    def invariants_hold(self) -> None:
        """C1 to C5, C12, and every acknowledged record is in the leader's log."""
        self.driver.check()


ClusterMachine.TestCase.settings = (
    settings(max_examples=3_000, stateful_step_count=80, deadline=None)
    if PROFILE == "soak"
    else settings(
        max_examples=30 if PROFILE == "brief" else 250, stateful_step_count=40, deadline=None, derandomize=True
    )
)
# Shrinking a failing example takes longer than other tests may take.
TestCluster = pytest.mark.timeout(900)(ClusterMachine.TestCase)
