"""State machine of a cluster in KRaft mode: any order of failures, restarts, moves and elections keeps the invariants.

Checked are C1 to C4, C7 to C9, C13, C15 to C17, C19, C20, and that no clean election loses an acknowledged record.
"""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller_core.model import NO_EPOCH, NO_LEADER, TopicPartition, events, quorum_events
from kafka_wire import ErrorCode, Failure
from tests.controller_core.quorum_mode.checked import CheckedDriver
from tests.effort import EFFORT, EXHAUSTIVE

MAX_BROKERS = 5
BROKERS = st.integers(1, MAX_BROKERS)
CHOICES = st.integers(0, 1_000)
TWO_DIRECTORIES = (4, 5)
"""Brokers with two log directories; the others have one."""
MAX_ROUNDS = 60
"""Rounds of heartbeats and growing ISRs after which everything must have converged."""


class Machine(RuleBasedStateMachine):
    """One cluster, and the actions of brokers and callers."""

    elr = True
    version = 30
    """metadata.version."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = CheckedDriver(elr=self.elr, version=self.version)
        self.driver.start(1, 2, 3)
        self.topics = 0

    def name(self, choice: int) -> str | None:
        """Choose a partition."""
        names = self.driver.names()
        return text_of(names[choice % len(names)]) if names else None

    def is_in_service(self, broker: int) -> bool:
        """Whether a broker's process runs and is the registered one."""
        process = self.driver.processes.get(broker)
        known = self.driver.cluster.brokers.get(broker)
        return process is not None and process.is_up and known is not None and known.epoch == process.epoch

    # Brokers.

    @rule(broker=BROKERS)
    def restart(self, broker: int) -> None:
        """A process starts, after the one before was killed or shut down, and tries to come into service."""
        before = self.driver.processes.get(broker)
        if before is not None and before.is_up and before.epoch == NO_EPOCH:
            return
        if before is not None and before.is_up:
            self.driver.kill(broker)
        if before is None or before.clean_epoch < 0:
            self.driver.note_losses(broker)
        self.driver.launch(broker, (broker, 10 * broker) if broker in TWO_DIRECTORIES else ())
        self.driver.register(broker)
        if self.is_in_service(broker):
            self.driver.heartbeat(broker)

    @rule(broker=BROKERS)
    def register_again(self, broker: int) -> None:
        """A process that was refused tries again; one that is registered already changes nothing of its state."""
        process = self.driver.processes.get(broker)
        if process is not None and process.is_up:
            self.driver.register(broker)

    @rule(broker=BROKERS)
    def kill(self, broker: int) -> None:
        """A process dies."""
        if self.is_in_service(broker):
            self.driver.kill(broker)

    @rule(broker=BROKERS)
    def disconnect(self, broker: int) -> None:
        """The connection with a broker's heartbeats ends."""
        if broker in self.driver.processes:
            self.driver.disconnect(broker)

    @rule()
    def expire(self) -> None:
        """A session passes."""
        self.driver.expire()

    @rule()
    def beat(self) -> None:
        """All processes send heartbeats."""
        self.driver.beat_all()

    @rule(broker=BROKERS)
    def shut_down(self, broker: int) -> None:
        """A process asks for its shutdown."""
        if self.is_in_service(broker):
            self.driver.shut_down(broker)

    @rule(broker=BROKERS)
    def unregister(self, broker: int) -> None:
        """A dead broker is unregistered."""
        if broker in self.driver.cluster.fenced and not self.is_in_service(broker):
            self.driver.submit(events.UnregisterBroker(broker))

    @rule(broker=BROKERS, choice=CHOICES)
    def assign_directory(self, broker: int, choice: int) -> None:
        """A broker moves a replica into another directory, which has failed or does not exist."""
        name = self.name(choice)
        if name is not None and self.is_in_service(broker) and choice % 4 == 0:
            self.driver.assign_directory(broker, name, 900 if choice % 8 == 0 else broker)

    @rule(broker=BROKERS)
    def fail_directory(self, broker: int) -> None:
        """A directory of a broker fails. A process without any other ends."""
        if self.is_in_service(broker):
            self.driver.fail_directory(broker, 10 * broker if broker in TWO_DIRECTORIES else broker)
            if broker not in TWO_DIRECTORIES:
                self.driver.kill(broker)

    # Callers.

    @rule(data=st.data(), minimum=st.integers(1, 3), unclean=st.booleans())
    def create(self, data: st.DataObject, minimum: int, unclean: bool) -> None:
        """A topic is created."""
        registered = sorted(self.driver.cluster.brokers)
        if self.topics >= 4 or not registered:
            return
        replicas = data.draw(st.lists(st.sampled_from(registered), min_size=1, max_size=3, unique=True))
        self.topics += 1
        configs = {
            "min.insync.replicas": str(minimum),
            **({"unclean.leader.election.enable": "true"} if unclean else {}),
        }
        self.driver.create(f"t{self.topics}", [replicas], configs=configs)

    @rule(choice=CHOICES, minimum=st.integers(1, 3))
    def configure(self, choice: int, minimum: int) -> None:
        """min.insync.replicas changes."""
        if (name := self.name(choice)) is not None:
            self.driver.configure(name.rpartition("-")[0], {"min.insync.replicas": str(minimum)})

    @rule(choice=CHOICES, replicas=st.lists(BROKERS, min_size=1, max_size=3, unique=True))
    def reassign(self, choice: int, replicas: list[int]) -> None:
        """A partition moves."""
        if (name := self.name(choice)) is not None:
            self.driver.reassign({name: replicas})

    @rule(choice=CHOICES)
    def cancel(self, choice: int) -> None:
        """A move is cancelled."""
        if (name := self.name(choice)) is not None:
            self.driver.reassign({name: None})

    @rule(unclean=st.booleans())
    def elect(self, unclean: bool) -> None:
        """Leaders of all partitions are elected."""
        self.driver.unclean_asked = unclean
        self.driver.submit(events.ElectLeaders(None, unclean=unclean))
        self.driver.unclean_asked = False

    @rule()
    def balance(self) -> None:
        """The periodic checks of leaders run (C14 is in `test_leader_balance` of the shared decisions)."""
        self.driver.submit(events.BalanceLeaders(0))
        self.driver.submit(quorum_events.ElectUncleanLeaders(1_000))

    @rule(broker=BROKERS)
    def allocate(self, broker: int) -> None:
        """A broker asks for producer ids."""
        if self.is_in_service(broker):
            self.driver.submit(events.AllocateProducerIds(broker, self.driver.processes[broker].epoch))

    @rule(choice=CHOICES)
    def delete(self, choice: int) -> None:
        """A topic is deleted."""
        name = self.name(choice)
        if name is not None and choice % 10 == 0:
            self.driver.submit(events.DeleteTopics((name.rpartition("-")[0],)))

    # Leaders.

    @rule(choice=CHOICES, kept=st.sets(BROKERS))
    def change_isr(self, choice: int, kept: set[int]) -> None:
        """A leader drops some members and adds followers that have caught up."""
        if (name := self.name(choice)) is not None:
            self.request_isr(name, kept)

    def request_isr(self, name: str, kept: set[int]) -> Any:
        """Let a leader request an ISR from those of its replicas that are kept and in service."""
        leader = self.driver.leader(name)
        if leader == NO_LEADER or not self.is_in_service(leader):
            return None
        row = self.driver.row(name)
        partition = self.driver.cluster.name_of(row)
        able = [broker for broker in self.driver.cluster.columns.replicas_of(row) if self.is_in_service(broker)]
        isr = [leader, *(broker for broker in able if broker != leader and broker in kept)]
        end = self.driver.logs.get((leader, partition), 0)
        self.driver.logs |= {(member, partition): end for member in isr}
        return self.driver.alter_isr(name, isr)

    @rule(choice=CHOICES)
    def request_with_a_stale_epoch(self, choice: int) -> None:
        """C13: a request of an incarnation that is not registered is refused."""
        if (name := self.name(choice)) is not None and (leader := self.driver.leader(name)) != NO_LEADER:
            answer = self.driver.alter_isr(name, [leader], broker_epoch=10_000_000)
            assert isinstance(answer, Failure)
            assert answer.code is ErrorCode.STALE_BROKER_EPOCH

    @rule()
    def produce(self) -> None:
        """Records are produced."""
        self.driver.produce()

    @precondition(lambda self: self.driver.cluster is not None)
    @invariant()
    def invariants_hold(self) -> None:
        """The checks between events; those of each change are in the driver."""
        self.driver.check_idle()

    def teardown(self) -> None:
        """All brokers are back, and leaders add their followers: every partition is whole, and every move at its end."""
        for _ in range(2):
            self.driver.expire()
        for broker in range(1, MAX_BROKERS + 1):
            if not self.is_in_service(broker) or broker in self.driver.cluster.shutting_down:
                self.restart(broker)
        # Below metadata.version 3.7-IV2 no directories prove that the process before has ended: its session has to expire.
        self.driver.expire()
        for broker in range(1, MAX_BROKERS + 1):
            if not self.is_in_service(broker):
                self.register_again(broker)
        for _ in range(MAX_ROUNDS):
            self.driver.beat_all()
            for name in self.driver.names():
                self.request_isr(text_of(name), set(range(1, MAX_BROKERS + 1)))
        self.elect(unclean=True)
        for _ in range(2):
            for name in self.driver.names():
                self.request_isr(text_of(name), set(range(1, MAX_BROKERS + 1)))
        self.driver.check_standby()
        columns = self.driver.cluster.columns
        for name in self.driver.names():
            row = self.driver.row(text_of(name))
            offline = self.driver.cluster.offline_at(row)
            if not offline:
                assert set(columns.isr_of(row)) == set(columns.replicas_of(row)), f"{name} is not whole"
                assert row not in self.driver.cluster.moves, f"the move of {name} has not ended"


class MachineWithoutElr(Machine):
    """The same without eligible leader replicas."""

    elr = False


def text_of(name: TopicPartition) -> str:
    """Return a partition's name as the driver reads it."""
    return f"{name.topic}-{name.partition}"


SETTINGS = settings(
    max_examples=1_000 if EXHAUSTIVE else max(5, int(40 * EFFORT)),
    stateful_step_count=40,
    deadline=None,
    derandomize=not EXHAUSTIVE,
)
Machine.TestCase.settings = SETTINGS
MachineWithoutElr.TestCase.settings = SETTINGS
TestCluster = pytest.mark.timeout(600)(Machine.TestCase)
TestClusterWithoutElr = pytest.mark.timeout(600)(MachineWithoutElr.TestCase)
