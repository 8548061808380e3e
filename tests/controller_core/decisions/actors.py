"""Actors in the state machine of a cluster (leaders and followers, callers, the next controller), and its convergence.

The order of events is in the machine's rules; the checks of each step are in `checked`.
"""

from collections.abc import Callable
from dataclasses import replace

from hypothesis.stateful import RuleBasedStateMachine

from controller_core.model import NO_LEADER, TopicPartition, events
from controller_core.zookeeper_mode.registered_brokers import CHECK_EVERYTHING
from tests.controller_core.decisions.checked import CheckedDriver
from tests.controller_core.decisions.driver import CONTROLLER, CrashError
from tests.controller_core.decisions.fake_broker import FakeBroker

MAX_BROKERS = 5
MAX_ROUNDS = 200
"""Rounds of deliveries, answers and checks after which everything must have converged."""


class Actors(RuleBasedStateMachine):
    """One cluster, and actions of brokers and callers."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = CheckedDriver()
        self.driver.holds_messages = self.driver.holds_answers = True
        self.topics = 0
        self.wanted: dict[TopicPartition, frozenset[int]] = {}
        """Expected final replicas of each partition that was moved."""
        self.next_producer_id = 0

    def teardown(self) -> None:
        """All brokers are back, and everything is delivered and answered: the cluster converges."""
        self.driver.crash = None
        self.driver.take_over()
        self.driver.start(*range(1, MAX_BROKERS + 1))
        for _ in range(MAX_ROUNDS):
            self.driver.deliver()
            self.driver.answer()
            self.run_periodic_checks()
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
        """Check that every partition is online and in sync, every move at its target, every deletion done, and every log assigned."""
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
            assert replicas == self.wanted.get(name, replicas), f"{name} is not at its target"
            assert CONTROLLER not in replicas
        for broker in self.driver.brokers.values():
            unassigned = {name for name in broker.logs if broker.id not in assigned.get(name, ())}
            assert all((broker.id, name) in self.driver.excused for name in unassigned), (
                f"{broker.id} keeps {unassigned}"
            )
            stray = {name for name in unassigned if name in assigned and name not in refused}
            assert not stray, f"{broker.id} keeps {stray}, which it listed"

    def move(self, name: TopicPartition, target: list[int] | None, end: frozenset[int]) -> None:
        """Request a move, and expect its target.

        A caller without a response, or with one that may be caused by its own request (a cancellation whose write result was lost
        finds nothing to cancel), reads the current assignment.
        """
        may_be_lost = self.driver.lost_answer is not None
        answers = self.act(lambda: self.driver.reassign({f"{name.topic}-{name.partition}": target}))
        if isinstance(answers, dict) and not may_be_lost:
            if None in answers.values():
                self.wanted[name] = end
            return
        self.expect_written_target(name)

    def expect_written_target(self, name: TopicPartition) -> None:
        """Expect a partition to end at the target of its move, if one is running."""
        written = self.driver.written.topics[name.topic]
        removing = written.removing.get(name.partition, ())
        self.wanted[name] = frozenset(written.replicas[name.partition]) - frozenset(removing)
        if CONTROLLER in self.wanted[name]:
            del self.wanted[name]  # Another broker takes its place, when the topic's deletion is withdrawn.

    def act(self, doing: Callable[[], object]) -> object:
        """Run an action; if the controller fails in it, another one takes over."""
        try:
            return doing()
        except CrashError:
            self.driver.take_over()
            return None

    def run_periodic_checks(self) -> None:
        """Run the shell's periodic checks."""
        for event in CHECK_EVERYTHING:
            self.driver.submit(event)

    def grow_isrs(self) -> bool:
        """Let every leader add its missing followers to the ISR; return whether any did."""
        grew = False
        for leader, name in self.led():
            sent = leader.states.get(name)
            if sent is None or not leader.leads(name):
                continue  # An earlier request ended a move, or the controller failed.
            isr = [*sent.isr, *sorted(self.followers(leader, name) - set(sent.isr))]
            if len(isr) > len(sent.isr) or name in leader.pending:
                self.request_isr(leader, name, isr, writes_znode=False)
                grew |= leader.states.get(name, sent).isr != sent.isr
        return grew

    def request_isr(self, leader: FakeBroker, name: TopicPartition, isr: list[int], *, writes_znode: bool) -> None:
        """Let a leader request another ISR, or repeat a request without a response. Its members have caught up."""
        sent = leader.states[name]
        wanted = leader.pending.get(name, tuple(isr))
        for broker_id in wanted:
            if self.driver.brokers[broker_id].follows(name, leader):
                self.driver.brokers[broker_id].logs[name] = leader.logs[name]
        if writes_znode and name not in leader.pending:
            self.write_isr_znode(leader, name, wanted)
            return
        change = events.IsrChange(name, sent.leader_epoch, wanted, sent.partition_epoch)
        self.act(lambda: self.driver.alter_partition(events.AlterPartition(leader.id, leader.epoch, (change,))))

    def write_isr_znode(self, leader: FakeBroker, name: TopicPartition, isr: tuple[int, ...]) -> None:
        """Let a leader write its ISR to the znode, if it knows the current version."""
        state, sent = self.driver.written.states.get(name), leader.states.get(name)
        if state is None or sent is None or not leader.leads(name) or name in leader.pending:
            return
        if (state.version, state.leader) == (sent.partition_epoch, leader.id):
            self.driver.write_isr(f"{name.topic}-{name.partition}", isr)
            leader.states[name] = replace(sent, isr=isr, partition_epoch=state.version + 1)

    def followers(self, leader: FakeBroker, name: TopicPartition) -> set[int]:
        """Return the brokers that fetch from a leader and may join its ISR."""
        return {broker.id for broker in self.driver.brokers.values() if broker.follows(name, leader)}

    def choose_name(self, *, again: bool) -> str:
        """Choose a name for a topic: that of a deleted one, if requested and there is one, or a new one."""
        used = {*self.driver.written.topics, *self.driver.cluster.topics}
        free = [name for number in range(1, self.topics + 1) if (name := f"t{number}") not in used]
        if again and free:
            self.driver.begin_again(free[-1])
            self.wanted = {name: end for name, end in self.wanted.items() if name.topic != free[-1]}
            return free[-1]
        self.topics += 1
        return f"t{self.topics}"

    def choose_topic(self, choice: int) -> str | None:
        """Choose a known topic."""
        names = sorted(self.driver.cluster.topics)
        return names[choice % len(names)] if names else None

    def choose_partition(self, choice: int) -> TopicPartition | None:
        """Choose a known partition."""
        rows = self.driver.cluster.columns.used().tolist()
        names = sorted(map(self.driver.cluster.name_of, rows))
        return names[choice % len(names)] if names else None

    def choose_moving(self, choice: int) -> TopicPartition | None:
        """Choose a moving partition."""
        cluster = self.driver.cluster
        names = sorted(cluster.name_of(row) for row, move in cluster.moves.items() if move.adding or move.removing)
        return names[choice % len(names)] if names else None

    def live_ones(self, broker_ids: list[int]) -> list[int]:
        """Map any brokers to live ones, if there are any."""
        live = sorted(self.driver.cluster.may_lead())
        return list(dict.fromkeys(live[broker_id % len(live)] for broker_id in broker_ids)) if live else broker_ids

    def choose_led(self, choice: int) -> tuple[FakeBroker, TopicPartition] | None:
        """Choose a broker and a partition of which it acts as leader."""
        led = self.led()
        return led[choice % len(led)] if led else None

    def led(self) -> list[tuple[FakeBroker, TopicPartition]]:
        """Return brokers with the partitions of which they act as leaders."""
        return [
            (broker, name)
            for broker in self.driver.brokers.values()
            for name in sorted(broker.states)
            if broker.leads(name)
        ]
