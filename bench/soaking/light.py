"""`make soak ARGS="--light"`: light brokers fail one after another under load, under Steward's controller.

    kill        kill -9 of a random broker, which starts again after a random pause
    full disk   no file of the broker can grow any longer: it ends, and starts again when there is room
    slow disk   for some seconds each of its disk calls takes a random time

After each fault all replicas are in sync again. After some faults the load is compared with what is read back: no acknowledged record is
lost, none is there twice, and the logs of all replicas have the same bytes.
"""

import random
import resource
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from bench.soaking.checked_load import check_load, print_lines
from lab.checks.traffic import Traffic
from lab.peers.light_broker import KRaftLightBroker
from lab.peers.light_cluster import LightCluster, light_cluster

KILLS, DISK_FAULTS = 200, 40
FAULTS_PER_TOPIC = 10
"""Faults until the load is read back, and the next topic begins."""
LONGEST_PAUSE_S = 4.0
"""Longer than the session of a broker: some of the killed ones are fenced before they are back."""
PARTITIONS = 4
RECORDS_PER_S = 100
NEW_RECORDS = 50
"""Records that must be acknowledged after a fault."""
ROOM_BYTES = 4_096
"""At most so many bytes can be appended to the largest log of the load before the disk is full: a second of the load."""
SLOW_S = (2.0, 8.0)
"""Shorter and longer than the session of a broker."""
DELAYS_S = (0.05, 0.5, 3.0)
"""Longest delays of a disk call: replicas that lag, requests that time out, a loop that stalls for a session."""


def soak_light(kills: int, disk_faults: int, seed: int) -> int:
    """Let brokers fail in a random order, print a line for each topic, and return the exit status."""
    source = random.Random(seed)
    faults = ["kill"] * kills + [ON_DISKS[number % len(ON_DISKS)] for number in range(disk_faults)]
    source.shuffle(faults)

    def lines() -> Iterator[str]:
        with light_cluster(with_slow_disks=True) as cluster:
            yield from fail_under_load(cluster, faults, source)

    return print_lines(lines(), seed)


def fail_under_load(cluster: LightCluster, faults: Sequence[str], source: random.Random) -> Iterator[str]:
    """Let random brokers fail, and yield a line for each topic of the load. Raises BrokenError and LabError."""
    for first in range(0, len(faults), FAULTS_PER_TOPIC):
        topic, chosen = f"load-{first}", faults[first : first + FAULTS_PER_TOPIC]
        cluster.create(topic, PARTITIONS, min_insync_replicas="2")
        with Traffic(cluster.bootstrap, topic, rate_per_s=RECORDS_PER_S, consume=False) as traffic:
            recovered_s = [_fail(cluster, topic, traffic, KINDS[kind], source) for kind in chosen]
            report = traffic.stop()
        check_load(cluster, topic, PARTITIONS, report)
        message = ", ".join(f"{kind}: {count}" for kind, count in Counter(chosen).items())
        yield f"{first + len(chosen)} faults ({message}), in sync after {max(recovered_s):.1f} s at most | {report.summary()}"


def _fail(cluster: LightCluster, topic: str, traffic: Traffic, fault: "Fault", source: random.Random) -> float:
    victim = cluster[source.choice(sorted(cluster))]
    time.sleep(source.uniform(0, 0.5))
    fault(victim, topic, source)
    started = time.monotonic()
    victim.wait_until_serving()
    cluster.wait_until_in_sync(topic)
    seconds = time.monotonic() - started
    traffic.wait_for_acks(NEW_RECORDS)
    return seconds


def _kill(victim: KRaftLightBroker, _topic: str, source: random.Random) -> None:
    victim.kill()
    time.sleep(source.choice((0.0, source.uniform(0, LONGEST_PAUSE_S))))
    victim.launch()


def _fill_disk(victim: KRaftLightBroker, topic: str, source: random.Random) -> None:
    """Let the limit of a file's size refuse writes as a full disk does."""
    sizes = (path.stat().st_size for folder in victim.log_dirs for path in folder.glob(f"{topic}-*/*.log"))
    limit_bytes = max(sizes) + source.randint(0, ROOM_BYTES)
    resource.prlimit(victim.pid, resource.RLIMIT_FSIZE, (limit_bytes, limit_bytes))
    victim.wait()
    victim.launch()


def _slow_disk(victim: KRaftLightBroker, _topic: str, source: random.Random) -> None:
    victim.disk.begin(source.choice(DELAYS_S))
    time.sleep(source.uniform(*SLOW_S))
    victim.disk.end()


Fault = Callable[[KRaftLightBroker, str, random.Random], None]

KINDS: Mapping[str, Fault] = {"kill": _kill, "full disk": _fill_disk, "slow disk": _slow_disk}

ON_DISKS = ("full disk", "slow disk")
