"""Checks after a load on a topic whose replicas failed: what clients read back, and the bytes of all replicas' logs."""

from typing import TypeVar

from bench.soaking.invariants import BrokenError
from lab.replicated_cluster import ReplicatedCluster, ReplicatingBroker
from lab.traffic_report import TrafficReport

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
