"""The listener's event loop under hostile requests: how long one request blocks it, and how much memory it takes.

Every API, with frames of 2, 8 and 100 MiB and of the largest size that the listener accepts, each array filled with the smallest
elements. The server is a separate process with the real handlers; a task in its loop measures the delay of its own calls. Stalls are CPU
time of the loop's thread, so that other processes of a busy machine do not count; the wall clock has its own rows.
"""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.harness import Better, Effort, Row, Side, promised
from bench.listener import frames
from bench.listener.load import Figures, FrontProcess
from bench.listener.server import ADMITTED, OPEN, REFUSED
from controller_core.shell.front.request_limits import AUTHORIZATION_UNITS, MIB, SLICED, own_bytes, own_units
from controller_core.zookeeper_mode.apis import SERVED
from kafka_wire import ApiKey, codec

NAME = "stall"
ABOUT = "the event loop's longest stall, and memory, under requests of 2, 8 and 100 MiB of every API"

STALL_MS = 50.0
MEMORY_RATIO = 8.0
"""The bounds."""
SIZES = {"2MiB": 2 * MIB, "8MiB": 8 * MIB, "100MiB": 100 * MIB - 1024}
LIMIT = "limit"
"""The largest frame that is still decoded."""
MEMORY_FLOOR_BYTES = 2 * MIB
"""Smaller frames are rated as if they had this size: a process gets memory from the system in blocks."""
HEADER_BYTES = 64
HONEST_PARTITIONS, HONEST_TOPICS = 200_000, 2_000
MODES = {OPEN: "unauthenticated", ADMITTED: "authenticated", REFUSED: "refused"}


@dataclass(frozen=True, slots=True)
class Case:
    """One request and its costs."""

    key: ApiKey
    version: int
    array: str
    frame_bytes: int
    answered: bool
    figures: Figures

    @property
    def memory_ratio(self) -> float:
        """Return memory in relation to the frame's bytes."""
        return self.figures.memory_bytes / max(self.frame_bytes, MEMORY_FLOOR_BYTES)

    def __str__(self) -> str:
        outcome = "answered" if self.answered else "closed"
        return f"{self.key.name} v{self.version} {self.array} ({self.frame_bytes:,} bytes, {outcome})"


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    for scenario in SCENARIOS:
        yield from scenario(effort)


def hostile_requests(effort: Effort) -> Iterator[Row]:
    """Measure every API, in every mode and size."""
    keys = [ApiKey.METADATA, ApiKey.ALTER_PARTITION, ApiKey.PRODUCE] if effort.quick else list(ApiKey)
    for mode, message in MODES.items():
        for size in (*SIZES, LIMIT):
            cases: list[Case] = []
            with FrontProcess(mode) as front:
                for key in keys:
                    cases += [_case(front, *frame) for frame in _frames(key, size)]
            yield from _rows(f"{size}.{message}", cases)


def honest_requests(_effort: Effort) -> Iterator[Row]:
    """Measure the largest requests that Kafka's own clients and brokers send."""
    with FrontProcess(OPEN) as front:
        cases = [_case(front, key, version, "honest", frame) for key, version, frame in _honest()]
    if not all(case.answered for case in cases):
        raise AssertionError(
            f"an honest request was not answered: {[str(case) for case in cases if not case.answered]}"
        )
    yield from _rows("honest", cases)


