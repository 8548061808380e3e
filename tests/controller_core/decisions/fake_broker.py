"""Fake broker: what it holds, leads, follows and knows about other brokers, as a result of the controller's requests.

The rules are those of ReplicaManager: a state is accepted only with a higher leader epoch, a StopReplica only with an epoch that is not
lower, and a follower needs a leader that it knows to be live. A log is its number of records, which shows lost ones.

There is no fetching: a driver lets followers catch up.
"""

from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model import NO_LEADER, Broker, Endpoint, Replicas, TopicPartition
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE
from tests.controller_core.decisions.messages import LeaderAndIsr, Message, SentState, StopReplica, UpdateMetadata


@dataclass
class FakeBroker:
    """One broker in all its incarnations; `bounce` and `kill` keep only its logs."""

    id: int
    epoch: int
    rack: str | None = None
    is_up: bool = True
    logs: dict[TopicPartition, int] = field(default_factory=dict)
    log_ids: dict[TopicPartition, UUID] = field(default_factory=dict)
    """Topic id stored with each log (`partition.metadata`)."""
    states: dict[TopicPartition, SentState] = field(default_factory=dict)
    stopped: set[TopicPartition] = field(default_factory=set)
    """Partitions that it does not follow: it got a StopReplica, or did not know the leader's address."""
    pending: dict[TopicPartition, Replicas] = field(default_factory=dict)
    """Requested ISRs without a response: until then their members count as in sync (KIP-497, the maximal ISR)."""
    metadata: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Leader and leader epoch, as clients get them."""
    live: Replicas = ()
    refusals: int = 0
    """LeaderAndIsr requests at which it will throw after applying half of them."""
    half_made: set[TopicPartition] = field(default_factory=set)
    """Partitions without a log, since it threw."""

    offline: set[TopicPartition] = field(default_factory=set)
    """Partitions whose log directory failed in this incarnation: neither led nor followed, nor deleted."""

    @property
    def registration(self) -> Broker:
        """Return the registration of this incarnation."""
        return Broker(self.id, self.epoch, (Endpoint("INTERNAL", f"host{self.id}", 9092, "PLAINTEXT"),), self.rack)

    def start(self, epoch: int) -> None:
        """Start another incarnation."""
        self.is_up, self.epoch = True, epoch
        self.states, self.stopped, self.pending, self.metadata, self.live = {}, set(), {}, {}, ()
        self.refusals, self.half_made, self.offline = 0, set(), set()

    def take(self, message: Message) -> dict[TopicPartition, str]:
        """Process a request; return the error of each partition that has one."""
        match message:
            case LeaderAndIsr():
                return self._lead_or_follow(message)
            case UpdateMetadata():
                self._learn(message)
                return {}
            case StopReplica():
                return self._stop(message)

    def refuses(self, message: LeaderAndIsr) -> bool:
        """Whether it throws at a request: because a test requires it, or for a partition that it has with that epoch and without a log."""
        return self.refusals > 0 or any(
            name in self.half_made and sent.leader_epoch == self.states[name].leader_epoch
            for name, sent in message.partitions.items()
        )

    def refuse(self, message: LeaderAndIsr) -> None:
        """Throw: partitions that it was to follow have the leader epoch, but neither a log nor a fetcher."""
        if self.refusals == 0:
            return
        self.refusals -= 1
        for name, sent in message.partitions.items():
            if sent.leader != self.id and name not in self.offline and self._is_newer(name, sent):
                self.states[name] = sent
                self.half_made.add(name)
                self.stopped.add(name)

    def fail_dir(self, partition: TopicPartition) -> None:
        """Fail the log directory of a partition until the next incarnation, which has its records again."""
        self.offline.add(partition)
        self.states.pop(partition, None)
        self.pending.pop(partition, None)
        self.half_made.discard(partition)

    def listed(self) -> list[str]:
        """Return the logs that DescribeLogDirs lists."""
        return [f"{name.topic}-{name.partition}" for name in sorted(self.logs) if name not in self.offline]

    def leads(self, partition: TopicPartition) -> bool:
        """Whether it acts as leader."""
        return self.is_up and partition in self.states and self.states[partition].leader == self.id

    def follows(self, partition: TopicPartition, leader: "FakeBroker") -> bool:
        """Whether it fetches from that leader, and that leader accepts it."""
        if not (self.is_up and leader.leads(partition)) or partition in self.stopped:
            return False
        mine, theirs = self.states.get(partition), leader.states[partition]
        return (
            mine is not None
            and (mine.leader, mine.leader_epoch) == (leader.id, theirs.leader_epoch)
            and self.id in theirs.replicas
        )

    def maximal_isr(self, partition: TopicPartition) -> Replicas:
        """Return the replicas that must have a record before it is acknowledged."""
        return tuple({*self.states[partition].isr, *self.pending.get(partition, ())})

    def _lead_or_follow(self, message: LeaderAndIsr) -> dict[TopicPartition, str]:
        assert self.live, (
            f"broker {self.id} is sent to lead or follow and knows of no live broker (protocol notes, Z32)"
        )
        errors: dict[TopicPartition, str] = {}
        for name, sent in message.partitions.items():
            assert self.id in sent.replicas, f"broker {self.id} got {name}, of which it is no replica"
            topic_id = message.topic_ids.get(name.topic)
            if name in self.offline:
                errors[name] = "KAFKA_STORAGE_ERROR"
                continue
            if topic_id is not None and self.log_ids.get(name, topic_id) != topic_id:
                errors[name] = "INCONSISTENT_TOPIC_ID"
                continue
            if not self._is_newer(name, sent):
                continue
            self.half_made.discard(name)
            self.states[name] = sent
            # It reads its leader's address once: it does not follow an unknown leader with this epoch.
            is_reachable = sent.leader in {NO_LEADER, self.id, *self.live}
            (self.stopped.discard if is_reachable else self.stopped.add)(name)
            self.pending.pop(name, None)
            self.logs.setdefault(name, 0)
            if topic_id is not None:
                self.log_ids[name] = topic_id
        return errors

    def _is_newer(self, name: TopicPartition, sent: SentState) -> bool:
        known = self.states.get(name)
        return known is None or sent.leader_epoch > known.leader_epoch

    def _learn(self, message: UpdateMetadata) -> None:
        self.live = message.live
        for name, sent in message.partitions.items():
            if sent.leader == LEADER_DURING_DELETE:
                self.metadata.pop(name, None)
            else:
                self.metadata[name] = (sent.leader, sent.leader_epoch)

    def _stop(self, message: StopReplica) -> dict[TopicPartition, str]:
        errors: dict[TopicPartition, str] = {}
        for name, epoch in message.partitions.items():
            known = self.states.get(name)
            if name in self.offline:
                errors[name] = "KAFKA_STORAGE_ERROR"
            elif known is not None and epoch != EPOCH_DURING_DELETE and epoch < known.leader_epoch:
                errors[name] = "FENCED_LEADER_EPOCH"
            elif message.delete:
                self.states.pop(name, None)
                self.logs.pop(name, None)
                self.log_ids.pop(name, None)
                self.stopped.discard(name)
                self.half_made.discard(name)
            else:
                self.stopped.add(name)
        return errors
