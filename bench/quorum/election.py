"""Elections of a KRaft quorum: Steward voters, and as many of Kafka's controllers, with equal timeouts (P6).

Both are asked the same way: DescribeQuorum to the remaining voters, again as soon as it is answered, until one of them leads in a later
epoch and has committed a record of it. After `kill -9` most of the time is the fetch timeout, which both wait for; after SIGTERM the leader
names its successors. The parts of an election come from the voters' logs: the time until the round that was won began, and the round
itself, with its pre-vote. Each quorum runs alone.
"""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from secrets import SystemRandom
from signal import SIGTERM

from bench.harness import Effort, Row, duration, limited, promised
from bench.quorum.election_log import round_after
from kafka_wire import ApiKey, ErrorCode
from kafka_wire.net.client import ConnectionFailed, Node
from lab.peers.quorum import HOST, Quorum, QuorumNode, quorum
from lab.processes.waiting import wait_until

NAME = "quorum-election"
ABOUT = "elections of three Steward voters, compared with three Kafka controllers (ten minutes)"

THREE = (1, 2, 3)
ROUNDS = 30
QUICK_ROUNDS = 2

ROUND_P99_MS = 5.0
"""Promised: the 99th percentile of a round of votes, after either end."""
HAND_OVER_MS = 10.0
"""Promised: the median from SIGTERM of the leader to the leadership of the next."""

SETTINGS = {"controller.quorum.election.timeout.ms": "1000", "controller.quorum.fetch.timeout.ms": "2000"}
"""Kafka's own defaults."""

REQUEST = {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}
PATIENCE_S = 60.0
PAUSE_S = 0.5
"""Between the return of a voter and the next end of a leader, so that followers fetch as usual; up to the same time longer at random.

A follower of an idle leader gets a response every 500 ms. With an even pause the leader would always end right after one.
"""

_RANDOM = SystemRandom()


@dataclass(frozen=True, slots=True)
class End:
    """An end of the leader."""

    name: str
    description: str
    act: Callable[[QuorumNode], object]


KILLED = End("killed", "kill -9 of the leader", QuorumNode.kill)
STOPPED = End("stopped", "SIGTERM of the leader", lambda node: node.process.signal(SIGTERM))


@dataclass(frozen=True, slots=True)
class Election:
    """Seconds of one election, from the end of the leader."""

    detection_s: float
    """To the start of the round that was won; rounds before it that were lost are part of it."""
    round_s: float
    """Of this round."""
    committed_s: float
    """To the first record that the next leader has committed."""

    @property
    def elected_s(self) -> float:
        """To the leadership of the next."""
        return self.detection_s + self.round_s


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows of an end when both sides are done."""
    yield from rows(NAME, THREE, effort)


def rows(benchmark: str, voters: tuple[int, ...], effort: Effort) -> Iterator[Row]:
    """Yield the rows of a quorum, by the benchmark's name."""
    rounds = effort.rounds or (QUICK_ROUNDS if effort.quick else ROUNDS)
    for end in (KILLED, STOPPED):
        ours, peer = (elections(voters, rounds, end, is_steward=is_steward) for is_steward in (True, False))
        yield from _rows(f"{benchmark}.{end.name}", end, len(voters), (ours, peer))


def _rows(name: str, end: End, voters: int, sides: tuple[list[Election], list[Election]]) -> Iterator[Row]:
    peer_is = f"{voters} controllers of Kafka 4.3 with the same timeouts"

    def row(part: str, what: str, of: Callable[[Election], float]) -> Row:
        ours, peer = ([of(run) for run in side] for side in sides)
        return duration(f"{name}{part}", what, peer_is, (ours, peer))

    def row_p99(part: str, of: Callable[[Election], float]) -> Row:
        ours, peer = ([percentile_99([of(run) for run in side])] for side in sides)
        what = f"the same, 99th percentile of {len(sides[0])}"
        return duration(f"{name}{part}.p99", what, peer_is, (ours, peer))

    what = f"{end.description} of {voters} voters to the first committed record of the next"
    yield promised(row("", what, lambda run: run.committed_s), "P6", 0.95)
    yield row_p99("", lambda run: run.committed_s)
    yield row(".detection", f"{end.description} to the start of the round of votes", lambda run: run.detection_s)
    yield row(".round", "the round of votes, with its pre-vote, to the leadership", lambda run: run.round_s)
    p99 = row_p99(".round", lambda run: run.round_s)
    yield p99
    yield limited(f"{name}.round.limit", "the same, with the limit", "ms", p99.ours, ROUND_P99_MS, "P6")
    if end is STOPPED:
        elected = row(".elected", f"{end.description} to the leadership of the next", lambda run: run.elected_s)
        yield elected
        yield limited(f"{name}.elected.limit", "the same, with the limit", "ms", elected.ours, HAND_OVER_MS, "P6")


def percentile_99(figures: Sequence[float]) -> float:
    """Return the 99th percentile: of few figures, nearly the highest."""
    return statistics.quantiles(figures, n=100, method="inclusive")[-1] if len(figures) > 1 else figures[0]


def elections(node_ids: tuple[int, ...], rounds: int, end: End, *, is_steward: bool) -> list[Election]:
    """End the leader again and again; return what each election took."""
    stewards = node_ids if is_steward else ()
    with quorum(() if is_steward else node_ids, stewards=stewards, settings=SETTINGS) as voters:
        return [_election(voters, end) for _ in range(rounds)]


def _election(voters: Quorum, end: End) -> Election:
    leader, epoch = voters.wait_for_leader()
    wait_until(
        lambda: all(node.leader_and_epoch() == (leader, epoch) for node in voters.values()),
        timeout_s=PATIENCE_S,
        what="all voters follow the leader",
    )
    time.sleep(PAUSE_S * (1 + _RANDOM.random()))
    ended_s, committed_s = asyncio.run(_until_committed(voters, leader, epoch, end))
    won = round_after(epoch, [(node_id, node.process.log_text()) for node_id, node in voters.items()])
    ended = voters[leader]
    ended.process.wait(timeout_s=PATIENCE_S)
    ended.start()
    return Election(won.started_s - ended_s, won.elected_s - won.started_s, committed_s)


async def _until_committed(voters: Quorum, leader: int, epoch: int, end: End) -> tuple[float, float]:
    """End the leader; return the time of the end since 1970, and the seconds until another leader has committed a record."""
    async with AsyncExitStack() as stack:
        others = [Node(HOST, node.member.port) for node_id, node in voters.items() if node_id != leader]
        for node in others:
            stack.push_async_callback(node.close)
            await _has_committed(node, epoch)
        ended_s, began_s = time.time(), time.perf_counter()
        end.act(voters[leader])
        async with asyncio.timeout(PATIENCE_S):
            while not any([await _has_committed(node, epoch) for node in others]):
                pass
        return ended_s, time.perf_counter() - began_s


async def _has_committed(node: Node, epoch: int) -> bool:
    """Return whether a node leads in a later epoch and knows its high watermark."""
    try:
        answer = await node.call(ApiKey.DESCRIBE_QUORUM, REQUEST)
    except ConnectionFailed:
        return False
    partition = answer["topics"][0]["partitions"][0]
    leads = partition["error_code"] == ErrorCode.NONE and partition["leader_epoch"] > epoch
    return bool(leads and partition["high_watermark"] >= 0)
