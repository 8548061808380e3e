"""Loads on topics whose replicas fail: the checks after each, of what clients read back and of all replicas' logs, and the report of a soak."""

import sys
from collections.abc import Iterator
from typing import TypeVar

from bench.soaking.invariants import BrokenError
from lab.checks.traffic_report import TrafficReport
from lab.errors import LabError
from lab.peers.replicated_cluster import ReplicatedCluster, ReplicatingBroker

_B = TypeVar("_B", bound=ReplicatingBroker)


def check_load(cluster: ReplicatedCluster[_B], topic: str, partitions: int, report: TrafficReport) -> None:
    """Raise BrokenError if a record was lost, is there twice or out of order, or logs differ. All replicas are in sync."""
    cluster.wait_until_in_sync(topic)
    if not report.ok or report.duplicates or report.out_of_order:
        raise BrokenError(f"the load on {topic}: {report.summary()}; {[*report.twice, *report.errors][:3]}")
    for partition in range(partitions):
        logs = cluster.logs(topic, partition)
        if len(set(logs.values())) > 1:
            sizes = {number: len(content) for number, content in logs.items()}
            raise BrokenError(f"the logs of {topic}-{partition} differ; their bytes by broker: {sizes}")


def print_lines(lines: Iterator[str], seed: int) -> int:
    """Print what a soak yields, and how it broke if it did; return the exit status."""
    try:
        for line in lines:
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
    except (BrokenError, LabError) as error:
        sys.stdout.write(f"seed {seed}: {error}\n")
        return 1
    return 0
