"""Deletion of `/controller` with 1,000 to 200,000 partitions, until the last broker is notified: Steward and a native controller (P3).

The time covers the notification, the new znode, reading all state, decisions and requests. Each side takes over twice before the
measurement. At the largest size the resident memory of the Steward controller is compared with its limit.
"""

from collections.abc import Iterator, Mapping

from bench.harness import Better, Effort, Row, duration, promised, side_of
from bench.zookeeper_mode.large_layout import LargeLayout, large_layout

NAME = "takeover_at_scale"
ABOUT = "/controller deleted over up to 200,000 partitions, compared with a native controller (many minutes)"

SIZES = (1_000, 10_000, 50_000, 200_000)
QUICK_SIZES = (1_000,)
ROUNDS = 3
PEER = "only Kafka 3.9's controller, the same znodes and sockets"
AT_LEAST = {50_000: 5.0, 200_000: 5.0}
MEMORY_LIMIT_MB = 300.0
"""Limit of Steward's memory with 200,000 partitions of RF 3."""


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row for each size, and memory at the largest."""
    sizes = QUICK_SIZES if effort.quick else SIZES
    for partitions in sizes:
        rounds = effort.runs(ROUNDS)
        with large_layout(partitions) as stage:
            with stage.ours() as controller:
                ours = _takeovers(stage, rounds)
                memory = {
                    "rest": controller.process.resident_bytes,
                    "highest": controller.process.highest_resident_bytes,
                }
            with stage.native():
                theirs = _takeovers(stage, rounds)
        what = f"/controller deleted to the last LeaderAndIsr, {partitions:,} partitions, RF 3, 10 brokers that are sockets"
        row = duration(f"{NAME}.{partitions}", what, PEER, (ours, theirs))
        yield promised(row, "P3", AT_LEAST.get(partitions))
        if partitions == max(sizes):
            yield from _memory_rows(partitions, memory)


def _takeovers(stage: LargeLayout, rounds: int) -> list[float]:
    return [stage.takeover() for _ in range(rounds + 1)][1:]


def _memory_rows(partitions: int, memory: Mapping[str, int]) -> Iterator[Row]:
    limit = side_of([MEMORY_LIMIT_MB])
    for name, message in (("rest", "at rest"), ("highest", "at its highest")):
        what = f"resident memory of the Steward controller with {partitions:,} partitions, RF 3, after take-overs, {message}"
        figure = side_of([memory[name] / 1e6])
        row = Row(f"{NAME}.memory_{name}", what, "the limit", "MB", Better.LOWER, figure, limit, 1)
        yield promised(row, "memory", 1.0)
