"""Plans over four measured resources: 100 brokers x 100,000 partitions, and 270 brokers x 1.3 M replicas (P9).

The cluster: partitions dealt evenly in stripes over five racks, sizes and rates lognormal, brokers biased at random in both, bytes
out by a few fan-outs. The target: disk, bytes in, bytes out and leaders of each broker within 5 percent of the mean. Where
`CRUISE_CONTROL_SOURCE` names a checkout of Cruise Control, its optimizer is asked the same (once: it takes minutes); the time at 270
brokers is always compared with its published figure (its issue 1592: 10,500 topics, 1.3 M replicas, 13.5 min in the fast mode with
16 goals, hardware not published). No plan is executed.
"""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bench.harness import Better, Effort, Row, duration, promised, side_of, timed
from bench.planner.cruise_control import CruiseControl, compiled_cruise_control
from bench.planner.striped import place_striped
from lab.processes.process import highest_resident_bytes
from move_planner import MeasuredRequest, Plan, Resource, plan_measured

NAME = "measured-plan"
ABOUT = "a plan over disk, bytes in, bytes out and leaders, compared with the lower bound of bytes (P9)"

BROKERS, PARTITIONS = 100, 100_000
LARGE_BROKERS, LARGE_PARTITIONS = 270, 433_334
REPLICATION_FACTOR, RACKS = 3, 5
SEED = 9
BIAS = 0.25
"""Standard deviation of the logarithm by which a broker's replicas are larger, or busier, than others."""
TOLERANCE = 0.05
WITHIN = 1.1
"""A plan copies at most so many times what it must."""
LIMIT_MS, LARGE_LIMIT_MS = 10_000.0, 60_000.0
PUBLISHED_MS = 13.5 * 60_000
LARGE_RUNS = 3
MEMORY_MB = 512.0
"""What counts as small: of a process that does nothing else, the request included."""


