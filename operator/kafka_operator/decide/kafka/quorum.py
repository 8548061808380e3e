"""Health of a KRaft quorum: its leader, voters and observers, and whether a voter can be stopped (KIP-595, KIP-836).

A voter is in sync if it is the leader, or had the whole log of the leader within CAUGHT_UP_WITHIN_MS. Kafka compares the
timestamps of the leader, so that clocks of other nodes do not matter.
"""

from __future__ import annotations

from kafka_operator.decide.kafka.observed import UNKNOWN_MS, ObservedQuorum, Quorum, QuorumNode
from kafka_operator.resources.quorum import QuorumStatus

CAUGHT_UP_WITHIN_MS = 5_000
"""Longer than a few fetches and than controller.quorum.fetch.timeout.ms (2 s), after which a voter without a leader starts an election."""


def is_in_sync(quorum: Quorum, node: QuorumNode) -> bool:
    """Return whether a node has the log of the leader."""
    if node.node_id == quorum.leader_id:
        return True
    now_ms = next((voter.caught_up_ms for voter in quorum.voters if voter.node_id == quorum.leader_id), UNKNOWN_MS)
    if now_ms == UNKNOWN_MS:
        return quorum.leader_id >= 0 and node.log_end_offset >= quorum.high_watermark
    return node.caught_up_ms != UNKNOWN_MS and now_ms - node.caught_up_ms <= CAUGHT_UP_WITHIN_MS


def out_of_sync_ids(quorum: Quorum, nodes: tuple[QuorumNode, ...]) -> tuple[int, ...]:
    """Return the ids of the nodes that are not in sync, ascending."""
    return tuple(sorted(node.node_id for node in nodes if not is_in_sync(quorum, node)))


def voters_missed_without(quorum: Quorum, node_id: int) -> tuple[int, ...]:
    """Return the voters that have to be in sync before a voter is stopped, and are not; empty if it can be stopped.

    The others in sync must be a majority of all voters. Of one or two voters no majority stays, so that every other one must be in sync.

    >>> three = Quorum(1, 7, 90, (QuorumNode(1, 90, 60_000), QuorumNode(2, 90, 59_500), QuorumNode(3, 40, 20_000)))
    >>> voters_missed_without(three, 2), voters_missed_without(three, 3), voters_missed_without(three, 4)
    ((3,), (), ())
    """
    if node_id not in quorum.voter_ids:
        return ()
    others = tuple(voter for voter in quorum.voters if voter.node_id != node_id)
    missed = out_of_sync_ids(quorum, others)
    needed = min(len(quorum.voters) // 2 + 1, len(others))
    return () if len(others) - len(missed) >= needed else missed


def quorum_status(observed: ObservedQuorum) -> QuorumStatus | None:
    """Return what the status of a Cluster shows of a quorum; None where no quorum is visible, or during an election."""
    if not isinstance(observed, Quorum) or not observed.voters:
        return None
    return QuorumStatus(
        leader_epoch=observed.leader_epoch,
        voter_ids=tuple(sorted(observed.voter_ids)),
        out_of_sync_voter_ids=out_of_sync_ids(observed, observed.voters),
        out_of_sync_observer_ids=out_of_sync_ids(observed, observed.observers),
    )
