"""A broker as the controller's requests make it: what it holds, leads, follows and knows of the others.

The rules are ReplicaManager's: a state is taken under a higher leader epoch only, a StopReplica under one that is not
below, a follower needs a leader that it knows to be alive. A log is its number of records, enough to see one lost.
Leaves out fetching: a driver says when a follower has caught up.
"""

from dataclasses import dataclass, field
from uuid import UUID

from controller_core.model.broker import Broker, Endpoint
from controller_core.model.ids import EPOCH_DURING_DELETE, LEADER_DURING_DELETE, NO_LEADER, TopicPartition
from controller_core.model.move import Replicas
from tests.controller_core.decisions.messages import LeaderAndIsr, Message, PartitionTold, StopReplica, UpdateMetadata


@dataclass
class FakeBroker:
    """One broker over all its lives; `bounce` and `kill` leave its logs alone and nothing else."""

    id: int
    epoch: int
    rack: str | None = None
    is_up: bool = True
    logs: dict[TopicPartition, int] = field(default_factory=dict)
    log_ids: dict[TopicPartition, UUID] = field(default_factory=dict)
    """The topic id that is written beside each log (`partition.metadata`)."""
    states: dict[TopicPartition, PartitionTold] = field(default_factory=dict)
    stopped: set[TopicPartition] = field(default_factory=set)
    """Partitions that it does not follow: it was told to stop, or did not know the leader's address."""
    pending: dict[TopicPartition, Replicas] = field(default_factory=dict)
    """ISRs that it asked for and has no answer to: until then their members count as in sync (KIP-497, the maximal ISR)."""
    metadata: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)
    """Leader and leader epoch, as clients would hear."""
    live: Replicas = ()
    refusals: int = 0
    """LeaderAndIsr requests that it will throw at, half done."""
    half_made: set[TopicPartition] = field(default_factory=set)
    """Partitions that it has without a log, since it threw."""

    offline: set[TopicPartition] = field(default_factory=set)
    """Partitions whose log directory failed in this life: neither led nor followed, nor deleted."""

    @property
    def registration(self) -> Broker:
        """The registration of this life."""
        return Broker(self.id, self.epoch, (Endpoint("INTERNAL", f"host{self.id}", 9092, "PLAINTEXT"),), self.rack)

    def start(self, epoch: int) -> None:
        """Begin another life."""
        self.is_up, self.epoch = True, epoch
        self.states, self.stopped, self.pending, self.metadata, self.live = {}, set(), {}, {}, ()
        self.refusals, self.half_made, self.offline = 0, set(), set()

    def take(self, message: Message) -> dict[TopicPartition, str]:
        """Do as told; the answer is the error of each partition that has one."""
        match message:
            case LeaderAndIsr():
                return self._lead_or_follow(message)
            case UpdateMetadata():
                self._learn(message)
                return {}
            case StopReplica():
                return self._stop(message)

    def refuses(self, message: LeaderAndIsr) -> bool:
        """Whether it throws at a request: as a test wants, or over a partition that it has under that epoch without a log."""
        return self.refusals > 0 or any(
            name in self.half_made and told.leader_epoch == self.states[name].leader_epoch
            for name, told in message.partitions.items()
        )

    def refuse(self, message: LeaderAndIsr) -> None:
        """Throw: partitions that it was to follow have the leader epoch by now, and neither a log nor a fetcher."""
        if self.refusals == 0:
            return
        self.refusals -= 1
        for name, told in message.partitions.items():
            if told.leader != self.id and name not in self.offline and self._is_newer(name, told):
                self.states[name] = told
                self.half_made.add(name)
                self.stopped.add(name)

    def fail_dir(self, partition: TopicPartition) -> None:
        """Lose the log directory of a partition until the next life; its records are there again by then."""
        self.offline.add(partition)
        self.states.pop(partition, None)
        self.pending.pop(partition, None)
        self.half_made.discard(partition)

    def listed(self) -> list[str]:
        """Name the logs that DescribeLogDirs lists."""
        return [f"{name.topic}-{name.partition}" for name in sorted(self.logs) if name not in self.offline]

    def leads(self, partition: TopicPartition) -> bool:
        """Whether it takes itself for the leader."""
        return self.is_up and partition in self.states and self.states[partition].leader == self.id

    def follows(self, partition: TopicPartition, leader: "FakeBroker") -> bool:
        """Whether it fetches from that leader, and that leader lets it."""
        if not (self.is_up and leader.leads(partition)) or partition in self.stopped:
            return False
        mine, theirs = self.states.get(partition), leader.states[partition]
        return (
            mine is not None
            and (mine.leader, mine.leader_epoch) == (leader.id, theirs.leader_epoch)
            and self.id in theirs.replicas
        )

    def maximal_isr(self, partition: TopicPartition) -> Replicas:
        """Who must have a record before it is acknowledged."""
        return tuple({*self.states[partition].isr, *self.pending.get(partition, ())})

    def _lead_or_follow(self, message: LeaderAndIsr) -> dict[TopicPartition, str]:
        assert self.live, (
            f"broker {self.id} is told to lead or follow and knows of no live broker (protocol notes, Z32)"
        )
        errors: dict[TopicPartition, str] = {}
        for name, told in message.partitions.items():
            assert self.id in told.replicas, f"broker {self.id} is told of {name}, which it is no replica of"
            topic_id = message.topic_ids.get(name.topic)
            if name in self.offline:
                errors[name] = "KAFKA_STORAGE_ERROR"
                continue
            if topic_id is not None and self.log_ids.get(name, topic_id) != topic_id:
                errors[name] = "INCONSISTENT_TOPIC_ID"
                continue
            if not self._is_newer(name, told):
                continue
            self.half_made.discard(name)
            self.states[name] = told
            # It looks for its leader's address once: a leader that it does not know, it will not follow under this epoch.
            is_reachable = told.leader in {NO_LEADER, self.id, *self.live}
            (self.stopped.discard if is_reachable else self.stopped.add)(name)
            self.pending.pop(name, None)
            self.logs.setdefault(name, 0)
            if topic_id is not None:
                self.log_ids[name] = topic_id
        return errors

    def _is_newer(self, name: TopicPartition, told: PartitionTold) -> bool:
        known = self.states.get(name)
        return known is None or told.leader_epoch > known.leader_epoch

    def _learn(self, message: UpdateMetadata) -> None:
        self.live = message.live
        for name, told in message.partitions.items():
            if told.leader == LEADER_DURING_DELETE:
                self.metadata.pop(name, None)
            else:
                self.metadata[name] = (told.leader, told.leader_epoch)

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
