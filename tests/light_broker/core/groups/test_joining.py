"""JoinGroup: error codes and rebalances as in Kafka's GroupMetadataManager."""

from dataclasses import replace

import pytest

from kafka_wire import ErrorCode
from light_broker.core.groups import joining, subscriptions
from light_broker.core.groups.records import GroupRecord
from light_broker.core.groups.settings import NEW_MEMBER_JOIN_TIMEOUT_MS, GroupSettings
from light_broker.core.groups.states import Protocol
from tests.light_broker.core.groups.members import (
    RANGE,
    SESSION_MS,
    STICKY,
    Client,
    group_of,
    stable_group,
    subscription,
)
from tests.light_broker.core.groups.world import World


def test_first_rebalance_waits_for_the_initial_delay() -> None:
    """group.initial.rebalance.delay.ms."""
    world = World()
    a = Client(world)

    assert a.join() is None
    world.advance(2_999)
    assert a.joined() is None
    world.advance(1)

    joined = a.joined()
    assert joined is not None
    assert (joined.error, joined.generation, joined.leader) == (ErrorCode.NONE, 1, a.member_id)
    assert joined.members == ((a.member_id, None, RANGE.metadata),)


def test_initial_delay_is_extended_while_members_join_but_not_beyond_the_rebalance_timeout() -> None:
    """GroupMetadataManager.tryCompleteInitialRebalanceElseSchedule: waits of 3, 3 and 1 s for members that join each 2 s."""
    world = World()
    clients = [Client(world, name, rebalance_ms=7_000) for name in "abcd"]

    for client in clients:
        client.join()
        world.advance(2_000 if client is not clients[-1] else 999)
    assert [client.joined() for client in clients] == [None] * 4
    world.advance(1)

    assert [client.joined() is not None for client in clients] == [True] * 4


def test_member_first_gets_its_id() -> None:
    """KIP-394: a client that gives up while it joins leaves no member behind."""
    world = World()

    Client(world, knows_member_ids=True).join()
    answers = [answer for answers in world.answers.values() for answer in answers]

    assert [(answer.error, getattr(answer, "member_id", "")) for answer in answers] == [
        (ErrorCode.MEMBER_ID_REQUIRED, "a-1")
    ]


def test_member_id_that_is_not_used_is_forgotten_after_the_session_timeout() -> None:
    """KIP-394: until then a rebalance waits for it."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a)
    world.ask("g", replace(b.request(), needs_known_member_id=True))

    a.join()
    assert a.joined() is None
    world.advance(SESSION_MS)

    joined = a.joined()
    assert joined is not None
    assert (joined.generation, group_of(world).pending_members) == (2, frozenset())


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_session_timeout_outside_the_limits_is_refused(session_ms: int) -> None:
    """group.min.session.timeout.ms, group.max.session.timeout.ms."""
    world = World()

    joined = Client(world, session_ms=session_ms).join()

    assert joined is not None
    assert joined.error == ErrorCode.INVALID_SESSION_TIMEOUT
    assert world.shard.groups == {}
    assert world.log == []


def test_member_id_of_an_unknown_group_is_refused() -> None:
    """The client then joins as a new member."""
    world = World()

    joined = Client(world, member_id="a-9").join()

    assert joined is not None
    assert joined.error == ErrorCode.UNKNOWN_MEMBER_ID


def test_group_without_a_common_protocol_refuses_a_member() -> None:
    """INCONSISTENT_GROUP_PROTOCOL, also for another protocol type."""
    world = World()
    stable_group(world, Client(world))

    for stranger in (
        Client(world, "b", protocols=(Protocol("roundrobin", b""),)),
        Client(world, "c", protocol_type="connect"),
    ):
        joined = stranger.join()

        assert joined is not None
        assert joined.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_refused_first_member_creates_no_group() -> None:
    """A request without protocols leaves nothing behind, in memory and in the log."""
    world = World()

    joined = Client(world, protocols=()).join()

    assert joined is not None
    assert joined.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert (world.shard.groups, world.log) == ({}, [])


def test_new_group_is_stored_before_it_is_shown() -> None:
    """GroupMetadataManager.classicGroupJoinToClassicGroup writes an empty group."""
    world = World(replicates_at_once=False)

    Client(world).join()

    (record,) = world.stored()
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert (record.value.protocol_type, record.value.generation, record.value.members) == ("", 0, ())
    assert world.shard.visible_group("g") is None
    world.settle()
    assert world.shard.visible_group("g") is not None


def test_new_group_that_cannot_be_stored_answers_its_members() -> None:
    """Every JoinGroup is answered."""
    world = World(replicates_at_once=False)
    a = Client(world)
    a.join()

    world.settle(ErrorCode.NOT_COORDINATOR)

    joined = a.joined()
    assert joined is not None
    assert joined.error == ErrorCode.NOT_COORDINATOR
    assert world.shard.groups == {}


def test_protocol_with_the_most_votes_is_chosen() -> None:
    """Only among those that all members support."""
    world = World()
    a = Client(world, "a", protocols=(RANGE, STICKY))
    b = Client(world, "b", protocols=(STICKY, RANGE))
    c = Client(world, "c", protocols=(STICKY, RANGE))

    stable_group(world, a, b, c)

    assert group_of(world).protocol == "cooperative-sticky"


def test_cooperative_members_keep_their_owned_partitions_in_their_metadata() -> None:
    """KIP-429: the coordinator passes metadata to the leader unread."""
    world = World()
    owned = Protocol("cooperative-sticky", subscription("orders") + b"\0\0\0\1 owned partitions")
    a, b = Client(world, "a", protocols=(owned,)), Client(world, "b", protocols=(owned,))
    stable_group(world, a, b)

    a.join()
    b.join()

    joined = a.joined()
    assert joined is not None
    assert [metadata for _, _, metadata in joined.members] == [owned.metadata, owned.metadata]


def test_full_group_refuses_a_further_member() -> None:
    """group.max.size."""
    world = World(GroupSettings(max_size=1))
    stable_group(world, Client(world))

    joined = Client(world, "b").join()

    assert joined is not None
    assert (joined.error, joined.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")


def test_loaded_group_above_its_limit_shrinks_in_a_rebalance() -> None:
    """GroupMetadataManager.onLoaded: a lowered group.max.size takes effect at the next load."""
    world = World()
    clients = [Client(world, name) for name in "abc"]
    stable_group(world, *clients)
    world.settings = GroupSettings(max_size=2)

    world.reload()
    answers = [client.join() for client in clients]

    assert [answer.error if answer else None for answer in answers] == [None, None, ErrorCode.GROUP_MAX_SIZE_REACHED]
    assert [client.joined().generation for client in clients[:2]] == [2, 2]


def test_follower_with_the_same_protocols_gets_the_current_generation() -> None:
    """It may have lost the answer."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)

    joined = b.join()

    assert joined is not None
    assert (joined.generation, joined.members, joined.leader) == (1, (), a.member_id)
    assert group_of(world).state_name == "Stable"


