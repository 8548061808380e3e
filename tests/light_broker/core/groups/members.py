"""Requests of members, as short calls on a world."""

from dataclasses import dataclass

from kafka_node.outcomes import NO_TOPIC_ID
from kafka_wire import ErrorCode
from kafka_wire.codec import encode
from light_broker.core.groups.commits import OffsetCommit, PartitionCommit, commit_records, refuse_commit
from light_broker.core.groups.effects import Answer, HeartbeatReceived, Joined, Left, Synced
from light_broker.core.groups.events import Heartbeat, JoinGroup, LeaveGroup, Leaver, SyncGroup
from light_broker.core.groups.states import CONSUMER_PROTOCOL, Group, Protocol
from tests.light_broker.core.groups.world import World

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def subscription(*topics: str) -> bytes:
    """Return the metadata of a consumer that subscribes to topics."""
    return b"\0\0" + encode("ConsumerProtocolSubscription", 0, {"topics": list(topics)})


RANGE = Protocol("range", subscription("orders"))
STICKY = Protocol("cooperative-sticky", subscription("orders"))


@dataclass
class Client:
    """A member, or one that wants to be. It knows what it was answered."""

    world: World
    name: str = "a"
    group_id: str = "g"
    instance_id: str | None = None
    protocols: tuple[Protocol, ...] = (RANGE,)
    protocol_type: str = CONSUMER_PROTOCOL
    knows_member_ids: bool = True
    """Whether it gets its member id before it joins (KIP-394)."""
    session_ms: int = SESSION_MS
    rebalance_ms: int = REBALANCE_MS
    member_id: str = ""
    generation: int = -1
    request_id: int = 0
    lives: int = 0

    def request(self, *, reason: str | None = None, can_skip: bool = True) -> JoinGroup:
        """Return the next JoinGroup."""
        self.request_id = self.world.next_request()
        self.lives += 1
        return JoinGroup(
            self.request_id,
            self.group_id,
            self.member_id,
            self.instance_id,
            self.name,
            "/127.0.0.1",
            self.session_ms,
            self.rebalance_ms,
            self.protocol_type,
            self.protocols,
            f"{self.lives}",
            self.knows_member_ids,
            can_skip,
            reason,
        )

    def join(self, *, reason: str | None = None, can_skip: bool = True) -> Joined | None:
        """Send JoinGroup, the second one too if the first only gives the member id; None: it waits."""
        joined = self._joined(self.world.ask(self.group_id, self.request(reason=reason, can_skip=can_skip)))
        if joined is not None and joined.error == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return self.join(reason=reason, can_skip=can_skip)
        return joined

    def _joined(self, answers: list[Answer]) -> Joined | None:
        if not answers:
            return None
        (answer,) = answers
        assert isinstance(answer, Joined)
        if answer.error == ErrorCode.NONE:
            self.member_id, self.generation = answer.member_id, answer.generation
        return answer

    def joined(self) -> Joined | None:
        """Return the answer to the last JoinGroup, if there is one."""
        return self._joined(self.world.answers[self.request_id])

    def sync(self, assignments: dict[str, bytes] | None = None) -> Synced | None:
        """Send SyncGroup; None: it waits."""
        self.request_id = self.world.next_request()
        self.world.ask(
            self.group_id,
            SyncGroup(
                self.request_id,
                self.member_id,
                self.instance_id,
                self.generation,
                self.protocol_type,
                None,
                tuple((assignments or {}).items()),
            ),
        )
        return self.synced()

    def synced(self) -> Synced | None:
        """Return the answer to the last SyncGroup, if there is one."""
        answers = self.world.answers[self.request_id]
        if not answers:
            return None
        (answer,) = answers
        assert isinstance(answer, Synced)
        return answer

    def heartbeat(self) -> ErrorCode:
        """Send Heartbeat."""
        request_id = self.world.next_request()
        (answer,) = self.world.ask(
            self.group_id, Heartbeat(request_id, self.member_id, self.instance_id, self.generation)
        )
        assert isinstance(answer, HeartbeatReceived)
        return answer.error

    def leave(self) -> Left:
        """Send LeaveGroup."""
        return leave(self.world, Leaver(self.member_id, self.instance_id), group_id=self.group_id)

    def commit(
        self, offset: int, *, topic: str = "orders", metadata: str = "", knows_missing_groups: bool = True
    ) -> ErrorCode:
        """Commit an offset for partition 0; NONE: it was appended."""
        committed = PartitionCommit(topic, NO_TOPIC_ID, 0, offset, -1, metadata)
        request = OffsetCommit(
            self.group_id,
            self.member_id,
            self.instance_id,
            self.generation,
            (committed,),
            knows_missing_groups=knows_missing_groups,
        )
        error = refuse_commit(self.world.shard.groups.get(self.group_id), request)
        if error:
            return error
        records, (error,) = commit_records(request, now_ms=self.world.now_ms, settings=self.world.settings)
        if records:
            self.world.commit(records)
        return error


def leave(world: World, *leavers: Leaver, group_id: str = "g") -> Left:
    """Send LeaveGroup for members."""
    (answer,) = world.ask(group_id, LeaveGroup(world.next_request(), leavers))
    assert isinstance(answer, Left)
    return answer


def group_of(world: World, group_id: str = "g") -> Group:
    """Return a group."""
    return world.shard.groups[group_id]


def stable_group(world: World, *clients: Client) -> None:
    """Let clients form a stable group, in which the first leads and assigns each member its own name."""
    for client in clients:
        client.join()
    world.advance(world.settings.initial_rebalance_delay_ms * (len(clients) + 1))
    assert all(client.joined() is not None for client in clients)
    leader = next(client for client in clients if client.member_id == group_of(world, clients[0].group_id).leader)
    for client in clients:
        if client is not leader:
            client.sync()
    leader.sync({client.member_id: client.name.encode() for client in clients})
    assert group_of(world, clients[0].group_id).state_name == "Stable"
