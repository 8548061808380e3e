"""`make soak ARGS="--light"`: light brokers are killed one after another under load, under Steward's controller.

Each kill is a `kill -9` of a random broker, which starts again after a random pause. After it all replicas are in sync again. After some
kills the load is compared with what is read back: no acknowledged record is lost, none is there twice, and the logs of all replicas have the
same bytes.
"""

import random
import time
from collections.abc import Iterator

from bench.soaking.checked_load import check_load, print_lines
from lab.light_cluster import LightCluster, light_cluster
from lab.traffic import Traffic

KILLS = 200
KILLS_PER_TOPIC = 10
"""Kills until the load is read back, and the next topic begins."""
LONGEST_PAUSE_S = 4.0
"""Longer than the session of a broker: some of the killed ones are fenced before they are back."""
PARTITIONS = 4
RECORDS_PER_S = 100
NEW_RECORDS = 50
"""Records that must be acknowledged after a kill."""


def soak_light(kills: int, seed: int) -> int:
    """Kill brokers, print a line for each topic, and return the exit status."""

    def lines() -> Iterator[str]:
        with light_cluster() as cluster:
            yield from kill_under_load(cluster, kills, random.Random(seed))

    return print_lines(lines(), seed)


def kill_under_load(cluster: LightCluster, kills: int, source: random.Random) -> Iterator[str]:
    """Kill random brokers, and yield a line for each topic of the load. Raises BrokenError and LabError."""
    for first in range(0, kills, KILLS_PER_TOPIC):
        topic = f"load-{first}"
        cluster.create(topic, PARTITIONS, min_insync_replicas="2")
        count = min(KILLS_PER_TOPIC, kills - first)
        with Traffic(cluster.bootstrap, topic, rate_per_s=RECORDS_PER_S, consume=False) as traffic:
            recovered_s = [_kill(cluster, topic, traffic, source) for _ in range(count)]
            report = traffic.stop()
        check_load(cluster, topic, PARTITIONS, report)
        yield f"{first + count} kills, in sync after {max(recovered_s):.1f} s at most | {report.summary()}"


def _kill(cluster: LightCluster, topic: str, traffic: Traffic, source: random.Random) -> float:
    victim = cluster[source.choice(sorted(cluster))]
    time.sleep(source.uniform(0, 0.5))
    victim.kill()
    time.sleep(source.choice((0.0, source.uniform(0, LONGEST_PAUSE_S))))
    victim.launch()
    started = time.monotonic()
    victim.wait_until_serving()
    cluster.wait_until_in_sync(topic)
    seconds = time.monotonic() - started
    traffic.wait_for_acks(NEW_RECORDS)
    return seconds
