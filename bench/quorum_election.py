"""Elections of a KRaft quorum of three: three Steward voters, and three of Kafka's controllers, with equal timeouts (P6).

Both are asked the same way: DescribeQuorum to the two remaining voters, again as soon as it is answered, until one of them leads in a later
epoch and has committed a record of it. After `kill -9` most of the time is the fetch timeout, which both wait for; after SIGTERM the leader
names its successors. Each quorum runs alone. Leaves out the two parts of an election, and quorums of five.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from secrets import SystemRandom
from signal import SIGTERM

from bench.harness import Effort, Row, duration, promised
from kafka_wire.api import ApiKey
from kafka_wire.errors import ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node
from lab.quorum import HOST, Quorum, QuorumNode, quorum
from lab.waiting import wait_until

NAME = "quorum-election"
ABOUT = "elections of three Steward voters, compared with three Kafka controllers (ten minutes)"

NODES = (1, 2, 3)
ROUNDS = 30
QUICK_ROUNDS = 2
PEER = "three controllers of Kafka 4.3 with the same timeouts"

SETTINGS = {"controller.quorum.election.timeout.ms": "1000", "controller.quorum.fetch.timeout.ms": "2000"}
"""Kafka's own defaults."""

REQUEST = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
PATIENCE_S = 60.0
PAUSE_S = 0.5
"""Between the return of a voter and the next end of a leader, so that followers fetch as usual; up to the same time longer at random.

A follower of an idle leader gets a response every 500 ms. With an even pause the leader would always end right after one.
"""

_RANDOM = SystemRandom()

End = Callable[[QuorumNode], object]


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of an end when both sides are done."""
    rounds = effort.rounds or (QUICK_ROUNDS if effort.quick else ROUNDS)
    ends: dict[str, tuple[str, End]] = {
        "killed": ("kill -9 of the leader", QuorumNode.kill),
        "stopped": ("SIGTERM of the leader", lambda node: node.process.signal(SIGTERM)),
    }
    for name, (words, end) in ends.items():
        ours, peer = (elections(rounds, end, is_steward=is_steward) for is_steward in (True, False))
        what = f"{words} of three voters to the first committed record of the next"
        yield promised(duration(f"{NAME}.{name}", what, PEER, (ours, peer)), "P6", 0.95)
        ours_p99, peer_p99 = ([percentile_99(side)] for side in (ours, peer))
        yield duration(f"{NAME}.{name}.p99", f"the same, 99th percentile of {rounds}", PEER, (ours_p99, peer_p99))


def percentile_99(figures: Sequence[float]) -> float:
    """Return the 99th percentile: of few figures, the highest."""
    return statistics.quantiles(figures, n=100, method="inclusive")[-1]


def elections(rounds: int, end: End, *, is_steward: bool) -> list[float]:
    """End the leader again and again; return the seconds of each election."""
    stewards = NODES if is_steward else ()
    with quorum(() if is_steward else NODES, stewards=stewards, settings=SETTINGS) as voters:
        return [_election(voters, end) for _ in range(rounds)]


def _election(voters: Quorum, end: End) -> float:
    leader, epoch = voters.wait_for_leader()
    wait_until(
        lambda: all(node.leader_and_epoch() == (leader, epoch) for node in voters.values()),
        timeout_s=PATIENCE_S,
        what="all voters follow the leader",
    )
    time.sleep(PAUSE_S * (1 + _RANDOM.random()))
    took_s = asyncio.run(_until_committed(voters, leader, epoch, end))
    ended = voters[leader]
    ended.process.wait(timeout_s=PATIENCE_S)
    ended.start()
    return took_s


async def _until_committed(voters: Quorum, leader: int, epoch: int, end: End) -> float:
    """End the leader, and return the seconds until another one has committed a record."""
    async with AsyncExitStack() as stack:
        others = [Node(HOST, node.member.port) for node_id, node in voters.items() if node_id != leader]
        for one in others:
            stack.push_async_callback(one.close)
            await _has_committed(one, epoch)
        began_s = time.perf_counter()
        end(voters[leader])
        async with asyncio.timeout(PATIENCE_S):
            while not any([await _has_committed(one, epoch) for one in others]):
                pass
        return time.perf_counter() - began_s


async def _has_committed(node: Node, epoch: int) -> bool:
    """Return whether a node leads in a later epoch and knows its high watermark."""
    try:
        answer = await node.call(ApiKey.DESCRIBE_QUORUM, REQUEST)
    except ConnectionFailed:
        return False
    partition = answer["topics"][0]["partitions"][0]
    leads = partition["error_code"] == ErrorCode.NONE and partition["leader_epoch"] > epoch
    return bool(leads and partition["high_watermark"] >= 0)
