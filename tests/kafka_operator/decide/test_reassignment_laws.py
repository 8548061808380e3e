"""Laws of Reassignments, for any plan, limits and moments at which people change their minds or the process dies.

A model cluster carries out what is decided: moves end by a drawn number, throttles are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_operator.decide.kafka.observed import KafkaPartition, KafkaTopic, Move
from kafka_operator.decide.plans.plan_packing import Recorded
from kafka_operator.decide.reassignments.guard import Reading
from kafka_operator.decide.reassignments.move_progress import Measured
from kafka_operator.decide.reassignments.partition_progress import (
    CurrentPartitions,
    PartitionProgress,
    busy_brokers,
    find_progress,
)
from kafka_operator.decide.reassignments.plan_completion import cancel_moves
from kafka_operator.decide.reassignments.reassignment_steps import AlterThrottle, ReadThrottle, ThrottleInForce
from kafka_operator.decide.reassignments.reassignment_view import ReassignmentView
from kafka_operator.decide.reassignments.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    RATES,
    ObservedThrottle,
)
from kafka_operator.decide.reassignments.waves import hand_over_up_to
from kafka_operator.decide.steps import AlterConfig, Claim, Submit
from kafka_operator.resources.canary import Canary
from kafka_operator.resources.move_guard import Guard, GuardAction
from kafka_operator.resources.reassignment import (
    Assignment,
    Partition,
    Reassignment,
    ReassignmentStatus,
    State,
)
from kafka_operator.resources.reassignment_terms import Action, Approval, Concurrency, Window
from kafka_operator.resources.throttle import ThrottleSpec, entries_of
from reconciler.decide.steps import Done, Release, Retry, Wait, WriteStatus
from reconciler.names import FINALIZER
from tests.kafka_operator.makers import NOW, decide, reassignment

BROKERS = tuple(range(1, 7))
MAX_STEPS = 600
ORDER = {action: number for number, action in enumerate(Action)}
REPLICAS = st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3, unique=True).map(tuple)


@dataclass
class Cluster:
    """One topic, its moves, and every throttle that is set."""

    replicas: list[tuple[int, ...]]
    concurrency: Concurrency
    moves: dict[Partition, Move] = field(default_factory=dict)
    brokers: dict[int, dict[str, str]] = field(default_factory=dict)
    topic: dict[str, str] = field(default_factory=dict)
    throttled: bool = False
    before: tuple[dict[int, dict[str, str]], dict[str, str]] = field(default_factory=lambda: ({}, {}))
    """Throttles that others had set."""
    check: Callable[[set[int]], bool] = lambda _: True
    """Whether these partitions may be submitted now."""

    def shown(self) -> KafkaTopic:
        """The topic as Metadata shows it: the union while a partition moves."""
        partitions = []
        for index, replicas in enumerate(self.replicas):
            move = self.moves.get(Partition("t", index))
            partitions.append(KafkaPartition(index, replicas[0], replicas if move is None else move.replicas, replicas))
        return KafkaTopic("t", None, tuple(partitions))

    def submit(self, step: Submit) -> None:
        """Begin and cancel, within the limits, and under the throttle where there is to be one."""
        assert self.check({partition.index for partition in step.targets})
        for partition, target in step.targets.items():
            base = self.replicas[partition.index]
            if target is None:
                del self.moves[partition]
            elif set(target) == set(base):
                self.replicas[partition.index] = target
            else:
                adding = tuple(broker for broker in target if broker not in base)
                removing = tuple(broker for broker in base if broker not in target)
                self.moves[partition] = Move((*target, *removing), adding, removing)
                if adding and self.throttled:
                    self.check_throttle(partition, adding)
        copying = [(name, move) for name, move in self.moves.items() if move.adding]
        assert len(copying) <= self.concurrency.cluster
        for broker in BROKERS:
            busy = [name for name, move in copying if broker in {*move.adding, self.replicas[name.index][0]}]
            assert len(busy) <= self.concurrency.per_broker, (broker, busy)

    def check_throttle(self, partition: Partition, adding: tuple[int, ...]) -> None:
        """What moves is throttled on every broker that sends or receives."""
        for broker in (*adding, *self.replicas[partition.index]):
            assert self.brokers[broker].keys() >= set(RATES)
        followers, leaders = entries_of(self.topic[FOLLOWER_REPLICAS]), entries_of(self.topic[LEADER_REPLICAS])
        assert all(f"{partition.index}:{broker}" in followers for broker in adding)
        assert all(f"{partition.index}:{broker}" in leaders for broker in self.replicas[partition.index])

    def arrive(self, number: int) -> None:
        """Have one of the moves end."""
        if self.moves:
            name = sorted(self.moves)[number % len(self.moves)]
            self.replicas[name.index] = self.moves.pop(name).target

    def alter(self, step: AlterThrottle) -> None:
        """Set and reset throttles."""
        for change in step.brokers:
            held = self.brokers.setdefault(change.broker_id, {})
            for name, value in change.changes:
                held.pop(name, None)
                if value is not None:
                    held[name] = value
        for topic in step.topics:
            assert isinstance(topic, AlterConfig)
            self.topic.update(topic.set)
            for name in topic.reset:
                self.topic.pop(name, None)

    def settings(self) -> tuple[dict[int, dict[str, str]], dict[str, str]]:
        """Every throttle that is set."""
        return {broker: dict(held) for broker, held in self.brokers.items() if held}, dict(self.topic)


@st.composite
def stories(draw: st.DrawFn) -> tuple[Reassignment, Cluster]:
    """A plan for some partitions, limits, perhaps a throttle, and what others had set before."""
    base = draw(st.lists(REPLICAS, min_size=1, max_size=6))
    chosen = draw(st.sets(st.integers(0, len(base) - 1), min_size=1))
    plan = [{"topic": "t", "partition": index, "replicas": list(draw(REPLICAS))} for index in sorted(chosen)]
    limits = Concurrency(draw(st.integers(1, 3)), draw(st.integers(1, 4)))
    cluster = Cluster(base, limits)
    if draw(st.booleans()):
        cluster.brokers = {draw(st.sampled_from(BROKERS)): {draw(st.sampled_from((LEADER_RATE, FOLLOWER_RATE))): "7"}}
        cluster.topic = {
            draw(st.sampled_from((LEADER_REPLICAS, FOLLOWER_REPLICAS))): draw(st.sampled_from(("*", "9:1")))
        }
    cluster.before = cluster.settings()
    cluster.throttled = draw(st.booleans()) and "*" not in cluster.topic.values()
    item = reassignment(plan=plan)
    spec = ThrottleSpec(1000, 1000) if cluster.throttled else None
    return replace(item, throttle=spec, concurrency=limits), cluster


@dataclass
class Process:
    """What a process remembers; a crash makes a new one."""

    observed: ObservedThrottle = field(default_factory=ObservedThrottle)
    in_force: Any = None
    altered: bool = False
    submitted: bool = False


def read_throttle(step: ReadThrottle, cluster: Cluster, before: ObservedThrottle) -> ObservedThrottle:
    """See throttles."""
    brokers = {broker: dict(cluster.brokers.get(broker, {})) for broker in step.broker_ids}
    return ObservedThrottle(
        {**before.brokers, **brokers}, {**before.topics, **{name: dict(cluster.topic) for name in step.topics}}
    )


def carry_on(
    item: Reassignment,
    cluster: Cluster,
    numbers: list[int],
    crashes: set[int],
    minds: dict[int, Action],
    closed: Collection[int] = (),
    over: Collection[int] = (),
) -> Reassignment:
    """Decide and carry out until nothing is left to do; processes die and people change their minds on the way.

    In the steps `closed` the time is outside the window NOON, in the steps `over` a limit of the guard is exceeded.
    """
    process = Process()
    for number in range(MAX_STEPS):
        if number in crashes:
            process = Process()
        if number in minds and ORDER[minds[number]] > ORDER[item.action] and item.status.state is not State.ROLLED_BACK:
            item = replace(item, action=minds[number])
        view = ReassignmentView(
            now=NOW + timedelta(hours=12 if number in closed else 0, seconds=STEP_S * number),
            guard=(Reading("offline partitions", int(number in over), 0),),
            waited_s=100,
            broker_ids=BROKERS,
            topics={"t": cluster.shown()},
            moves=dict(cluster.moves),
            throttle=process.observed,
            in_force=process.in_force,
            altered=process.altered,
            submitted=process.submitted,
            measured=Measured(0, growth={}),
        )
        step = decide(item, view)
        if isinstance(step, Done | Release):
            return item
        if number in closed:
            check_outside(step, cluster)
        if number in over and isinstance(step, Submit) and not item.status.rollback:
            assert item.guard is None or set(step.targets.values()) == {None}
        item = carry_out(step, item, cluster, process)
        if isinstance(step, Wait | Retry):
            process = Process(in_force=process.in_force)
            cluster.arrive(numbers[number % len(numbers)])
    raise AssertionError(f"no end after {MAX_STEPS} steps: {item.status}")


NOON = Window("0 12 * * *", "1h")
STEP_S = 4
"""Time of a step: two of them are less, and three more than the interval of the guard's readings."""


