"""SyncGroup, Heartbeat, LeaveGroup and sessions: error codes and rebalances as in Kafka's GroupMetadataManager."""

from kafka_wire import ErrorCode
from light_broker.core.groups.events import LeaveGroup, Leaver
from light_broker.core.groups.records import GroupRecord
from light_broker.core.groups.states import Protocol
from tests.light_broker.core.groups.members import SESSION_MS, Client, group_of, leave, stable_group
from tests.light_broker.core.groups.world import World


def test_followers_wait_for_the_assignments_of_the_leader() -> None:
    """And get them once they are stored."""
    world = World(replicates_at_once=False)
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    b.join()
    world.settle()
    world.advance(9_000)
    a.joined(), b.joined()

    assert b.sync() is None
    assert a.sync({a.member_id: b"for a", b.member_id: b"for b"}) is None
    assert group_of(world).state_name == "CompletingRebalance"
    world.settle()

    assert [synced.assignment for synced in (a.synced(), b.synced()) if synced] == [b"for a", b"for b"]
    assert group_of(world).state_name == "Stable"


def test_assignments_of_a_follower_are_ignored() -> None:
    """A generation's assignment is given by its leader only."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)
    a.join()
    b.join()
    a.joined(), b.joined()

    assert b.sync({a.member_id: b"mine", b.member_id: b"mine"}) is None
    a.sync({a.member_id: b"1", b.member_id: b"2"})

    synced = b.synced()
    assert synced is not None
    assert synced.assignment == b"2"


def test_assignments_that_cannot_be_stored_lead_to_another_rebalance() -> None:
    """Members get the error, and no assignment that another coordinator would not know."""
    world = World(replicates_at_once=False)
    a = Client(world, "a")
    a.join()
    world.settle()
    world.advance(3_000)
    a.joined()
    a.sync({a.member_id: b"x"})

    world.end_append(0, ErrorCode.NOT_COORDINATOR)

    synced = a.synced()
    assert synced is not None
    assert (synced.error, synced.assignment) == (ErrorCode.NOT_COORDINATOR, b"")
    assert group_of(world).state_name == "PreparingRebalance"


def test_assignments_of_an_older_generation_are_dropped() -> None:
    """A member that joins while they are stored begins another rebalance."""
    world = World(replicates_at_once=False)
    a, b = Client(world, "a"), Client(world, "b")
    a.join()
    world.settle()
    world.advance(3_000)
    a.joined()
    a.sync({a.member_id: b"x"})
    b.join()

    world.settle()

    synced = a.synced()
    assert synced is not None
    assert synced.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert group_of(world).state_name == "PreparingRebalance"


def test_sync_of_a_former_generation_is_refused() -> None:
    """ILLEGAL_GENERATION; and UNKNOWN_MEMBER_ID where there is no such group or member."""
    world = World()
    a = Client(world, "a")
    stable_group(world, a)

    a.generation = 7
    assert a.sync().error == ErrorCode.ILLEGAL_GENERATION
    assert a.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    assert a.commit(1) == ErrorCode.ILLEGAL_GENERATION

    stranger = Client(world, "b", member_id="b-1", generation=1)
    assert stranger.sync().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    nowhere = Client(world, "b", group_id="none", member_id="b-1", generation=1)
    assert nowhere.sync().error == ErrorCode.UNKNOWN_MEMBER_ID
    assert nowhere.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_sync_with_another_protocol_is_refused() -> None:
    """SyncGroup 5 has the protocol that the member believes in (KIP-559)."""
    world = World()
    a = Client(world, "a")
    stable_group(world, a)

    a.protocol_type = "connect"
    synced = a.sync()

    assert synced is not None
    assert synced.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_members_that_do_not_sync_in_time_are_removed() -> None:
    """KAFKA-12984: after the rebalance timeout."""
    world = World()
    a, b = Client(world, "a", session_ms=200_000), Client(world, "b", session_ms=200_000)
    a.join()
    b.join()
    world.advance(9_000)
    a.joined(), b.joined()

    a.sync({a.member_id: b"x"})
    world.advance(60_000)

    assert list(group_of(world).members) == [a.member_id]
    assert group_of(world).state_name == "PreparingRebalance"
    assert b.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_member() -> None:
    """And nothing else does: without them its session ends."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)

    for _ in range(5):
        world.advance(SESSION_MS - 1)
        assert a.heartbeat() in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}

    assert list(group_of(world).members) == [a.member_id]


def test_member_that_leaves_starts_a_rebalance_for_the_others() -> None:
    """LeaveGroup."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)

    left = b.leave()

    assert left.members == ((b.member_id, None, ErrorCode.NONE),)
    assert a.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS


def test_group_that_all_members_have_left_is_stored_as_empty() -> None:
    """And the last member is answered once that is replicated."""
    world = World()
    a = Client(world, "a")
    stable_group(world, a)
    world.replicates_at_once = False
    request_id = world.next_request()

    assert world.ask("g", LeaveGroup(request_id, (Leaver(a.member_id),))) == []
    world.settle()

    assert len(world.answers[request_id]) == 1
    *_, record = world.stored()
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert (record.value.protocol_type, record.value.protocol, record.value.generation) == ("consumer", None, 2)
    assert group_of(world).state_name == "Empty"


def test_leave_of_unknown_members_is_reported_for_each() -> None:
    """The others leave."""
    world = World()
    a = Client(world, "a")
    stable_group(world, a)

    left = leave(world, Leaver("none"), Leaver(a.member_id))
    nowhere = leave(world, Leaver("x"), group_id="none")

    assert left.members == (("none", None, ErrorCode.UNKNOWN_MEMBER_ID), (a.member_id, None, ErrorCode.NONE))
    assert nowhere.members == (("x", None, ErrorCode.UNKNOWN_MEMBER_ID),)


def test_member_that_leaves_while_its_join_waits_is_answered() -> None:
    """Every JoinGroup is answered once."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)
    b.protocols = (Protocol("range", b"changed"),)
    b.join()

    b.leave()

    joined = b.joined()
    assert joined is not None
    assert joined.error == ErrorCode.UNKNOWN_MEMBER_ID


def test_change_of_the_coordinator_answers_requests_that_wait() -> None:
    """With NOT_COORDINATOR, so that the client looks for the other one."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b")
    stable_group(world, a, b)
    a.join()

    world.reload()

    joined = a.joined()
    assert joined is not None
    assert joined.error == ErrorCode.NOT_COORDINATOR


def test_loaded_group_goes_on_with_its_generation() -> None:
    """Members keep their assignments, and their sessions start again."""
    world = World()
    a, b = Client(world, "a"), Client(world, "b", instance_id="two")
    stable_group(world, a, b)

    world.reload()

    assert (a.heartbeat(), b.heartbeat()) == (ErrorCode.NONE, ErrorCode.NONE)
    assert [client.sync().assignment for client in (a, b)] == [b"a", b"b"]
    world.advance(SESSION_MS)
    assert group_of(world).members == {}
