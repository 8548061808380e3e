"""A fake active controller: it decides with the real core, applies changes at once and writes nothing.

There is no ZooKeeper, socket or time. Brokers answer a StopReplica at once, unless they are `silent`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from controller_core.model import Broker, Cluster, Endpoint, Replicas, TopicPartition
from controller_core.model.decision import Send, SendStopReplica
from controller_core.model.events import AlterPartition, Event, IsrChange
from controller_core.model.settings import TopicDeletion
from controller_core.model.zookeeper_changes import BrokersObserved
from controller_core.model.zookeeper_events import AdvanceDeletions, StopReplicaAnswered
from controller_core.shell.active import Defaults
from controller_core.zookeeper_mode.decide import decide
from controller_core.zookeeper_mode.propagation import apply_and_build_requests

CONTROLLER = 1000
CONTROLLER_EPOCH = 7
SEED = 3


def broker(broker_id: int, rack: str | None = None, listeners: Sequence[str] = ("CLIENT", "INTERNAL")) -> Broker:
    """Return a registered broker: epoch 100 + id, and a separate port for each listener."""
    endpoints = tuple(
        Endpoint(listener, f"broker{broker_id}", 9000 + 100 * place + broker_id, "PLAINTEXT")
        for place, listener in enumerate(listeners)
    )
    return Broker(broker_id, 100 + broker_id, endpoints, rack)


@dataclass
class FakeActive:
    """Implements `ActiveController`."""

    cluster: Cluster
    defaults: Defaults | None = field(default_factory=Defaults)
    """None: no broker has reported them yet."""
    cluster_id: str = "cluster-of-tests"
    failure: Exception | None = None
    """Raised by every submit."""
    silent: bool = False
    """Whether brokers leave StopReplica unanswered."""
    random: Random = field(default_factory=lambda: Random(SEED))
    """Source of random numbers of its handlers."""
    submitted: list[Event] = field(default_factory=list)
    waits_ms: list[int] = field(default_factory=list)
    """Timeouts of the waits for brokers."""
    state_waits_ms: list[int] = field(default_factory=list)
    settings_waits_ms: list[int] = field(default_factory=list)
    deletion_waits_ms: list[int] = field(default_factory=list)

    async def submit(self, event: Event) -> Any:
        """Decide and carry out."""
        self.submitted.append(event)
        if self.failure is not None:
            raise self.failure
        return self.run(event)

    async def known_defaults(self, timeout_ms: int) -> Defaults | None:
        """Return the defaults."""
        self.settings_waits_ms.append(timeout_ms)
        return self.defaults

    async def until(self, holds: Callable[[], bool], timeout_ms: int) -> bool:
        """Check once: nothing happens in the meantime."""
        self.state_waits_ms.append(timeout_ms)
        return holds()

    async def brokers_answered(self, timeout_ms: int, silence_ms: int) -> bool:
        """Return at once: brokers always have the changes."""
        assert silence_ms > 0
        self.waits_ms.append(timeout_ms)
        return True

    async def topic_removed(self, name: str, timeout_ms: int) -> bool:
        """Return whether the topic is deleted."""
        self.deletion_waits_ms.append(timeout_ms)
        return name not in self.cluster.topics

    def advertised(self) -> Sequence[Endpoint]:
        """Return endpoints on both listeners."""
        return (Endpoint("CLIENT", "steward", 9990, "PLAINTEXT"), Endpoint("INTERNAL", "steward", 9991, "PLAINTEXT"))

    def run(self, event: Event) -> Any:
        """Decide and carry out an event with all follow-up events."""
        decision = decide(self.cluster, event)
        sends: list[Send] = []
        for change in decision.changes:
            sends += apply_and_build_requests(self.cluster, change)
        sends += decision.sends
        for following in decision.then:
            self.run(following)
        for later in decision.later:
            self.run(later)
        for send in sends:
            if isinstance(send, SendStopReplica) and send.delete and not self.silent:
                epochs = dict(zip(send.partitions, send.leader_epochs, strict=True))
                self.run(StopReplicaAnswered(send.broker, send.partitions, {}, epochs))
        return decision.reply

    def brokers_are(self, *brokers: Broker) -> None:
        """Set the registered brokers, without any further effect."""
        apply_and_build_requests(self.cluster, BrokersObserved(brokers))

    def sync(self, partition: TopicPartition, isr: Replicas) -> None:
        """Send an ISR change of a partition's leader."""
        columns, row = self.cluster.columns, self.row(partition)
        leader = int(columns.leader[row])
        change = IsrChange(partition, int(columns.leader_epoch[row]), isr, int(columns.partition_epoch[row]))
        self.run(AlterPartition(leader, self.cluster.brokers[leader].epoch, (change,)))

    def resume_deletions(self) -> None:
        """Process queued deletions again."""
        self.run(AdvanceDeletions())

    def row(self, partition: TopicPartition) -> int:
        """Return the row of an existing partition."""
        row = self.cluster.row_of(*partition)
        assert row is not None
        return row


def active_with(*brokers: Broker, **settings: Any) -> FakeActive:
    """Create an active controller with these brokers, by default brokers 1, 2 and 3 without racks."""
    active = FakeActive(Cluster(CONTROLLER, CONTROLLER_EPOCH), **settings)
    active.cluster.topic_deletion = TopicDeletion.ENABLED
    active.brokers_are(*(brokers or (broker(1), broker(2), broker(3))))
    return active