def check_outside(step: object, cluster: Cluster) -> None:
    """Outside its windows a plan starts no move, and where it waits and nothing moves, no throttle is set."""
    if isinstance(step, Submit):
        assert set(step.targets.values()) == {None}
    if isinstance(step, Wait) and not cluster.moves:
        assert cluster.settings() == cluster.before


def carry_out(step: object, item: Reassignment, cluster: Cluster, process: Process) -> Reassignment:
    """Carry out a step."""
    match step:
        case Claim():
            return replace(item, metadata=replace(item.metadata, finalizers=(FINALIZER,)))
        case WriteStatus():
            assert isinstance(step.status, ReassignmentStatus)
            return replace(item, status=step.status)
        case ReadThrottle():
            process.observed = read_throttle(step, cluster, process.observed)
        case AlterThrottle():
            assert item.status.throttle is not None
            cluster.alter(step)
            process.observed, process.altered, process.in_force = ObservedThrottle(), True, None
        case ThrottleInForce():
            process.in_force = step.seen_as
        case Submit():
            cluster.submit(step)
            process.submitted = True
    return item


NUMBERS = st.lists(st.integers(0, 100), min_size=1, max_size=20)
CRASHES = st.sets(st.integers(0, 60), max_size=6)
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 12)), min_size=1, max_size=6).map(
    lambda spans: {number for first, length in spans for number in range(first, first + length)}
)
"""Steps during which something lasts."""