def test_leader_that_joins_again_starts_a_rebalance() -> None:
    """Topics may have changed, which its metadata do not show."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)

    assert a.join(reason="topics changed") is None
    assert b.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    b.join()

    joined = a.joined()
    assert joined is not None
    assert joined.generation == 2


def test_members_that_do_not_join_again_are_removed_after_the_rebalance_timeout() -> None:
    """The next generation has those that have joined, and one of them leads."""
    world = World()
    a, b = Client(world, "a", session_ms=100_000), Client(world, "b", session_ms=100_000)
    stable_group(world, a, b)

    b.protocols = (Protocol("range", subscription("orders", "payments")),)
    assert b.join() is None
    world.advance(60_000)

    joined = b.joined()
    assert joined is not None
    assert (joined.generation, joined.leader) == (2, b.member_id)
    assert list(group_of(world).members) == [b.member_id]


def test_new_member_that_never_joins_again_is_removed() -> None:
    """Its client may have gone, and sends no heartbeats while it waits."""
    world = World(GroupSettings(max_session_timeout_ms=10**7))
    a = Client(world, "a", session_ms=10**6, rebalance_ms=10**7)
    stable_group(world, a)
    b = Client(world, "b", session_ms=10**6, rebalance_ms=10**7)

    assert b.join() is None
    world.advance(NEW_MEMBER_JOIN_TIMEOUT_MS)

    joined = b.joined()
    assert joined is not None
    assert joined.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert list(group_of(world).members) == [a.member_id]


def test_older_join_of_a_member_is_answered_when_it_sends_another() -> None:
    """Every JoinGroup is answered once; the older client joins again."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)
    a.join()
    first = a.request_id

    a.join()

    (answer,) = world.answers[first]
    assert answer.error == ErrorCode.REBALANCE_IN_PROGRESS


def test_given_out_member_ids_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks for ids in a loop takes bounded memory; it is asked to try again."""
    world = World()
    stable_group(world, Client(world))
    monkeypatch.setattr(joining, "MAX_PENDING_MEMBERS", 0)

    joined = Client(world, "b").join()

    assert joined is not None
    assert joined.error == ErrorCode.REBALANCE_IN_PROGRESS


def test_member_id_has_a_bounded_part_of_the_clients_name() -> None:
    """A client id may have 32,767 bytes, and so may a member id."""
    world = World()
    a = Client(world, "a" * 32_767)

    a.join()

    assert a.member_id == "a" * 255 + "-1"


def test_new_group_whose_replication_times_out_goes_on() -> None:
    """Its record is in the log."""
    world = World(replicates_at_once=False)
    a = Client(world)
    a.join()

    world.settle(ErrorCode.REQUEST_TIMED_OUT)
    world.advance(3_000)

    joined = a.joined()
    assert joined is not None
    assert joined.generation == 1


def test_each_distinct_subscription_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of a rebalance must not block the event loop: the members of a large group mostly have the same one."""
    read: list[bytes] = []

    def counting(data: bytes, _: int) -> tuple[dict[str, list[str]], int]:
        read.append(data)
        return {"topics": ["orders"]}, len(data)

    monkeypatch.setattr(subscriptions, "decoder", lambda *_: counting)
    world = World()
    stable_group(world, *(Client(world, name) for name in "abc"))

    assert set(group_of(world).subscribed_topics or ()) == {"orders"}
    assert len(read) == world.shard.groups["g"].generation