def _honest() -> Iterator[tuple[ApiKey, int, bytes]]:
    numbers = range(HONEST_PARTITIONS // HONEST_TOPICS)
    members = [{"broker_id": broker_id, "broker_epoch": -1} for broker_id in (1, 2, 3)]
    states = [
        {"partition_index": number, "leader_epoch": 1, "partition_epoch": 1, "new_isr_with_epochs": members}
        for number in numbers
    ]
    targets = [{"partition_index": number, "replicas": [1, 2, 3]} for number in numbers]
    names = [f"topic-of-a-usual-length-{number:06d}" for number in range(HONEST_TOPICS)]
    changed = [{"topic_id": uuid.UUID(int=number + 1), "partitions": states} for number in range(HONEST_TOPICS)]
    moved = [{"name": name, "partitions": targets} for name in names]
    created = [{"name": name, "num_partitions": 10, "replication_factor": 3} for name in names]
    asked = [{"name": f"topic-of-a-usual-length-{number:06d}"} for number in range(HONEST_PARTITIONS)]
    bodies: dict[tuple[ApiKey, int], codec.Body] = {
        (ApiKey.ALTER_PARTITION, 3): {"broker_id": 1, "broker_epoch": 1, "topics": changed},
        (ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0): {"topics": moved},
        (ApiKey.METADATA, 9): {"topics": asked, "allow_auto_topic_creation": False},
        (ApiKey.CREATE_TOPICS, 7): {"topics": created, "timeout_ms": 30_000},
        (ApiKey.DELETE_TOPICS, 5): {"topic_names": names, "timeout_ms": 30_000},
    }
    for (key, version), body in bodies.items():
        yield key, version, codec.encode_request(key, version, 1, "bench", body)


SCENARIOS: tuple[Callable[[Effort], Iterator[Row]], ...] = (hostile_requests, honest_requests)


def _frames(key: ApiKey, size: str) -> Iterator[tuple[ApiKey, int, str, bytes]]:
    versions = frames.versions(key)
    if size not in {LIMIT, "2MiB"}:
        versions = [
            version for version in versions if version == versions[-1]
        ]  # rejected or forwarded by size, as at 2 MiB
    for version in versions:
        served = key in SERVED and version in SERVED[key]
        arrays = frames.arrays(key, version)
        if size == "100MiB":
            arrays = arrays[:1]
        if not arrays and size != LIMIT:
            yield key, version, "padding", frames.padded(key, version, SIZES[size])
        for array in arrays:
            if size != LIMIT:
                frame = frames.frame(key, version, array, SIZES[size] - HEADER_BYTES)
            elif served and key in SLICED:
                frame = frames.frame(key, version, array, own_bytes(key) - HEADER_BYTES, SLICED[key].max_elements)
            else:
                units = own_units(key) if served else AUTHORIZATION_UNITS
                frame = frames.largest_decoded(key, version, array, 2 * MIB, units)
            yield key, version, ".".join(array), frame


def _case(front: FrontProcess, key: ApiKey, version: int, array: str, frame: bytes) -> Case:
    front.figures()
    answered = front.send(frame)
    return Case(key, version, array, len(frame), answered, front.figures())


def _rows(name: str, cases: list[Case]) -> Iterator[Row]:
    cpu = sorted(case.figures.cpu_ms for case in cases)
    worst = max(cases, key=lambda case: case.figures.cpu_ms)
    what = f"longest stall by one request of {len(cases)}, CPU time of the loop; worst: {worst}"
    yield _row(f"{NAME}.requests.{name}", what, "ms", cpu, STALL_MS)
    wall = sorted(case.figures.wall_ms for case in cases)
    worst = max(cases, key=lambda case: case.figures.wall_ms)
    what = f"the same by the wall clock, with whatever else the machine did; worst: {worst}"
    yield _row(f"{NAME}.requests.{name}.wall", what, "ms", wall, STALL_MS)
    memory = sorted(case.memory_ratio for case in cases)
    worst = max(cases, key=lambda case: case.memory_ratio)
    what = f"largest rise of memory by one request of {len(cases)}; worst: {worst}"
    yield _row(f"{NAME}.memory.{name}", what, "x its bytes", memory, MEMORY_RATIO)


def _row(name: str, what: str, unit: str, figures: list[float], bound: float) -> Row:
    ours, peer = Side(figures[-1], figures[0], figures[-1]), Side(bound, bound, bound)
    row = Row(name, what, "the bound", unit, Better.LOWER, ours, peer, len(figures))
    return promised(row, "P14", None if name.endswith(".wall") else 1.0)
