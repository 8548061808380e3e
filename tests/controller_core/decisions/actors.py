"""Who acts in the state machine of a cluster: leaders and followers, callers, the next controller; and how it all ends.

Leaves out what happens when (the machine's rules) and what must hold at each step (`checked`).
"""

from collections.abc import Callable
from dataclasses import replace

from hypothesis.stateful import RuleBasedStateMachine

from controller_core.model import events
from controller_core.model.ids import NO_LEADER, TopicPartition
from controller_core.zookeeper_mode.registered_brokers import CHECK_EVERYTHING
from tests.controller_core.decisions.checked import CheckedDriver
from tests.controller_core.decisions.driver import CONTROLLER, CrashError
from tests.controller_core.decisions.fake_broker import FakeBroker

MAX_BROKERS = 5
MAX_ROUNDS = 200
"""Rounds of deliveries, answers and looks until everything must have come to its end."""


class Actors(RuleBasedStateMachine):
    """One cluster, and what can be done to it."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = CheckedDriver()
        self.driver.holds_messages = self.driver.holds_answers = True
        self.topics = 0
        self.wanted: dict[TopicPartition, frozenset[int]] = {}
        """Where each partition that was moved has to end."""
        self.next_producer_id = 0

    def teardown(self) -> None:
        """All brokers are back and all is delivered and answered: everything comes to its end."""
        self.driver.crash = None
        self.driver.take_over()
        self.driver.start(*range(1, MAX_BROKERS + 1))
        for _ in range(MAX_ROUNDS):
            self.driver.deliver()
            self.driver.answer()
            self.look()
            waiting = [*self.driver.answers, *self.driver.refused, *self.driver.replica_answers]
            if not self.grow_isrs() and not waiting and not any(self.driver.queues.values()):
                break
        for broker in self.driver.brokers.values():
            self.driver.find_strays(broker.id, *broker.listed())
            self.driver.deliver()
            self.driver.answer()
        self.driver.check()
        self.check_the_end()

    def check_the_end(self) -> None:
        """Every partition online and in sync, every move where it was to be, every deletion done, no log forgotten."""
        written = self.driver.written
        assert written.deletions == []
        assert self.driver.cluster.moves == {}
        assert self.driver.requested() is None
        assert self.driver.written.election_requests is None
        assigned = {
            TopicPartition(topic, partition): frozenset(replicas)
            for topic, found in written.topics.items()
            for partition, replicas in found.replicas.items()
        }
        assert all(not topic.adding and not topic.removing for topic in written.topics.values())
        refused = {name: self.driver.refusing(name) for name in assigned if self.driver.refusing(name)}
        for name, replicas in assigned.items():
            state = written.states[name]
            if name not in refused:
                assert state.leader != NO_LEADER, f"{name} is offline"
                assert replicas == frozenset(state.isr), f"{name} is not in sync"
            assert state.leader not in refused.get(name, ()), f"{name} is led by a broker that refuses it"
            assert replicas == self.wanted.get(name, replicas), f"{name} is not where it was to be"
            assert CONTROLLER not in replicas
        for broker in self.driver.brokers.values():
            forgotten = {name for name in broker.logs if broker.id not in assigned.get(name, ())}
            assert all((broker.id, name) in self.driver.excused for name in forgotten), f"{broker.id} keeps {forgotten}"
            stray = {name for name in forgotten if name in assigned and name not in refused}
            assert not stray, f"{broker.id} keeps {stray}, which it listed"

    def move(self, name: TopicPartition, target: list[int] | None, end: frozenset[int]) -> None:
        """Ask for a move, and remember where it has to end.

        A caller that got no answer, or one that may be to its own work (a cancel that was written unheard finds nothing to
        cancel), looks where it is.
        """
        may_be_unheard = self.driver.lost_answer is not None
        answers = self.act(lambda: self.driver.reassign({f"{name.topic}-{name.partition}": target}))
        if isinstance(answers, dict) and not may_be_unheard:
            if None in answers.values():
                self.wanted[name] = end
            return
        self.want_what_is_written(name)

    def want_what_is_written(self, name: TopicPartition) -> None:
        """Remember that a partition has to end where its move, if one runs, goes."""
        written = self.driver.written.topics[name.topic]
        removing = written.removing.get(name.partition, ())
        self.wanted[name] = frozenset(written.replicas[name.partition]) - frozenset(removing)
        if CONTROLLER in self.wanted[name]:
            del self.wanted[name]  # Another broker takes its place, when the topic's deletion is withdrawn.

    def act(self, doing: Callable[[], object]) -> object:
        """Do something; should the controller die in it, another takes over."""
        try:
            return doing()
        except CrashError:
            self.driver.take_over()
            return None

    def look(self) -> None:
        """The shell's tick."""
        for event in CHECK_EVERYTHING:
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

    def choose_name(self, *, again: bool) -> str:
        """Choose a name for a topic: that of a deleted one, if there is any and it is wanted again, or a new one."""
        used = {*self.driver.written.topics, *self.driver.cluster.topics}
        free = [name for number in range(1, self.topics + 1) if (name := f"t{number}") not in used]
        if again and free:
            self.driver.begin_again(free[-1])
            self.wanted = {name: end for name, end in self.wanted.items() if name.topic != free[-1]}
            return free[-1]
        self.topics += 1
        return f"t{self.topics}"

    def choose_topic(self, choice: int) -> str | None:
        """Choose a topic that is known."""
        names = sorted(self.driver.cluster.topics)
        return names[choice % len(names)] if names else None

    def choose_partition(self, choice: int) -> TopicPartition | None:
        """Choose a partition that is known."""
        rows = self.driver.cluster.columns.used().tolist()
        names = sorted(map(self.driver.cluster.name_of, rows))
        return names[choice % len(names)] if names else None

    def choose_moving(self, choice: int) -> TopicPartition | None:
        """Choose a partition that is on its way elsewhere."""
        cluster = self.driver.cluster
        names = sorted(cluster.name_of(row) for row, move in cluster.moves.items() if move.adding or move.removing)
        return names[choice % len(names)] if names else None

    def live_ones(self, wishes: list[int]) -> list[int]:
        """Turn any brokers into live ones, if there are any."""
        live = sorted(self.driver.cluster.may_lead())
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
