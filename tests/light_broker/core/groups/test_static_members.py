"""Static members (KIP-345). Source: GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin."""

from kafka_wire import ErrorCode
from light_broker.core.groups.events import Leaver
from light_broker.core.groups.records import GroupRecord
from light_broker.core.groups.states import Protocol
from tests.light_broker.core.groups.members import (
    RANGE,
    SESSION_MS,
    STICKY,
    Client,
    group_of,
    leave,
    stable_group,
)
from tests.light_broker.core.groups.world import World


def test_static_member_with_its_instance_id_gets_its_assignment_back_without_a_rebalance() -> None:
    """KIP-345: the new id is stored."""
    world = World()
    a, b = Client(world, "a", instance_id="one"), Client(world, "b", instance_id="two")
    stable_group(world, a, b)

    reborn = Client(world, "b", instance_id="two", lives=7)
    joined = reborn.join()

    assert joined is not None
    assert (joined.error, joined.generation, joined.member_id) == (ErrorCode.NONE, 1, "two-8")
    synced = reborn.sync()
    assert synced is not None
    assert synced.assignment == b"b"
    *_, record = world.stored()
    assert isinstance(record, GroupRecord)
    assert record.value is not None
    assert {member.instance_id: member.id for member in record.value.members} == {"one": "one-1", "two": "two-8"}


def test_static_leader_that_comes_back_does_not_assign_again() -> None:
    """KIP-814: it gets the members to know them, and skips the assignment; older clients see the former leader's id."""
    world = World()
    a = Client(world, "a", instance_id="one")
    stable_group(world, a)

    joined = Client(world, "a", instance_id="one", lives=4).join()
    older = Client(world, "a", instance_id="one", lives=5).join(can_skip=False)

    assert joined is not None
    assert (joined.leader, joined.skip_assignment, len(joined.members)) == ("one-5", True, 1)
    assert older is not None
    assert (older.leader, older.skip_assignment, older.members) == ("one-5", False, ())


def test_former_client_of_a_static_member_is_fenced() -> None:
    """KIP-345: FENCED_INSTANCE_ID for each of its requests."""
    world = World()
    a, b = Client(world, "a", instance_id="one"), Client(world, "b")
    stable_group(world, a, b)
    Client(world, "a", instance_id="one", lives=4).join()

    joined = a.join()

    assert joined is not None
    assert joined.error == ErrorCode.FENCED_INSTANCE_ID
    assert a.heartbeat() == ErrorCode.FENCED_INSTANCE_ID
    assert a.commit(1) == ErrorCode.FENCED_INSTANCE_ID
    synced = a.sync()
    assert synced is not None
    assert synced.error == ErrorCode.FENCED_INSTANCE_ID
    assert a.leave().members == ((a.member_id, "one", ErrorCode.FENCED_INSTANCE_ID),)


def test_static_member_whose_new_id_cannot_be_stored_keeps_the_old_one() -> None:
    """GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin."""
    world = World()
    a = Client(world, "a", instance_id="one")
    stable_group(world, a)
    world.replicates_at_once = False
    reborn = Client(world, "a", instance_id="one", lives=4, protocols=(RANGE, STICKY))

    assert reborn.join() is None
    world.settle(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    joined = reborn.joined()
    assert joined is not None
    assert (joined.error, joined.member_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")
    assert group_of(world).members[a.member_id].protocols == (RANGE,)
    assert a.heartbeat() == ErrorCode.NONE


def test_static_member_is_not_removed_before_its_session_ends() -> None:
    """KIP-345: it may be restarting during the rebalance."""
    world = World()
    a = Client(world, "a", instance_id="one", session_ms=200_000)
    b = Client(world, "b", session_ms=200_000)
    stable_group(world, a, b)

    b.protocols = (Protocol("range", b"changed"),)
    b.join()
    world.advance(60_000)

    assert set(group_of(world).members) == {a.member_id, b.member_id}


def test_administrator_removes_a_static_member_by_its_instance_id() -> None:
    """KIP-345: LeaveGroup 3 and later without a member id."""
    world = World()
    a, b = Client(world, "a", instance_id="one"), Client(world, "b")
    stable_group(world, a, b)

    left = leave(world, Leaver("", "one"), Leaver("", "none"))

    assert left.members == (("", "one", ErrorCode.NONE), ("", "none", ErrorCode.UNKNOWN_MEMBER_ID))
    assert list(group_of(world).members) == [b.member_id]


def test_session_of_a_static_member_runs_after_its_new_id_is_stored() -> None:
    """Also if it ended while the member waited, which a schedule found: the member would stay without a client."""
    world = World()
    stable_group(world, Client(world, "a", instance_id="one"))
    world.replicates_at_once = False
    Client(world, "a", instance_id="one", lives=4).join()

    world.advance(SESSION_MS)
    world.settle()
    world.replicates_at_once = True
    world.advance(SESSION_MS)

    assert group_of(world).members == {}
