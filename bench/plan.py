"""A plan for 100 brokers and 100,000 partitions, 10 brokers added and 5 drained (P9), and striped placement (P1).

The peer of the plan is what kafka-reassign-partitions --generate works out: AdminUtils over the brokers that stay, topic by topic.
It does not look for few moves, it deals anew; so three figures belong together: the time, the copies, and what each copies beside
the lower bound. Both sides begin with the same topics and brokers without racks. What it leaves out: carrying a plan out.
"""

import functools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.harness import Better, Effort, Row, alternate, duration, side_of, throughput, timed
from bench.placement_peer import PlacementJvm, compiled_placement_peer
from controller_core.cluster.placement import Racks, place_replicas
from controller_core.cluster.placement_striped import place_striped
from controller_core.cluster.planner import PlanRequest, plan_moves

NAME = "plan"
"""What rows are called by; they are measured with the benchmark `placement`."""

BROKERS, ADDED, DRAINED = 100, 10, 5
TOPICS, PARTITIONS_OF_EACH = 1_000, 100
PLACED = 1_000_000
REPLICATION_FACTOR = 3
RACKS = 5
PEER = "what kafka-reassign-partitions --generate works out, hot"
SITUATION = f"{BROKERS} brokers, {TOPICS * PARTITIONS_OF_EACH:,} partitions RF {REPLICATION_FACTOR}, {ADDED} added, {DRAINED} drained"


def brokers(count: int, racks: int) -> Racks:
    """Return brokers by id; `racks` 0 stands for brokers without one."""
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
        for racks in (0, RACKS):
            yield _striped(jvm, racks, effort)


def _plans(jvm: PlacementJvm, effort: Effort) -> Iterator[Row]:
    question = situation()
    plan = plan_moves(question)
    work = ("generate", str(TOPICS), str(PARTITIONS_OF_EACH), str(ADDED), str(DRAINED))
    with jvm.hot(*work, quick=effort.quick) as peer:
        seconds = alternate(timed(functools.partial(plan_moves, question)), peer.run, effort.runs())
        moves = peer.checksum
    yield duration(f"{NAME}.time", f"P9 plan, time: {SITUATION}", PEER, seconds)
    lower = Better.LOWER
    ours, theirs = side_of([plan.copied_replicas]), side_of([moves])
    yield Row(f"{NAME}.copies", f"P9 plan, replicas copied: {SITUATION}", PEER, "replicas", lower, ours, theirs, 1)
    bound = plan.lower_bound_bytes
    ours, theirs = side_of([plan.copied_replicas / bound]), side_of([moves / bound])
    what = f"P9 plan, copies over their lower bound of {bound:,}: {SITUATION}"
    yield Row(f"{NAME}.over_bound", what, PEER, "times", lower, ours, theirs, 1)
    by_bytes = np.random.default_rng(9).lognormal(20, 1, len(question.replicas)).astype(np.int64)
    loaded = plan_moves(replace(question, loads=by_bytes))
    over = loaded.copied_bytes / loaded.lower_bound_bytes
    what = f"P9 plan, bytes over their lower bound (sizes lognormal), beside the bound itself: {SITUATION}"
    yield Row(f"{NAME}.bytes_over_bound", what, "the lower bound", "times", lower, side_of([over]), side_of([1.0]), 1)


def _striped(jvm: PlacementJvm, racks: int, effort: Effort) -> Row:
    kind, words = ("racks", f"{RACKS} racks") if racks else ("plain", "no racks")
    place = timed(functools.partial(place_striped, brokers(BROKERS, racks), PLACED, REPLICATION_FACTOR, 17))
    with jvm.hot("striped", str(PLACED), str(racks), quick=effort.quick) as peer:
        assert peer.checksum == PLACED, "both place as many"
        place()
        seconds = alternate(place, peer.run, effort.runs())
    what = f"P1 placement, 1 M partitions in stripes, {BROKERS} brokers, RF {REPLICATION_FACTOR}, {words}; hot; ours as columns"
    peer_is = "StripedReplicaPlacer.place, hot, Java lists"
    return throughput(f"{NAME}.striped.{kind}", what, peer_is, "partitions/s", PLACED, seconds)
