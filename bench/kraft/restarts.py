"""kill -9 of two brokers one after the other, each started again at once: how long nothing is acknowledged (K3).

Stock brokers of Kafka 4.3 with sessions of 3 s, under Steward's controllers (ADR 57) and under Kafka's, with a load of acks=all. The second kill
follows the first after some seconds, which decide what happens: whether the first broker is registered again, and whether partitions move to a
broker that is dead already.
"""

import time
from collections.abc import Iterator

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from bench.harness import Better, Effort, Row, promised, side_of
from bench.kraft.controllers import Kind
from bench.kraft.stage import BROKERS, Stage, stage
from lab.checks.traffic import Traffic
from lab.peers.kafka import HEAP

NAME = "kraft-restarts"
ABOUT = "kill -9 and restart of two brokers in turn, compared with Kafka 4.3's controllers (twenty minutes)"

APART_S = (0.5, 1.0, 1.5, 2.4, 2.5, 2.8, 3.5, 4.5, 8.0)
QUICK_APART_S = (1.0,)
ROUNDS = 2
SETTINGS = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}
TOPIC, PARTITIONS = "orders", 6
FIRST, SECOND = BROKERS[:2]
PEER = "the same brokers under three controllers of Kafka 4.3"
ACKS_AFTER = 200
"""Acknowledgements after the end: all partitions have leaders again."""
WORST_AT_LEAST, EACH_AT_LEAST = 2.0, 1.0
TIMEOUT_S = 60.0


def measure(effort: Effort) -> Iterator[Row]:
    """Yield a row for each time between the kills, and the worst of all."""
    apart = QUICK_APART_S if effort.quick else APART_S
    rounds = effort.runs(ROUNDS)
    ours, peer = ({fault: _gaps(kind, fault, rounds) for fault in apart} for kind in (Kind.STEWARD, Kind.KAFKA))
    what = "two of three brokers killed and started at once, session 3 s: the longest time without an acknowledgement in a partition"
    for fault in apart:
        name = f"{NAME}.{f'{fault:g}'.replace('.', '_')}"
        row = Row(
            name,
            f"{what}, {fault:g} s apart",
            PEER,
            "ms",
            Better.LOWER,
            side_of(ours[fault]),
            side_of(peer[fault]),
            rounds,
        )
        yield promised(row, "K3", EACH_AT_LEAST)
    mine, theirs = (side_of([max(max(gaps) for gaps in side.values())]) for side in (ours, peer))
    row = Row(
        f"{NAME}.worst", f"{what}, the worst of all runs", PEER, "ms", Better.LOWER, mine, theirs, rounds * len(apart)
    )
    yield promised(row, "K3", WORST_AT_LEAST)


def _gaps(kind: Kind, apart_s: float, rounds: int) -> list[float]:
    """Return the longest gap of each round in ms; each is a cluster's first, so that all begin alike."""
    return [_gap_ms(kind, apart_s) for _ in range(rounds)]


def _gap_ms(kind: Kind, apart_s: float) -> float:
    with stage(kind, SETTINGS, HEAP) as running:
        _create_topic(running)
        with Traffic(running.bootstrap, TOPIC, consume=False) as traffic:
            traffic.wait_for_acks(ACKS_AFTER)
            began_s = time.perf_counter()
            _kill_and_start(running, FIRST)
            time.sleep(max(0.0, began_s + apart_s - time.perf_counter()))
            _kill_and_start(running, SECOND)
            for broker in (FIRST, SECOND):
                running[broker].wait_until_ready()
            traffic.wait_for_acks(ACKS_AFTER)
            report = traffic.stop()
    assert report.ok, report.summary()
    return max(report.longest_partition_gap_ms.values())


def _kill_and_start(running: Stage, broker: int) -> None:
    running[broker].kill()
    running[broker].launch()


def _create_topic(running: Stage) -> None:
    admin = AdminClient({"bootstrap.servers": running.bootstrap})
    topic = NewTopic(TOPIC, PARTITIONS, len(BROKERS), config={"min.insync.replicas": "1"})
    admin.create_topics([topic])[TOPIC].result(TIMEOUT_S)
