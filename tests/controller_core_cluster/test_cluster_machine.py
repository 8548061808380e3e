"""Anything may happen in any order, and every step keeps the invariants; when all are back, everything comes to its end.

Brokers come, go and bounce; topics are made, found, grown and deleted; moves start, change and are cancelled; leaders change
their ISRs and acknowledge records; requests are late, writes are refused, controllers die before and after a commit.
`checked` checks C1 to C10 and C12 and that no acknowledged record is lost; the end checks that it converges.

`HYPOTHESIS_PROFILE=soak` looks further, with new random numbers each time.
"""

import os
from collections.abc import Callable
from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controller_core.cluster.failover import LOOK_AT_EVERYTHING
from controller_core.cluster.shutdown import Remaining
from controller_core.model import events
from controller_core.model.ids import NO_LEADER, TopicPartition
from tests.controller_core_cluster.checked import CheckedDriver
from tests.controller_core_cluster.driver import CONTROLLER, CrashError
from tests.controller_core_cluster.fake_broker import FakeBroker

IS_SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
MAX_BROKERS = 5
MAX_TOPICS = 2
MAX_PARTITIONS = 4
MAX_ROUNDS = 200
"""Rounds of deliveries, answers and looks until everything must have come to its end."""

BROKERS = st.integers(1, MAX_BROKERS)
LISTS = st.lists(BROKERS, min_size=1, max_size=3, unique=True)
CHOICES = st.integers(0, 1_000)


