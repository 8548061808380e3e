"""Leaders of a KRaft quorum of three while one voter is frozen and thawed in turn: Steward voters, and Kafka's controllers.

The frozen voter misses its fetch timeout each time, and asks for votes when it is thawed; the others refuse the pre-vote, because they fetch
from a leader. Both quorums run at the same time, each with its frozen voter: they are idle.
"""

import contextlib
import time
from collections.abc import Iterator

from bench.harness import Better, Effort, Row, promised, side_of
from lab.peers.quorum import Quorum, quorum

NAME = "quorum-frozen"
ABOUT = "leaders of a quorum while one voter is frozen and thawed, compared with Kafka's controllers (ten minutes)"

NODES = (1, 2, 3)
FREEZES = 100
"""Ten minutes."""
QUICK_FREEZES = 2
FROZEN_S = THAWED_S = 3.0
"""Longer than the fetch timeout of 2 s."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the row; `rounds` is the number of freezes, of six seconds each."""
    freezes = effort.rounds or (QUICK_FREEZES if effort.quick else FREEZES)
    with quorum((), stewards=NODES) as ours, quorum(NODES) as peer:
        counts = leaders((ours, peer), freezes)
    seconds = freezes * (FROZEN_S + THAWED_S)
    what = (
        f"leaders in {seconds:.0f} s in which one follower of three voters is frozen for {FROZEN_S:.0f} s and thawed for "
        f"{THAWED_S:.0f} s in turn; 1: leadership was never lost"
    )
    mine, theirs = (side_of([count]) for count in counts)
    row = Row(f"{NAME}.leaders", what, "three controllers of Kafka 4.3", "leaders", Better.LOWER, mine, theirs, 1)
    yield promised(row, "", 1.0)


def leaders(quorums: tuple[Quorum, ...], freezes: int) -> list[int]:
    """Freeze a follower of each quorum again and again; return how many epochs each has had."""
    first = [voters.wait_for_leader() for voters in quorums]
    followers = [
        next(node for node_id, node in voters.items() if node_id != leader)
        for voters, (leader, _) in zip(quorums, first, strict=True)
    ]
    for _ in range(freezes):
        with contextlib.ExitStack() as thawed:
            for node in followers:
                node.process.pause()
                thawed.callback(node.process.resume)
            time.sleep(FROZEN_S)
        time.sleep(THAWED_S)
    last = [voters.wait_for_leader() for voters in quorums]
    return [1 + end - start for (_, start), (_, end) in zip(first, last, strict=True)]