def planned(item: Reassignment, base: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """The replicas of all partitions once the plan has arrived."""
    target = {entry.partition.index: entry.replicas for entry in item.plan}
    return [target.get(index, replicas) for index, replicas in enumerate(base)]


@pytest.mark.slow
@pytest.mark.shows("F16")
@settings(max_examples=150, deadline=None)
@given(stories(), NUMBERS, CRASHES)
def test_every_plan_arrives_within_its_limits_and_leaves_no_throttle(
    story: tuple[Reassignment, Cluster], numbers: list[int], crashes: set[int]
) -> None:
    """Exactly the plan; never more moves at once than allowed; every copy throttled; in the end only what was there before."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)

    ended = carry_on(item, cluster, numbers, crashes, {})

    assert planned(item, base) == cluster.replicas
    assert (ended.status.state, ended.status.throttle) == (State.COMPLETED, None)
    assert before == cluster.settings()


@pytest.mark.slow
@pytest.mark.shows("F18")
@settings(max_examples=200, deadline=None)
@given(stories(), NUMBERS, CRASHES, st.integers(0, 40), st.one_of(st.none(), st.integers(0, 40)))
def test_base_and_plan_and_rollback_is_base(
    story: tuple[Reassignment, Cluster], numbers: list[int], crashes: set[int], when: int, cancelled: int | None
) -> None:
    """At any time, while it runs, after its end or after a cancel: every partition is back, and no throttle is left."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)
    minds = {when: Action.ROLLBACK} | ({} if cancelled is None or cancelled >= when else {cancelled: Action.CANCEL})

    ended = carry_on(item, cluster, numbers, crashes, minds)
    if ended.action is not Action.ROLLBACK:
        ended = carry_on(replace(ended, action=Action.ROLLBACK), cluster, numbers, crashes, {})

    assert base == cluster.replicas
    assert ended.status.state is State.ROLLED_BACK
    assert ({}, before) == (cluster.moves, cluster.settings())


@pytest.mark.slow
@pytest.mark.shows("E16")
@settings(max_examples=150, deadline=None)
@given(stories(), NUMBERS, CRASHES, SPANS)
def test_outside_its_windows_nothing_starts_and_no_throttle_stays_and_it_arrives_in_them(
    story: tuple[Reassignment, Cluster], numbers: list[int], crashes: set[int], closed: set[int]
) -> None:
    """Whenever the windows close and open, and whenever the process dies: exactly the plan, and only what was there before."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)

    ended = carry_on(replace(item, windows=(NOON,)), cluster, numbers, crashes, {}, closed)

    assert planned(item, base) == cluster.replicas
    assert (ended.status.state, ended.status.throttle) == (State.COMPLETED, None)
    assert before == cluster.settings()


@pytest.mark.slow
@pytest.mark.shows("E17")
@settings(max_examples=150, deadline=None)
@given(stories(), NUMBERS, CRASHES, SPANS, st.sampled_from(GuardAction))
def test_a_guarded_plan_arrives_or_is_rolled_back_and_no_throttle_is_left(
    story: tuple[Reassignment, Cluster],
    numbers: list[int],
    crashes: set[int],
    over: set[int],
    action: GuardAction,
) -> None:
    """While a limit is exceeded no move starts; in the end every partition has the plan's replicas, or all have the previous ones."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)
    guard = Guard(action, resume_after_s=20, max_offline=0)

    ended = carry_on(replace(item, guard=guard), cluster, numbers, crashes, {}, over=over)

    expected = {State.COMPLETED: planned(item, base)}
    if action is GuardAction.ROLLBACK:
        expected[State.ROLLED_BACK] = base
    assert ended.status.state is not None
    assert cluster.replicas == expected[ended.status.state]
    assert ({}, before) == (cluster.moves, cluster.settings())


@pytest.mark.slow
@pytest.mark.shows("E17")
@settings(max_examples=100, deadline=None)
@given(stories(), NUMBERS, CRASHES, st.integers(1, 6), st.integers(0, 60))
def test_a_plan_with_a_canary_submits_no_more_than_it_before_it_has_soaked_and_arrives(
    story: tuple[Reassignment, Cluster], numbers: list[int], crashes: set[int], partitions: int, soak_s: int
) -> None:
    """Whenever the process dies: the partitions after the canary move only after all of it is there, and leave no throttle."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)
    target = planned(item, base)
    first = [entry.partition.index for entry in item.plan[:partitions]]
    cluster.check = lambda submitted: (
        submitted <= set(first) or all(cluster.replicas[index] == target[index] for index in first)
    )

    canary = Canary(partitions, soak_s, Approval.AUTOMATIC)
    ended = carry_on(replace(item, canary=canary), cluster, numbers, crashes, {})

    assert target == cluster.replicas
    assert (ended.status.state, cluster.settings()) == (State.COMPLETED, before)


@settings(max_examples=100, deadline=None)
@given(stories(), NUMBERS, CRASHES, st.integers(0, 40))
def test_a_cancelled_plan_leaves_each_partition_at_one_of_its_ends(
    story: tuple[Reassignment, Cluster], numbers: list[int], crashes: set[int], when: int
) -> None:
    """What has arrived stays, all else is as before; nothing moves and no throttle is left."""
    item, cluster = story
    before, base = cluster.settings(), list(cluster.replicas)

    ended = carry_on(item, cluster, numbers, crashes, {when: Action.CANCEL})

    target = planned(item, base)
    for index, replicas in enumerate(cluster.replicas):
        assert replicas in {base[index], target[index]}
    assert ended.status.state in {State.COMPLETED, State.CANCELLED}
    assert ({}, before) == (cluster.moves, cluster.settings())


def test_a_move_that_copies_nothing_waits_for_no_group() -> None:
    """Another order, or fewer replicas, keep no broker busy; moves from outside count."""
    plan = tuple(Assignment(Partition("t", index), (2, 1)) for index in range(50))
    base = tuple(Assignment(item.partition, (1, 2)) for item in plan)
    topic = KafkaTopic("t", None, tuple(KafkaPartition(index, 1, (1, 2)) for index in range(50)))
    partitions: PartitionProgress = find_progress(
        Recorded(plan, base), ReassignmentStatus(), CurrentPartitions({"t": topic})
    )
    assert hand_over_up_to(partitions, plan, 0, {}, Concurrency(1, 1)) == 50

    copied = tuple(replace(item, replicas=(1, 3)) for item in plan)
    partitions = find_progress(Recorded(copied, base), ReassignmentStatus(), CurrentPartitions({"t": topic}))
    foreign = {Partition("u", 0): Move((5, 6), (5,), (6,))}
    assert (
        hand_over_up_to(partitions, copied, 0, {}, Concurrency(1, 5)),
        hand_over_up_to(partitions, copied, 0, foreign, Concurrency(9, 1)),
    ) == (1, 0)
    assert busy_brokers((1, 3), topic.partitions[0]) == frozenset({1, 3})
    assert cancel_moves(plan[:1], CurrentPartitions()) == Submit({plan[0].partition: None})
