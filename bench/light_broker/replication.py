"""Three light brokers and three brokers of Kafka 4.3 that replicate each record, on one machine, under one librdkafka client.

Steward's brokers have a controller of Steward's, Kafka's one of Kafka's, each a process of its own. Kafka runs twice, as in `light_broker`; both
have taken data before the first measured run. All clusters take turns. The latency is that of a steady rate, from the call of the client to
the acknowledgement of all replicas.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.broker_load import Spent, create_topic, delete_topic, latencies_s, measured, produce
from bench.harness import Better, Effort, Row, duration, promised, side_of
from bench.light_broker.data_path import BATCHES, CPU_AT_LEAST, KAFKA, PEERS, SMALL_KAFKA
from lab.peers.kraft import CONTROLLER_ID, kraft_cluster
from lab.peers.light_cluster import light_cluster

NAME = "light-replication"
ABOUT = "three light brokers that replicate with acks=all, compared with three brokers of Kafka 4.3 (about 8 minutes)"

RUNS = 3
BROKERS = (1, 2, 3)
OURS = "three light brokers"
WARM_BYTES, QUICK_WARM_BYTES = 512 * 1024**2, 8 * 1024**2
"""Kafka's brokers have compiled the code of their data path by then: later runs are no faster."""
RUN_BYTES: Mapping[str, int] = {"1mib": 256 * 1024**2, "16kib": 64 * 1024**2}
QUICK_RUN_BYTES = 4 * 1024**2
AT_LEAST: Mapping[str, float] = {"produce_1mib": 1.0, "produce_16kib": 2.0}
"""Least ratio of throughput (P13)."""
LATENCY_AT_LEAST = 1.0
RATE_PER_S = 1_000
LATENCY_RECORDS, QUICK_LATENCY_RECORDS = 10_000, 1_000
PERCENTILE = 0.99


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running cluster: where clients reach it, and its brokers' processes."""

    bootstrap: str
    pids: Sequence[int]


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows when all clusters have run."""
    runs = effort.runs(RUNS)
    spent: dict[str, dict[str, list[Spent]]] = defaultdict(lambda: defaultdict(list))
    latencies: dict[str, list[float]] = defaultdict(list)
    with _clusters() as clusters:
        for cluster in clusters.values():
            _warm(cluster, QUICK_WARM_BYTES if effort.quick else WARM_BYTES)
        for _ in range(runs):
            for name, cluster in clusters.items():
                for figure, total_bytes in RUN_BYTES.items():
                    amount = QUICK_RUN_BYTES if effort.quick else total_bytes
                    spent[f"produce_{figure}"][name].append(_produced(cluster, figure, amount))
                records = QUICK_LATENCY_RECORDS if effort.quick else LATENCY_RECORDS
                latencies[name].append(_latency_s(cluster, records))
    for figure, sides in spent.items():
        yield from _load_rows(figure, sides)
    yield _latency_row(latencies)


@contextlib.contextmanager
def _clusters() -> Iterator[Mapping[str, Cluster]]:
    with (
        light_cluster(BROKERS) as ours,
        kraft_cluster(BROKERS, controller_id=CONTROLLER_ID) as small,
        kraft_cluster(BROKERS, controller_id=CONTROLLER_ID, heap="256m", is_small=False) as usual,
    ):
        yield {
            OURS: Cluster(ours.bootstrap, [broker.pid for broker in ours.values()]),
            SMALL_KAFKA: Cluster(small.bootstrap(), [node.process.pid for node in small.values()]),
            KAFKA: Cluster(usual.bootstrap(), [node.process.pid for node in usual.values()]),
        }


def _warm(cluster: Cluster, total_bytes: int) -> None:
    for figure in BATCHES:
        _produced(cluster, figure, total_bytes // len(BATCHES))


def _produced(cluster: Cluster, figure: str, total_bytes: int) -> Spent:
    """Produce to a topic of its own, which is deleted."""
    topic = f"replicated-{figure}"
    create_topic(cluster.bootstrap, topic, replicas=len(BROKERS))
    found = measured(
        cluster.pids, total_bytes, lambda: produce(cluster.bootstrap, topic, BATCHES[figure], total_bytes, acks="all")
    )
    delete_topic(cluster.bootstrap, topic)
    return found


def _latency_s(cluster: Cluster, records: int) -> float:
    topic = "latency"
    create_topic(cluster.bootstrap, topic, replicas=len(BROKERS))
    found = sorted(latencies_s(cluster.bootstrap, topic, records, RATE_PER_S))
    delete_topic(cluster.bootstrap, topic)
    return found[int(len(found) * PERCENTILE)]


def _load_rows(figure: str, sides: Mapping[str, list[Spent]]) -> Iterator[Row]:
    """Yield the throughput of one figure, and the processor time of all brokers."""
    rates = {name: [run.mb_per_s for run in runs] for name, runs in sides.items()}
    costs = {name: [run.cpu_s_per_gb for run in runs] for name, runs in sides.items()}
    fastest = max(PEERS, key=lambda name: side_of(rates[name]).median)
    cheapest = min(PEERS, key=lambda name: side_of(costs[name]).median)
    what, runs = "values of 1 KiB, three replicas on one machine, acks=all", len(rates[OURS])
    throughput = (side_of(rates[OURS]), side_of(rates[fastest]), runs)
    yield promised(Row(f"{NAME}.{figure}", what, fastest, "MB/s", Better.HIGHER, *throughput), "P13", AT_LEAST[figure])
    cost = (side_of(costs[OURS]), side_of(costs[cheapest]), runs)
    message = f"processor time of the three brokers: {what}"
    row = Row(f"{NAME}.{figure}_cpu", message, cheapest, "processor seconds a GB", Better.LOWER, *cost)
    yield promised(row, "P13", CPU_AT_LEAST)


def _latency_row(latencies: Mapping[str, list[float]]) -> Row:
    peer = min(PEERS, key=lambda name: side_of(latencies[name]).median)
    what = f"acks=all, three replicas on one machine, {RATE_PER_S} records a second of 1 KiB: 99th percentile"
    row = duration(f"{NAME}.latency_p99", what, peer, (latencies[OURS], latencies[peer]))
    return promised(row, "P13", LATENCY_AT_LEAST)
