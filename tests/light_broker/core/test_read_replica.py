"""Choice of the replica that a consumer reads from (KIP-392). Source: RackAwareReplicaSelectorTest, ReplicaManagerTest."""

import pytest

from light_broker.core.follower_progress import FollowerProgress
from light_broker.core.isr import Committed
from light_broker.core.partition import Leader
from light_broker.core.read_replica import preferred_read_replica

LEADER, NEAR, FAR, OUTSIDE = 1, 2, 3, 4
RACKS = {LEADER: "a", NEAR: "b", FAR: "c", OUTSIDE: "d"}
NOW_MS = 1000


def leader(isr: tuple[int, ...] = (LEADER, NEAR, FAR), **followers: FollowerProgress) -> Leader:
    """Return a leader whose followers have the offsets 0 to 10, or as given by `b2`, that is broker 2."""
    given = {int(name[1:]): progress for name, progress in followers.items()}
    progress = FollowerProgress(end_offset=10, start_offset=0, last_caught_up_ms=NOW_MS)
    return Leader(
        LEADER, 1, 1, 0, Committed(isr), {broker: given.get(broker, progress) for broker in (NEAR, FAR, OUTSIDE)}
    )


@pytest.mark.parametrize(
    ("rack", "chosen"), [("", None), ("a", None), ("b", NEAR), ("c", FAR), ("d", None), ("elsewhere", None)]
)
def test_a_consumer_reads_from_an_in_sync_replica_in_its_rack(rack: str, chosen: int | None) -> None:
    """The leader where it is in the rack, or where no in-sync replica is."""
    actual = preferred_read_replica(leader(), RACKS, rack, 5, now_ms=NOW_MS)
    assert actual == chosen


@pytest.mark.parametrize(("offset", "chosen"), [(2, None), (3, NEAR), (10, NEAR), (11, None)])
def test_a_replica_without_the_offset_is_not_chosen(offset: int, chosen: int | None) -> None:
    """It would answer OFFSET_OUT_OF_RANGE."""
    found = leader(b2=FollowerProgress(end_offset=10, start_offset=3, last_caught_up_ms=NOW_MS))
    actual = preferred_read_replica(found, RACKS, "b", offset, now_ms=NOW_MS)
    assert actual == chosen


def test_of_several_replicas_in_a_rack_the_most_advanced_is_chosen() -> None:
    """By its end, then by the time since it was caught up (ReplicaView.comparator)."""
    same_rack = {**RACKS, FAR: "b"}
    behind = leader(b2=FollowerProgress(end_offset=9, start_offset=0, last_caught_up_ms=NOW_MS))
    late = leader(b3=FollowerProgress(end_offset=10, start_offset=0, last_caught_up_ms=NOW_MS - 500))

    assert preferred_read_replica(behind, same_rack, "b", 5, now_ms=NOW_MS) == FAR
    assert preferred_read_replica(late, same_rack, "b", 5, now_ms=NOW_MS) == NEAR


def test_a_broker_that_the_consumer_does_not_reach_is_not_chosen() -> None:
    """It is not alive, or lacks the consumer's listener."""
    actual = preferred_read_replica(leader(), {LEADER: "a"}, "b", 5, now_ms=NOW_MS)
    assert actual is None
