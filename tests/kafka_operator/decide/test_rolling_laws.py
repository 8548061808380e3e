"""Laws of replacing pods, whatever happens to them in the meantime: pods crash, start slowly, catch up late; forms and nodes change."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_operator.decide.clusters.cluster_pods import BUSY_POLL_S, DeletePod, PodsView, ScaleTo, decide_pods
from kafka_operator.decide.clusters.rolling import READY_WITHIN_S, AskKafka
from kafka_operator.decide.kafka.replica_health import PartitionReplicas, ReplicaHealth
from kafka_operator.resources.cluster import Cluster
from kafka_operator.resources.pods import Pod
from kafka_operator.resources.reassignment import Partition
from reconciler.decide.steps import WriteStatus
from tests.kafka_operator.cluster_pods import cluster_with_pods, pod, pod_set
from tests.kafka_operator.makers import NOW

POLLS = 40
SETTLING_POLLS = 400
"""Polls until pods that no longer change must be settled: a few for each pod, and the limit for a stuck one."""


@dataclass
class Layout:
    """Where partitions are, and how many of each must be in sync."""

    brokers: int
    replicas: dict[Partition, tuple[int, ...]]
    min_isr: int


@dataclass
class Site:
    """Pods, brokers and their StatefulSet's and kubelet's part, driven by a seeded random source."""

    layout: Layout
    rng: random.Random
    cluster: Cluster
    pods: dict[int, Pod]
    out_of_sync: set[tuple[Partition, int]] = field(default_factory=set)
    """Replicas that are not in their ISR."""
    revision: int = 1
    cordoned: set[str] = field(default_factory=set)
    now_s: float = 0.0
    made: int = 0

    def settle(self) -> None:
        """Carry out decisions until a poll brings no further one, and check the laws."""
        for _ in range(8):
            view = PodsView(
                now=NOW + timedelta(seconds=self.now_s),
                brokers=pod_set(*self.pods.values(), replicas=self.layout.brokers, update_revision=self.name()),
                leaving_nodes=dict.fromkeys(self.cordoned, "it is cordoned"),
            )
            step = decide_pods(self.cluster, view)
            if isinstance(step, AskKafka):
                step = decide_pods(self.cluster, replace(view, health=self.health()))
            if isinstance(step, WriteStatus):
                self.cluster = replace(self.cluster, status=step.status)
            elif isinstance(step, DeletePod):
                self.delete(step.pod)
                return
            else:
                assert not isinstance(step, ScaleTo)
                return

    def delete(self, gone: Pod) -> None:
        """Hold a deletion to the laws, and carry it out as kubelet and controlled shutdown do."""
        assert gone == self.pods[gone.node_id]
        assert [
            other for other in self.pods.values() if other.unavailable and other.node_id != gone.node_id and gone.ready
        ] == []
        if gone.ready:
            assert not self.out_of_sync, "one goes while a replica is behind"
        assert gone.revision != self.name() or gone.node in self.cordoned, "it was not due"
        self.pods[gone.node_id] = replace(gone, deleting=True, since=NOW + timedelta(seconds=self.now_s))
        self.drop(gone.node_id)
        for partition, replicas in self.layout.replicas.items():
            if gone.node_id in replicas and gone.ready:
                assert len(self.isr(partition)) >= self.layout.min_isr, f"{partition} is under min ISR by our act"

    def drop(self, broker_id: int) -> None:
        """Take a broker out of every ISR in which it is not alone."""
        for partition, replicas in self.layout.replicas.items():
            if broker_id in replicas and self.isr(partition) != (broker_id,):
                self.out_of_sync.add((partition, broker_id))

    def pass_time(self, *, calm: bool) -> None:
        """Let a moment pass; pods and replicas get on, and unless it is calm something may go wrong."""
        self.now_s += BUSY_POLL_S if not calm else READY_WITHIN_S / 20
        for node_id, current in list(self.pods.items()):
            if current.deleting and (calm or self.rng.random() < 0.5):
                self.made += 1
                node = current.node if current.node not in self.cordoned else f"new-{self.made}"
                self.pods[node_id] = pod(
                    node_id, self.name(), ready=False, uid=f"uid-{self.made}", node=node, since=self.moment()
                )
            elif not current.ready and not current.deleting and (calm or self.rng.random() < 0.5):
                self.pods[node_id] = replace(current, ready=True, since=self.moment())
        ready = {node_id for node_id, current in self.pods.items() if not current.unavailable}
        self.out_of_sync = {
            item for item in self.out_of_sync if item[1] not in ready or not (calm or self.rng.random() < 0.5)
        }
        if not calm:
            self.disturb()

    def disturb(self) -> None:
        """Have something happen that is not our doing."""
        event = self.rng.random()
        chosen = self.rng.choice(list(self.pods.values()))
        if event < 0.1 and chosen.ready and not chosen.deleting:
            self.pods[chosen.node_id] = replace(chosen, ready=False, since=self.moment())
            self.drop(chosen.node_id)
        elif event < 0.15:
            self.revision += 1
        elif event < 0.25:
            self.cordoned ^= {chosen.node}

    def isr(self, partition: Partition) -> tuple[int, ...]:
        """Return a partition's ISR."""
        return tuple(b for b in self.layout.replicas[partition] if (partition, b) not in self.out_of_sync)

    def health(self) -> ReplicaHealth:
        """Return what Kafka shows."""
        partitions = tuple(
            PartitionReplicas(item, replicas, self.isr(item)) for item, replicas in self.layout.replicas.items()
        )
        alive = tuple(node_id for node_id, current in self.pods.items() if not current.unavailable)
        controller_id = alive[0] if alive else -1
        return ReplicaHealth(
            controller_id, alive, partitions, {item.topic: self.layout.min_isr for item in self.layout.replicas}
        )

    def moment(self) -> datetime:
        """Return the time now."""
        return NOW + timedelta(seconds=self.now_s)

    def name(self) -> str:
        """Return the declared revision."""
        return f"rev-{self.revision}"

    @property
    def settled(self) -> bool:
        """Whether every pod is Ready, as declared, and on a node that stays."""
        return all(
            not current.unavailable and current.revision == self.name() and current.node not in self.cordoned
            for current in self.pods.values()
        )


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    """Any placement; every partition has as many replicas, more than min ISR or not."""
    brokers = draw(st.integers(1, 5))
    factor = draw(st.integers(1, brokers))
    ids = list(range(brokers))
    partitions = {
        Partition("t", index): tuple(draw(st.permutations(ids))[:factor]) for index in range(draw(st.integers(1, 4)))
    }
    return Layout(brokers, partitions, draw(st.integers(1, 3)))


