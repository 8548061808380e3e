"""Laws of Reassignments that a Cluster makes by itself, for any coming and going of brokers, people and processes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_operator.decide.clusters.rebalance import RebalanceView, decide_rebalance
from kafka_operator.decide.clusters.rebalance_need import LOST_AFTER_S, CurrentState, Measure, ReadHolders, Spread
from kafka_operator.decide.steps import CancelReassignment, CreateReassignment
from kafka_operator.resources.auto_rebalance import AutoRebalance, OnImbalance
from kafka_operator.resources.cluster import Cluster, PodGroup
from kafka_operator.resources.reassignment import Reassignment, State
from kafka_operator.resources.reassignment_records import Progress
from reconciler.decide.steps import Done, Wait, WriteStatus
from tests.kafka_operator.makers import NOW, cluster, reassignment

BROKERS = range(6)
MAX_STEPS = 60
BEGUN = (State.PENDING, State.RUNNING)


@dataclass
class Model:
    """A Cluster, the Reassignments that there are, who is alive and who holds replicas; the operator knows `known` of it."""

    cluster: Cluster
    alive: set[int] = field(default_factory=lambda: {0, 1, 2})
    holders: set[int] = field(default_factory=lambda: {0, 1, 2})
    made: dict[str, Reassignment] = field(default_factory=dict)
    known: dict[str, Reassignment] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    now_s: float = 0.0
    settled: bool = True
    polled: bool = False
    measured: Spread | None = None
    version: int = 0
    given_up: set[int] = field(default_factory=set)
    """Brokers whose removal a person stopped, or that moved nothing, and that have been wanted to go ever since."""

    def current(self) -> CurrentState:
        """What the operator sees; everybody who is away has been so for long."""
        return CurrentState(
            alive=frozenset(self.alive),
            settled=self.settled,
            offline_s=dict.fromkeys(set(BROKERS) - self.alive, LOST_AFTER_S),
            holders=frozenset(self.holders) if self.polled else None,
            spread=self.measured,
            can_measure=True,
        )

    def open(self) -> list[Reassignment]:
        """Those that have not ended."""
        return [item for item in self.made.values() if item.status.state is None or not item.status.state.ended]

    def turn(self, *, dies: bool = False) -> bool:
        """Decide and carry out one step, unless the process dies before it learns of it; return whether there was one."""
        self.now_s += 1
        mine = self.cluster.status.auto_rebalance
        current = None if mine is None or mine.open is None else mine.open.name
        others = tuple(item for name, item in self.known.items() if name != current)
        now = NOW + timedelta(seconds=self.now_s)
        step = decide_rebalance(self.cluster, RebalanceView(now, self.current(), self.known, others))
        if isinstance(step, Wait | Done):
            return False
        if isinstance(step, ReadHolders):
            self.polled = True
        elif isinstance(step, Measure):
            self.measured = Spread(0, movable=False)
        elif isinstance(step, WriteStatus):
            self.cluster = replace(self.cluster, status=step.status)
            self.polled, self.measured = False, None
        elif isinstance(step, CreateReassignment):
            self._create(step)
        else:
            self._cancel(step)
        if not dies:
            self.learn()
        return True

    def learn(self) -> None:
        """The watch brings everything."""
        self.known = dict(self.made)

    def change(self, item: Reassignment, **status: Any) -> None:
        """Another client, or the Reassignment's own reconciler, changes its state."""
        self.version += 1
        metadata = replace(item.metadata, resource_version=str(self.version))
        self.made[item.key.name] = replace(item, metadata=metadata, status=replace(item.status, **status))

    def end(self, item: Reassignment, state: State, *, moved: int = 1) -> None:
        """Bring it to an end; what is completed and moved something has emptied what it was to empty."""
        if state is State.COMPLETED and moved and item.goal is not None:
            self.holders -= set(item.goal.remove_brokers)
            self.holders |= set(item.goal.add_brokers) & self.alive
        self.polled = False
        self.change(item, state=state, progress=Progress(moved, moved))
        if state is State.CANCELLED or not moved:
            self.give_up(item)

    def give_up(self, item: Reassignment) -> None:
        """Note that what it was to empty is not to be emptied, unless it was withdrawn for the sake of another one."""
        record = self.cluster.status.auto_rebalance
        if record is None or record.open is None or not record.open.withdrawn:
            self.given_up |= set(() if item.goal is None else item.goal.remove_brokers)

    def leaving(self) -> set[int]:
        """The brokers that are to go."""
        group, standing = self.cluster.brokers, self.cluster.status.broker_replicas
        assert group is not None
        count = group.replicas or 0
        offline = set(BROKERS) - self.alive - set(range(count))
        return (set(range(count, standing or 0)) | offline) & self.holders

    def _create(self, step: CreateReassignment) -> None:
        if step.name in self.made:  # 409: the watch has it, or will
            return
        assert self.open() == [], "never two open ones"
        assert step.name not in self.names, "a name is used once"
        removed = set(step.spec["goal"].get("removeBrokers", ()))
        assert not removed & self.given_up, "a removal that was stopped is not tried again"
        self.names.append(step.name)
        self.version += 1
        item = reassignment(goal=dict(step.spec["goal"]), uid=step.name)
        key = replace(item.metadata.key, name=step.name)
        metadata = replace(item.metadata, key=key, owner=self.cluster.key, resource_version=str(self.version))
        self.made[step.name] = replace(item, metadata=metadata)

    def _cancel(self, step: CancelReassignment) -> None:
        item = self.made.get(step.name)
        if item is None or item.metadata.resource_version != step.resource_version:
            return
        assert not item.status.begun, "what moves is left alone"
        self.end(item, State.CANCELLED, moved=0)