class ClusterMachine(RuleBasedStateMachine):
    """One cluster through all that may befall it."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = CheckedDriver()
        self.driver.holds_messages = self.driver.holds_answers = True
        self.topics = 0
        self.wanted: dict[TopicPartition, frozenset[int]] = {}

    # Brokers.

    @initialize(count=st.integers(3, MAX_BROKERS), factor=st.integers(1, 3), unclean=st.booleans())
    def begin(self, count: int, factor: int, unclean: bool) -> None:
        """A few brokers, and a topic."""
        self.driver.start(*range(1, count + 1))
        self.create(count=2, factor=factor, start=0, unclean=unclean)
        self.deliver_all()

    @rule(broker_id=BROKERS)
    def start_or_bounce(self, broker_id: int) -> None:
        """A broker registers, for the first time, again, or before it was seen gone."""
        self.act(lambda: self.driver.start(broker_id))

    @rule(broker_id=BROKERS)
    def kill(self, broker_id: int) -> None:
        """A broker's registration goes."""
        if broker_id in self.driver.brokers:
            self.act(lambda: self.driver.kill(broker_id))

    @rule(broker_id=BROKERS)
    def shut_down(self, broker_id: int) -> None:
        """C8: afterwards it leads nothing that another could lead, and is in no ISR that another leads."""
        cluster = self.driver.cluster
        if broker_id not in cluster.brokers or not self.driver.brokers[broker_id].is_up:
            return
        if not isinstance(self.act(lambda: self.driver.shut_down(broker_id)), Remaining):
            return
        cluster = self.driver.cluster
        for row in cluster.not_deleting(cluster.columns.led_by(cluster.columns.flags([broker_id]))).tolist():
            others = set(cluster.live_ids()).intersection(cluster.columns.isr_of(row))
            assert not others, f"C8: {broker_id} leads {cluster.name_of(row)}, which {others} could lead"
        in_sync = cluster.not_deleting(cluster.columns.with_in_isr(cluster.columns.flags([broker_id])))
        assert set(cluster.columns.leader[in_sync].tolist()) <= {broker_id, NO_LEADER}, "C8: it stays in an ISR"

    # Topics.

    @rule(count=st.integers(1, 2), factor=st.integers(1, 3), start=CHOICES, unclean=st.booleans())
    def create(self, count: int, factor: int, start: int, unclean: bool) -> None:
        """Somebody creates a topic; its name is new, since logs that nobody could delete go by names."""
        if len(self.driver.written.topics) >= MAX_TOPICS:
            return
        self.topics += 1
        configs = {"unclean.leader.election.enable": "true"} if unclean else {}
        self.act(
            lambda: self.driver.create(
                f"t{self.topics}", partitions=count, replication_factor=factor, configs=configs, start_index=start
            )
        )

    @rule(
        lists=st.lists(
            st.lists(st.one_of(BROKERS, st.just(CONTROLLER)), min_size=2, max_size=2, unique=True), max_size=2
        )
    )
    def find(self, lists: list[list[int]]) -> None:
        """A broker has created a topic by itself, perhaps with the controller among the replicas."""
        if len(self.driver.written.topics) < MAX_TOPICS:
            self.topics += 1
            self.act(lambda: self.driver.find(f"t{self.topics}", lists))

    @rule(choice=CHOICES)
    def add_partitions(self, choice: int) -> None:
        """A topic grows by one."""
        if (name := self.choose_topic(choice)) and len(self.driver.written.topics[name].replicas) < MAX_PARTITIONS:
            count = len(self.driver.written.topics[name].replicas) + 1
            request = events.CreatePartitions((events.NewPartitions(name, count),))
            self.act(lambda: self.driver.submit(request))

    @rule(choice=CHOICES)
    def delete(self, choice: int) -> None:
        """Somebody deletes a topic."""
        if name := self.choose_topic(choice):
            self.act(lambda: self.driver.delete(name))

    # Moves and elections.

    @rule(choice=CHOICES, wishes=LISTS, is_sensible=st.booleans())
    def reassign(self, choice: int, wishes: list[int], is_sensible: bool) -> None:
        """Somebody wants a partition elsewhere, on brokers that live or on any."""
        if (name := self.choose_partition(choice)) is not None:
            replicas = self.live_ones(wishes) if is_sensible else wishes
            self.move(name, replicas, frozenset(replicas))

    @precondition(lambda self: self.driver.cluster.moves)
    @rule(choice=CHOICES, wishes=LISTS)
    def change_a_move(self, choice: int, wishes: list[int]) -> None:
        """Somebody wants a partition elsewhere that is on its way already."""
        name, replicas = self.choose_moving(choice), self.live_ones(wishes)
        self.move(name, replicas, frozenset(replicas))

    @precondition(lambda self: self.driver.cluster.moves)
    @rule(choice=CHOICES)
    def cancel(self, choice: int) -> None:
        """C9: cancel returns to where the move began."""
        name = self.choose_moving(choice)
        self.move(name, None, self.driver.origins[name] - {CONTROLLER})

    @rule(choice=CHOICES, unclean=st.booleans(), everything=st.booleans())
    def elect(self, choice: int, unclean: bool, everything: bool) -> None:
        """Somebody asks for leaders."""
        if (name := self.choose_partition(choice)) is not None:
            event = events.ElectLeaders(None if everything else (name,), unclean)
            self.act(lambda: self.driver.submit_unclean(event) if unclean else self.driver.submit(event))

    # What brokers do.

    @rule(broker_id=BROKERS, count=st.integers(1, 4))
    def deliver(self, broker_id: int, count: int) -> None:
        """A broker takes the next requests."""
        self.driver.deliver(broker_id, count)

    @rule()
    def deliver_all(self) -> None:
        """Brokers take all that waits for them."""
        self.driver.deliver()

    @rule(broker_id=BROKERS)
    def answer(self, broker_id: int) -> None:
        """A broker's answers arrive."""
        self.act(lambda: self.driver.answer(broker_id))

    @rule(broker_id=BROKERS, choice=CHOICES)
    def fail_to_delete(self, broker_id: int, choice: int) -> None:
        """A broker's answers arrive, and one of them says that a log could not be deleted: its disk has failed."""
        answers = [answer for answer in self.driver.answers if answer.broker == broker_id and answer.done]
        if not answers:
            return
        name = answers[0].done[choice % len(answers[0].done)]
        self.driver.brokers[broker_id].logs.setdefault(name, 0)
        self.driver.excused.add((broker_id, name))
        self.act(lambda: self.driver.answer(broker_id, {f"{name.topic}-{name.partition}": "KAFKA_STORAGE_ERROR"}))

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
        """A quiet moment: brokers hear all that there is to hear, followers catch up, records come in."""
        self.deliver_all()
        self.grow_isrs()
        self.produce()

    @rule(choice=CHOICES, kept=st.sets(BROKERS), by_itself=st.booleans())
    def change_isr(self, choice: int, kept: set[int], by_itself: bool) -> None:
        """A leader drops some members and takes in followers that caught up; below 2.7 it writes the znode by itself."""
        if (found := self.choose_led(choice)) is not None:
            leader, name = found
            isr = [
                leader.id,
                *sorted(kept & (set(leader.states[name].isr) | self.followers(leader, name)) - {leader.id}),
            ]
            self.wish_isr(leader, name, isr, by_itself=by_itself)

    # Faults.

    @rule(choice=CHOICES, commits=st.integers(0, 2))
    def write_before_the_next_commit(self, choice: int, commits: int) -> None:
        """A leader writes its ISR by itself just before us: a stale version, or none."""
        if (found := self.choose_led(choice)) is not None:
            leader, name = found
            self.driver.intrude(lambda: self.write_by_itself(leader, name, (leader.id,)), commits)

    @rule(commits=st.integers(0, 3), after=st.booleans())
    def die_soon(self, commits: int, after: bool) -> None:
        """The controller will die at one of its next commits, before or after it is written."""
        self.driver.die_at(commits=commits, after=after)

    @rule()
    def take_over(self) -> None:
        """Another controller takes the place."""
        self.driver.take_over()

    @rule()
    def tick(self) -> None:
        """The shell's look at what may have been left undone."""
        self.act(self.look)

    @precondition(lambda self: self.driver.crash is None)
    @invariant()
    def all_is_well(self) -> None:
        """C1 to C5, C12, and every acknowledged record is with the leader."""
        self.driver.check()

    def teardown(self) -> None:
        """All brokers are back and all is delivered and answered: everything comes to its end."""
        self.driver.crash = None
        self.driver.take_over()
        self.driver.start(*range(1, MAX_BROKERS + 1))
        for _ in range(MAX_ROUNDS):
            self.deliver_all()
            self.driver.answer()
            self.look()
            if not self.grow_isrs() and not self.driver.answers and not any(self.driver.queues.values()):
                break
        self.driver.check()
        self.check_the_end()

    # Helpers.

    def check_the_end(self) -> None:
        """Every partition online and in sync, every move where it was to be, every deletion done, no log forgotten."""
        written = self.driver.written
        assert [] == written.deletions
        assert {} == self.driver.cluster.moves
        assigned = {
            TopicPartition(topic, partition): frozenset(replicas)
            for topic, found in written.topics.items()
            for partition, replicas in found.replicas.items()
        }
        assert all(not topic.adding and not topic.removing for topic in written.topics.values())
        for name, replicas in assigned.items():
            state = written.states[name]
            assert state.leader != NO_LEADER, f"{name} is offline"
            assert replicas == frozenset(state.isr), f"{name} is not in sync"
            assert replicas == self.wanted.get(name, replicas), f"{name} is not where it was to be"
            assert CONTROLLER not in replicas
        for broker in self.driver.brokers.values():
            forgotten = {name for name in broker.logs if broker.id not in assigned.get(name, ())}
            assert all((broker.id, name) in self.driver.excused for name in forgotten), f"{broker.id} keeps {forgotten}"

    def move(self, name: TopicPartition, target: list[int] | None, end: frozenset[int]) -> None:
        """Ask for a move, and remember where it has to end. A caller that got no answer looks where it is."""
        answers = self.act(lambda: self.driver.reassign({f"{name.topic}-{name.partition}": target}))
        if isinstance(answers, dict):
            if None in answers.values():
                self.wanted[name] = end
            return
        written = self.driver.written.topics[name.topic]
        removing = written.removing.get(name.partition, ())
        self.wanted[name] = frozenset(written.replicas[name.partition]) - frozenset(removing)

    def act(self, doing: Callable[[], object]) -> object:
        """Do something; should the controller die in it, another takes over."""
        try:
            return doing()
        except CrashError:
            self.driver.take_over()
            return None

    def look(self) -> None:
        """The shell's tick."""
        for event in LOOK_AT_EVERYTHING:
            self.driver.submit(event)

    def grow_isrs(self) -> bool:
        """Every leader takes in the followers that it lacks; whether any did."""
        grew = False
        for leader, name in self.led():
            told = leader.states.get(name)
            if told is None or not leader.leads(name):
                continue  # An earlier wish brought a move to its end, or the controller died.
            isr = [*told.isr, *sorted(self.followers(leader, name) - set(told.isr))]
            if len(isr) > len(told.isr) or name in leader.pending:
                self.wish_isr(leader, name, isr, by_itself=False)
                grew |= leader.states.get(name, told).isr != told.isr
        return grew

    def wish_isr(self, leader: FakeBroker, name: TopicPartition, isr: list[int], *, by_itself: bool) -> None:
        """A leader wants another ISR; one whose answer it lacks it asks for again. Members of it have caught up."""
        told = leader.states[name]
        wanted = leader.pending.get(name, tuple(isr))
        for broker_id in wanted:
            if self.driver.brokers[broker_id].follows(name, leader):
                self.driver.brokers[broker_id].logs[name] = leader.logs[name]
        if by_itself and name not in leader.pending:
            self.write_by_itself(leader, name, wanted)
            return
        wish = events.IsrChange(name, told.leader_epoch, wanted, told.partition_epoch)
        self.act(lambda: self.driver.alter_partition(events.AlterPartition(leader.id, leader.epoch, (wish,))))

    def write_by_itself(self, leader: FakeBroker, name: TopicPartition, isr: tuple[int, ...]) -> None:
        """A leader writes its ISR to the znode, if that is as it knows it."""
        state, told = self.driver.written.states.get(name), leader.states.get(name)
        if state is None or told is None or not leader.leads(name) or name in leader.pending:
            return
        if (state.version, state.leader) == (told.partition_epoch, leader.id):
            self.driver.write_isr(f"{name.topic}-{name.partition}", isr)
            leader.states[name] = replace(told, isr=isr, partition_epoch=state.version + 1)

    def followers(self, leader: FakeBroker, name: TopicPartition) -> set[int]:
        """Brokers that fetch from a leader and may join its ISR."""
        return {broker.id for broker in self.driver.brokers.values() if broker.follows(name, leader)}

    def choose_topic(self, choice: int) -> str | None:
        """Choose a topic that is known."""
        names = sorted(self.driver.cluster.topics)
        return names[choice % len(names)] if names else None

    def choose_partition(self, choice: int) -> TopicPartition | None:
        """Choose a partition that is known."""
        rows = self.driver.cluster.columns.used().tolist()
        names = sorted(map(self.driver.cluster.name_of, rows))
        return names[choice % len(names)] if names else None

    def choose_moving(self, choice: int) -> TopicPartition:
        """Choose a partition that is on its way."""
        names = sorted(map(self.driver.cluster.name_of, self.driver.cluster.moves))
        return names[choice % len(names)]

    def live_ones(self, wishes: list[int]) -> list[int]:
        """Turn any brokers into live ones, if there are any."""
        live = self.driver.cluster.live_ids()
        return list(dict.fromkeys(live[wish % len(live)] for wish in wishes)) if live else wishes

    def choose_led(self, choice: int) -> tuple[FakeBroker, TopicPartition] | None:
        """Choose a broker and a partition that it takes itself to lead."""
        led = self.led()
        return led[choice % len(led)] if led else None

    def led(self) -> list[tuple[FakeBroker, TopicPartition]]:
        """List brokers with the partitions that they take themselves to lead."""
        return [
            (broker, name)
            for broker in self.driver.brokers.values()
            for name in sorted(broker.states)
            if broker.leads(name)
        ]


ClusterMachine.TestCase.settings = (
    settings(max_examples=3_000, stateful_step_count=80, deadline=None)
    if IS_SOAK
    else settings(max_examples=400, stateful_step_count=40, deadline=None, derandomize=True)
)
TestCluster = ClusterMachine.TestCase