def lived(layout: Layout, seed: int) -> Site:
    """A site after a restless time."""
    pods = {node_id: pod(node_id, "rev-0") for node_id in range(layout.brokers)}
    site = Site(layout, random.Random(seed), cluster_with_pods(layout.brokers), pods)
    for _ in range(POLLS):
        site.settle()
        site.pass_time(calm=False)
    return site


@pytest.mark.shows("F33")
@settings(deadline=None)  # the machine may be busy
@given(layouts(), st.integers(0, 2**32))
def test_rolling_keeps_all_but_one_pod_and_every_partition_at_min_isr(layout: Layout, seed: int) -> None:
    """The asserts of `Site.delete`, at every deletion of a restless time."""
    lived(layout, seed)


@settings(deadline=None)  # the machine may be busy
@given(layouts(), st.integers(0, 2**32))
def test_every_pod_that_is_due_is_replaced_in_the_end(layout: Layout, seed: int) -> None:
    """Where every partition can spare a copy; once nothing happens any more."""
    factor = len(next(iter(layout.replicas.values())))
    layout.min_isr = min(layout.min_isr, factor - 1)
    site = lived(layout, seed)
    site.cordoned.clear()
    site.revision += 1
    for _ in range(SETTLING_POLLS):
        if site.settled:
            break
        site.settle()
        site.pass_time(calm=True)

    assert site.settled
