"""Growth of the throughput of one light broker and of Kafka 4.3 with partitions and connections, with TLS, each compression, and a second core.

Partitions and connections are loaded by raw requests (`produce_load`), the rest by librdkafka. Both brokers have a second listener with TLS and
the same certificate. With one core each, the broker has the first core to itself and the client the second one; otherwise they share both.
"""

import contextlib
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.broker_load import VALUE_BYTES, Spent, create_topic, delete_topic, measured, produce
from bench.harness import Better, Effort, Row, side_of
from bench.light_broker.data_path import BATCHES, KAFKA, OURS
from bench.light_broker.produce_load import RefusedProduceError, produce_raw
from lab.peers.authority import Authority
from lab.peers.kraft import kraft_cluster
from lab.peers.light_broker import light_broker
from lab.processes.folder import lab_folder
from lab.processes.ports import free_port
from lab.processes.waiting import wait_until

NAME = "light-broker-growth"
ABOUT = "throughput of the light broker by partitions, connections, TLS, compression and cores, compared with Kafka 4.3 (about 8 minutes)"

RUNS = 3
WARM_BYTES, QUICK_WARM_BYTES = 512 * 1024**2, 4 * 1024**2
"""In each batch size: Kafka's code is compiled after them."""
RUN_BYTES, QUICK_RUN_BYTES = 128 * 1024**2, 4 * 1024**2
COUNTS = (1, 100, 1_000)
"""Of partitions, and of connections."""
PARTITIONS, CONNECTIONS = 10, 10
"""Where the other number grows."""
CODECS = ("gzip", "snappy", "lz4", "zstd")
TEXT = (
    b'{"user": "%08x", "action": "view", "path": "/orders/%08x", "referrer": "/", "status": 200, "duration_ms": 12}\n'
)
"""A line of a log: such values become a tenth of their size."""
CORES = 2
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Broker:
    """A running broker: its listeners without and with TLS, and its process."""

    bootstrap: str
    tls_bootstrap: str
    pid: int


def measure(effort: Effort) -> Iterator[Row]:
    """Yield the rows when both brokers have run."""
    total_bytes = QUICK_RUN_BYTES if effort.quick else RUN_BYTES
    spent: dict[str, dict[str, list[Spent]]] = defaultdict(lambda: defaultdict(list))
    with lab_folder() as folder, _brokers(folder) as (authority, brokers):
        for broker in brokers.values():
            for batch_bytes in BATCHES.values():
                _produced(broker, "warm", batch_bytes, QUICK_WARM_BYTES if effort.quick else WARM_BYTES)
        for _ in range(effort.runs(RUNS)):
            for name, broker in brokers.items():
                for figure, load in _loads(broker, total_bytes, {"ssl.ca.location": str(authority.certificate)}):
                    spent[figure][name].append(load)
    for figure, sides in spent.items():
        yield _row(figure, sides)


@contextlib.contextmanager
def _brokers(folder: Path) -> Iterator[tuple[Authority, Mapping[str, Broker]]]:
    """Yield the brokers, each alone, and who signed their certificate."""
    authority = Authority(folder)
    files = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(authority.store("broker", "/CN=broker"))}
    plain, tls = free_port(), free_port()
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SSL://127.0.0.1:{tls}"
    with (
        light_broker({**files, "listeners": listeners}) as ours,
        kraft_cluster((1,), settings=files, listeners={"SSL": "SSL"}, heap="256m", is_small=False) as kafka,
    ):
        address = f"127.0.0.1:{kafka[1].ports['SSL']}"
        yield (
            authority,
            {
                OURS: Broker(f"127.0.0.1:{plain}", f"127.0.0.1:{tls}", ours.pid),
                KAFKA: Broker(kafka[1].address, address, kafka[1].process.pid),
            },
        )


def _loads(broker: Broker, total_bytes: int, trust: Mapping[str, str]) -> Iterator[tuple[str, Spent]]:
    """Yield each figure of one broker with its run."""
    for count in COUNTS:
        yield f"partitions_{count}", _raw(broker, total_bytes, partitions=count, connections=CONNECTIONS)
        yield f"connections_{count}", _raw(broker, total_bytes, partitions=PARTITIONS, connections=count)
    yield "tls", _produced(broker, "tls", BATCHES["1mib"], total_bytes, {"security.protocol": "SSL", **trust})
    for codec in CODECS:
        yield codec, _produced(broker, codec, BATCHES["1mib"], total_bytes, {"compression.type": codec}, is_text=True)
    for name, batch_bytes in BATCHES.items():
        yield f"two_cores_{name}", _produced(broker, "two-cores", batch_bytes, total_bytes)
        with _one_core_each(broker):
            yield f"one_core_{name}", _produced(broker, "one-core", batch_bytes, total_bytes)