def uneven(
    brokers: int = BROKERS, partitions: int = PARTITIONS, seed: int = SEED, bias: float = BIAS
) -> MeasuredRequest:
    """Return the question; the same numbers give the same question."""
    random = np.random.default_rng(seed)
    names = {broker: f"rack-{broker % RACKS}" for broker in range(brokers)}
    replicas = place_striped(names, partitions, REPLICATION_FACTOR, seed).copy()
    larger, busier = np.exp(random.normal(0, bias, (2, brokers)))
    size = random.lognormal(20, 1.2, partitions)
    arriving = random.lognormal(10, 1.0, partitions) * np.sqrt(size / size.mean()) * busier[replicas].prod(axis=1)
    leaving = arriving * (random.choice([0, 1, 1, 2, 5], partitions) + REPLICATION_FACTOR - 1)
    copied, into, out = (
        (column + 1).astype(np.int64) for column in (size * larger[replicas].prod(axis=1), arriving, leaving)
    )
    nothing = np.zeros(partitions, dtype=np.int64)
    resources = (
        Resource("disk", copied, nothing, TOLERANCE),
        Resource("bytes in", into, nothing, TOLERANCE),
        Resource("bytes out", nothing, out, TOLERANCE),
        Resource("leaders", nothing, nothing + 1, TOLERANCE),
    )
    return MeasuredRequest(replicas, names, copied, resources)


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row as soon as it is known."""
    question = uneven()
    message = f"{BROKERS} brokers, {PARTITIONS:,} partitions RF {REPLICATION_FACTOR}, four resources within 5 percent"
    plan = plan_measured(question)
    yield from _bytes(question, plan, "", message)
    runs = [timed(functools.partial(plan_measured, question))() for _ in range(effort.runs())]
    took = duration(f"{NAME}.time", f"a plan, time: {message}", "the limit", (runs, [LIMIT_MS / 1000]))
    yield promised(took, "P9", 1.0)
    with compiled_cruise_control() as peer:
        if peer is not None:
            yield from _compared_with(peer, question, plan, took, "", message)
        if not effort.quick:
            yield from _large(effort, peer)


def _large(effort: Effort, peer: CruiseControl | None) -> Iterator[Row]:
    question = uneven(LARGE_BROKERS, LARGE_PARTITIONS)
    replicas = LARGE_PARTITIONS * REPLICATION_FACTOR
    message = f"{LARGE_BROKERS} brokers, {replicas:,} replicas, four resources within 5 percent"
    plan = plan_measured(question)
    yield from _bytes(question, plan, ".large", message)
    runs = [timed(functools.partial(plan_measured, question))() for _ in range(effort.runs(LARGE_RUNS))]
    what = f"a plan, time: {message}"
    took = duration(f"{NAME}.large.time", what, "the limit", (runs, [LARGE_LIMIT_MS / 1000]))
    yield promised(took, "P9", 1.0)
    published = replace(
        took,
        name=f"{NAME}.large.published",
        peer_is="Cruise Control's published figure (16 goals, fast mode), not measured here",
        peer=side_of([PUBLISHED_MS]),
    )
    yield promised(published, "P9")
    if peer is not None:
        yield from _compared_with(peer, question, plan, took, ".large", message)
    command = [sys.executable, "-m", "bench.planner.measured_plan"]
    peak = float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    memory = Row(
        f"{NAME}.large.memory",
        f"a plan, peak memory of its process: {message}",
        "the limit",
        "MB",
        Better.LOWER,
        side_of([peak]),
        side_of([MEMORY_MB]),
        1,
    )
    yield promised(memory, "P9", 1.0)


def _compared_with(
    peer: CruiseControl, question: MeasuredRequest, plan: Plan, took: Row, kind: str, message: str
) -> Iterator[Row]:
    answer = peer.plan(question, RACKS, TOLERANCE)
    left = f", {' and '.join(answer.unreached)} not reached" if answer.unreached else ""
    peer_is = f"Cruise Control's optimizer, five goals, fast mode{left}; one run"
    name = f"{NAME}{kind}.cruise_control"
    yield promised(replace(took, name=f"{name}_time", peer_is=peer_is, peer=side_of([answer.seconds * 1000])), "P9")
    rows = (
        ("bytes", "bytes copied", "bytes", plan.copied_bytes, answer.copied_bytes),
        ("farthest", "farthest of any broker from its mean, in any resource", "%", farthest(plan) * 100, max(answer.farthest.values()) * 100),
    )  # fmt: skip
    for figure, what, unit, ours, theirs in rows:
        sides = (side_of([ours]), side_of([theirs]))
        yield promised(
            Row(f"{name}_{figure}", f"a plan, {what}: {message}", peer_is, unit, Better.LOWER, *sides, 1), "P9"
        )


def farthest(plan: Plan) -> float:
    """Return the most that a plan leaves any broker from its target in any resource, as a part of it."""
    return max(float((np.abs(resource.after - resource.target) / resource.target).max()) for resource in plan.resources)


def _bytes(question: MeasuredRequest, plan: Plan, kind: str, message: str) -> Iterator[Row]:
    rows = (
        (
            "over_bound",
            "bytes copied",
            "the lower bound of what must be copied",
            "bytes",
            plan.copied_bytes,
            plan.lower_bound_bytes,
            1 / WITHIN,
        ),
        # Ranges are rounded outwards to whole units, which is most of a leader where brokers have few.
        (
            "farthest",
            "farthest of any broker from its mean, in any resource",
            "the tolerance",
            "%",
            farthest(plan) * 100,
            TOLERANCE * 100,
            0.99,
        ),
        (
            "of_all",
            "bytes copied",
            "all bytes there are",
            "bytes",
            plan.copied_bytes,
            int(question.bytes.sum()) * REPLICATION_FACTOR,
            None,
        ),
    )
    for name, what, peer_is, unit, ours, peer, at_least in rows:
        row = Row(
            f"{NAME}{kind}.{name}",
            f"a plan, {what}: {message}",
            peer_is,
            unit,
            Better.LOWER,
            side_of([ours]),
            side_of([peer]),
            1,
        )
        yield promised(row, "P9", at_least)


if __name__ == "__main__":  # a process of its own, for its peak memory in MB
    plan_measured(uneven(LARGE_BROKERS, LARGE_PARTITIONS))
    sys.stdout.write(f"{highest_resident_bytes(os.getpid()) / 2**20:.0f}\n")
