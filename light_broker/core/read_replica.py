"""Choice of the replica that a consumer reads from: one in its rack, or the leader (KIP-392). Pure.

Source: ReplicaManager.findPreferredReadReplica and RackAwareReplicaSelector of Kafka.
"""

from collections.abc import Mapping

from light_broker.core.partition import Leader

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
"""Value of replica.selector.class that this module implements."""


def preferred_read_replica(
    leader: Leader, racks: Mapping[int, str | None], rack: str, fetch_offset: int, *, now_ms: int
) -> int | None:
    """Return the follower that a consumer of a rack reads from; None: the leader.

    `racks` are those of the brokers that the consumer reaches. A follower outside the ISR may never catch up, so it is not chosen, and one
    without the offset cannot answer. Of several the most advanced is chosen.
    """
    if not rack or racks.get(leader.leader_id) == rack:
        return None
    found = [
        (progress.end_offset, -(now_ms - progress.last_caught_up_ms), broker_id)
        for broker_id, progress in leader.followers.items()
        if racks.get(broker_id) == rack
        and broker_id in leader.isr.members
        and progress.start_offset <= fetch_offset <= progress.end_offset
    ]
    return max(found)[-1] if found else None
