"""A plan for 100 brokers and 100,000 partitions, 10 brokers added and 5 drained (P9).

The peer is the plan of kafka-reassign-partitions --generate: AdminUtils over the remaining brokers, topic by topic. It assigns
all replicas again and does not search for few moves, so three figures belong together: the time, the copies, and the copies of each
compared with the lower bound. Both sides begin with the same topics and brokers without racks. No plan is executed.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.harness import Better, Effort, Row, alternate, duration, promised, side_of, timed
from bench.planner.placement_peer import PlacementJvm, compiled_placement_peer
from controller_core.rules.placement import Racks, place_replicas
from move_planner import PlanRequest, plan_moves

NAME = "plan"
"""Names of rows, which are measured with the benchmark `placement`."""

BROKERS, ADDED, DRAINED = 100, 10, 5
TOPICS, PARTITIONS_OF_EACH = 1_000, 100
REPLICATION_FACTOR = 3
LIMIT_MS = 5_000.0
WITHIN = 1.1
"""A plan copies at most so many times what it must."""
BOUND = "the lower bound of what must be copied"
PEER = "what kafka-reassign-partitions --generate works out, hot"
SITUATION = f"{BROKERS} brokers, {TOPICS * PARTITIONS_OF_EACH:,} partitions RF {REPLICATION_FACTOR}, {ADDED} added, {DRAINED} drained"


def brokers(count: int, racks: int) -> Racks:
    """Return brokers by id; `racks` 0 means brokers without racks."""
    return {broker: f"rack-{broker % racks}" if racks else None for broker in range(count)}


def situation() -> PlanRequest:
    """Return the question; the peer asks itself the same."""
    topics = [
        place_replicas(brokers(BROKERS, 0), PARTITIONS_OF_EACH, REPLICATION_FACTOR, topic % BROKERS, topic % BROKERS)
        for topic in range(TOPICS)
    ]
    replicas = np.concatenate(topics)
    return PlanRequest(
        replicas, brokers(BROKERS + ADDED, 0), leaders=replicas[:, 0].copy(), drained=frozenset(range(DRAINED))
    )


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row as soon as it is known."""
    with compiled_placement_peer() as jvm:
        yield from _plans(jvm, effort)


def _plans(jvm: PlacementJvm, effort: Effort) -> Iterator[Row]:
    question = situation()
    plan = plan_moves(question)
    work = ("generate", str(TOPICS), str(PARTITIONS_OF_EACH), str(ADDED), str(DRAINED))
    with jvm.hot(*work, quick=effort.quick) as peer:
        seconds = alternate(timed(functools.partial(plan_moves, question)), peer.run, effort.runs())
        moves = peer.checksum
    took = duration(f"{NAME}.time", f"a plan, time: {SITUATION}", PEER, seconds)
    yield promised(took, "P9")
    limit = replace(took, name=f"{NAME}.time_limit", peer_is="the limit", peer=side_of([LIMIT_MS]))
    yield promised(limit, "P9", 1.0)
    replicas = functools.partial(_amount, unit="replicas")
    yield replicas("copies", "replicas copied", PEER, plan.copied_replicas, moves)
    bound = replicas("over_bound", "replicas copied", BOUND, plan.copied_replicas, plan.lower_bound_bytes)
    yield promised(bound, "P9", 1 / WITHIN)
    by_bytes = np.random.default_rng(9).lognormal(20, 1, len(question.replicas)).astype(np.int64)
    loaded = plan_moves(replace(question, loads=by_bytes))
    copied, least = loaded.copied_bytes, loaded.lower_bound_bytes
    bound = _amount("bytes_over_bound", "bytes copied (sizes lognormal)", BOUND, copied, least, "bytes")
    yield promised(bound, "P9", 1 / WITHIN)


def _amount(name: str, message: str, peer_is: str, ours: float, peer: float, unit: str) -> Row:
    what = f"a plan, {message}: {SITUATION}"
    row = Row(f"{NAME}.{name}", what, peer_is, unit, Better.LOWER, side_of([ours]), side_of([peer]), 1)
    return promised(row, "P9")