HAPPENINGS = st.one_of(
    st.tuples(st.just("up"), st.sampled_from(BROKERS)),
    st.tuples(st.just("down"), st.sampled_from(BROKERS)),
    st.tuples(st.just("scale"), st.integers(1, 6)),
    st.tuples(st.just("settled"), st.sampled_from([0, 1, 1])),
    st.tuples(st.just("approve"), st.just(0)),
    st.tuples(st.sampled_from(["propose", "complete", "complete empty", "cancel", "delete"]), st.just(0)),
)
TURNS = st.lists(st.sampled_from(["turn"] * 6 + ["die", "learn"]), min_size=1, max_size=10)
ACTIONS = st.tuples(HAPPENINGS, TURNS)
"""Something happens, and the operator does some steps."""

Actions = list[tuple[tuple[str, int], list[str]]]


def live(model: Model, actions: Actions) -> None:
    """Have all of it happen."""
    for (name, value), turns in actions:
        act(model, name, value)
        for turn in turns:
            act(model, turn, 0)


def act(model: Model, name: str, value: int) -> None:
    """Something happens, or the operator does one step."""
    item = next(iter(model.open()), None)
    model.given_up &= model.leaving()
    if name == "up":
        model.alive.add(value)
    elif name == "down":
        model.alive.discard(value)
    elif name == "scale":
        model.cluster = declared(model.cluster, value)
    elif name == "settled":
        model.settled = bool(value)
    elif name in {"turn", "die"}:
        model.turn(dies=name == "die")
    elif name == "learn":
        model.learn()
    elif item is not None:
        _move_on(model, item, name)


def _move_on(model: Model, item: Reassignment, name: str) -> None:
    if name == "propose" and item.status.state is None:
        model.change(item, state=State.PROPOSED)
    elif name == "approve":
        model.change(item, state=State.RUNNING, plan=(), base=())
    elif name == "delete":
        record = model.cluster.status.auto_rebalance
        if record is None or record.open is None:  # gone before it was seen: it is made once more, of the same name
            model.names.remove(item.key.name)
        else:
            model.give_up(item)
        del model.made[item.key.name]
    elif name != "propose":
        state = State.CANCELLED if name == "cancel" else State.COMPLETED
        model.end(item, state, moved=1 if name == "complete" else 0)


def declared(held: Cluster, replicas: int) -> Cluster:
    """The same Cluster with this number of pods declared; the operator maintains the largest number so far."""
    standing = max(held.status.broker_replicas or 0, replicas)
    return replace(
        held,
        brokers=PodGroup("main-broker", 0, replicas),
        status=replace(held.status, broker_replicas=standing),
    )


def auto(**fields: Any) -> Cluster:
    """A Cluster of three pods that makes Reassignments by itself."""
    spec = AutoRebalance(on_brokers_added=True, on_brokers_removed=True, on_imbalance=OnImbalance())
    return declared(replace(cluster(), auto_rebalance=replace(spec, **fields)), 3)


@pytest.mark.shows("F21")
@given(st.lists(ACTIONS, max_size=12))
def test_never_two_are_open_and_it_comes_to_rest_with_every_broker_accounted_for(
    actions: Actions,
) -> None:
    """O3: whatever happens in between, names are used once, what moves is left alone, and there is an end."""
    model = Model(auto())
    live(model, actions)

    model.settled = True
    for _ in range(MAX_STEPS):
        model.learn()
        for item in model.open():
            model.end(item, State.COMPLETED)
        model.learn()
        if not model.turn() and not model.open():
            break
    else:
        raise AssertionError(f"it does not come to rest: {model}")

    record, group = model.cluster.status.auto_rebalance, model.cluster.brokers
    assert record is not None
    assert group is not None
    leaving = set(range(group.replicas or 0, model.cluster.status.broker_replicas or 0))
    assert model.alive - leaving <= set(record.brokers)
    assert leaving & model.holders <= set(record.declined)
    assert record.open is None


@given(st.lists(ACTIONS, max_size=8))
def test_what_is_switched_off_makes_none(actions: Actions) -> None:
    """Off by default, each of the three by itself."""
    model = Model(auto(on_brokers_added=False, on_brokers_removed=False, on_imbalance=None))
    live(model, actions)

    assert model.names == []
