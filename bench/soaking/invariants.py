"""Invariants of snapshots: each violation is a text. Pure.

In every snapshot: no assignment, ISR or leader contains the controller, and no epoch or version decreases. When the cluster is quiet:
all replicas are in sync, moves have ended at their targets, deletions are done, acknowledged topics exist. The load checks that no
acknowledged record is lost.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from bench.soaking.snapshot import Partition, Replicas, Snapshot


class BrokenError(Exception):
    """A violated invariant; the text describes it."""


@dataclass(slots=True)
class Wanted:
    """Promises in the answers to requests. A request without an answer may have been carried out or not."""

    present: set[str] = field(default_factory=set)
    absent: set[str] = field(default_factory=set)
    replicas: dict[Partition, set[Replicas]] = field(default_factory=dict)
    """Where a partition may end."""


def always(now: Snapshot, before: Snapshot, controller_id: int) -> Iterator[str]:
    """Yield violations of the invariants of every snapshot."""
    for name, topic in now.topics.items():
        for partition, replicas in topic.replicas.items():
            if controller_id in replicas:
                yield f"the assignment of {name}-{partition} names the controller: {replicas}"
    for (name, partition), state in now.states.items():
        if controller_id in (state.leader, *state.isr):
            yield f"the state of {name}-{partition} names the controller: {state}"
    if now.controller_epoch < before.controller_epoch:
        yield f"the controller epoch went back from {before.controller_epoch} to {now.controller_epoch}"
    yield from _went_back(now, before)


def _went_back(now: Snapshot, before: Snapshot) -> Iterator[str]:
    for key, state in now.states.items():
        old, name = before.states.get(key), key[0]
        if old is None or name not in before.topics or now.topics[name].born != before.topics[name].born:
            continue
        what = f"{name}-{key[1]}: {old} became {state}"
        if state.leader_epoch < old.leader_epoch or state.version < old.version:
            yield f"an epoch went back, {what}"
        if state.leader != old.leader and state.leader_epoch == old.leader_epoch:
            yield f"the leader changed under its epoch, {what}"
        if state.version == old.version and state != old:
            yield f"a state changed under its version, {what}"


def once_quiet(now: Snapshot, wanted: Wanted, controller_id: int) -> Iterator[str]:
    """Yield differences from the required final state."""
    if now.controller != controller_id:
        yield f"the controller is {now.controller}, not ours"
    if now.deletions:
        yield f"deletions are not done: {_some(now.deletions)}"
    if left := wanted.absent & now.topics.keys():
        yield f"deleted topics are there: {_some(left)}"
    if missing := wanted.present - now.topics.keys():
        yield f"topics that were acknowledged are not there: {_some(missing)}"
    if moving := [f"{name}-{sorted(topic.moving)}" for name, topic in now.topics.items() if topic.moving]:
        yield f"moves are not finished: {_some(moving)}"
    yield from _not_in_sync(now)
    yield from _not_at_target(now, wanted.replicas)


def _not_in_sync(now: Snapshot) -> Iterator[str]:
    lagging = [
        f"{name}-{partition} {replicas} {now.states.get((name, partition))}"
        for name, topic in now.topics.items()
        for partition, replicas in topic.replicas.items()
        if not _in_sync(now, (name, partition), replicas)
    ]
    if lagging:
        yield f"{len(lagging)} partitions are not in sync: {_some(lagging)}"


def _in_sync(now: Snapshot, partition: Partition, replicas: Replicas) -> bool:
    state = now.states.get(partition)
    return state is not None and state.leader in replicas and set(state.isr) == set(replicas)


def _not_at_target(now: Snapshot, targets: Mapping[Partition, set[Replicas]]) -> Iterator[str]:
    for (name, partition), allowed in targets.items():
        topic = now.topics.get(name)
        if topic is not None and topic.replicas.get(partition) not in allowed:
            yield f"{name}-{partition} ended on {topic.replicas.get(partition)}, not on one of {sorted(allowed)}"


def _some(names: Collection[str]) -> str:
    shown = sorted(names)[:5]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")