def _raw(broker: Broker, total_bytes: int, *, partitions: int, connections: int) -> Spent:
    topic, batch_bytes = f"raw-{partitions}-{connections}", BATCHES["16kib"]

    def send(connections: int, requests: int) -> None:
        produce_raw(
            broker.bootstrap,
            topic,
            partitions=partitions,
            connections=connections,
            batch_bytes=batch_bytes,
            requests=requests,
        )

    create_topic(broker.bootstrap, topic, partitions)
    _wait_for_leaders(lambda: send(1, partitions))
    found = measured([broker.pid], total_bytes, lambda: send(connections, total_bytes // batch_bytes))
    delete_topic(broker.bootstrap, topic)
    return found


def _wait_for_leaders(send: Callable[[], None]) -> None:
    """Send until each partition has a leader: a broker may know a topic before it leads it."""

    def succeeds() -> bool:
        try:
            send()
        except RefusedProduceError:
            return False
        return True

    wait_until(succeeds, timeout_s=TIMEOUT_S, what="each partition has a leader")


def _produced(
    broker: Broker,
    topic: str,
    batch_bytes: int,
    total_bytes: int,
    settings: Mapping[str, str] | None = None,
    *,
    is_text: bool = False,
) -> Spent:
    given = settings or {}
    address = broker.tls_bootstrap if given.get("security.protocol") == "SSL" else broker.bootstrap
    values = [_text() for _ in range(64)] if is_text else None
    create_topic(broker.bootstrap, topic)
    found = measured(
        [broker.pid],
        total_bytes,
        lambda: produce(address, topic, batch_bytes, total_bytes, settings=given, values=values),
    )
    delete_topic(broker.bootstrap, topic)
    return found


def _text() -> bytes:
    lines = (TEXT % (index, int.from_bytes(os.urandom(4), "big")) for index in range(VALUE_BYTES // len(TEXT) + 1))
    return b"".join(lines)[:VALUE_BYTES]


@contextlib.contextmanager
def _one_core_each(broker: Broker) -> Iterator[None]:
    """Let the broker and this process have a core each."""
    every = os.sched_getaffinity(0)
    first, second, *_ = sorted(every)
    threads = [int(path.name) for path in Path(f"/proc/{broker.pid}/task").iterdir()]
    for thread in threads:
        os.sched_setaffinity(thread, {first})
    os.sched_setaffinity(0, {second})
    try:
        yield
    finally:
        for thread in (0, *threads):
            with contextlib.suppress(ProcessLookupError):  # a thread of the JVM that has ended
                os.sched_setaffinity(thread, every)


def _row(figure: str, sides: Mapping[str, list[Spent]]) -> Row:
    ours, kafka = sides[OURS], sides[KAFKA]
    also = {"processor s/GB": side_of([run.cpu_s_per_gb for run in ours]).median}
    also |= {"peer's processor s/GB": side_of([run.cpu_s_per_gb for run in kafka]).median}
    mine, theirs = (side_of([run.mb_per_s for run in side]) for side in (ours, kafka))
    return Row(f"{NAME}.{figure}", WHAT[figure], KAFKA, "MB/s", Better.HIGHER, mine, theirs, len(ours), also=also)


_RAW = "raw requests with a batch of 16 KiB, acks=1"
_LIBRDKAFKA = "values of 1 KiB, one librdkafka client, acks=1"
WHAT: Mapping[str, str] = {
    **{f"partitions_{count}": f"{_RAW}, {CONNECTIONS} connections, {count:,} partitions" for count in COUNTS},
    **{f"connections_{count}": f"{_RAW}, {PARTITIONS} partitions, {count:,} connections" for count in COUNTS},
    "tls": f"{_LIBRDKAFKA}, batches of 1 MiB, TLS",
    **{
        codec: f"{_LIBRDKAFKA}, batches of 1 MiB of text, {codec}; megabytes before the compression" for codec in CODECS
    },
    **{f"two_cores_{name}": f"{_LIBRDKAFKA}, batches of {name}, {CORES} cores for both" for name in BATCHES},
    **{
        f"one_core_{name}": f"{_LIBRDKAFKA}, batches of {name}, one core for the broker, one for the client"
        for name in BATCHES
    },
}
"""Description of each figure."""
