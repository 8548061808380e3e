"""A fuzzer of the controller's listener: valid requests of any API, mutated, and hostile ones of any size, one after another.

It checks the longest stall of the server's event loop (CPU time of its thread), memory, errors in the server's log (each is a defect of a
handler), and that the process keeps answering. The same seed sends the same requests.
"""

import itertools
import random
import struct
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from bench.listener import frames
from bench.listener.load import FrontProcess, send_only
from bench.listener.server import ADMITTED, OPEN, REFUSED
from kafka_wire import ApiKey, codec, schema
from kafka_wire.failures import CodecError
from kafka_wire.schema import Field

STALL_MS = 50.0
MEMORY_RATIO = 8.0
LEAST_BYTES = 2 * 1024 * 1024
"""The bounds, and the size that smaller frames are judged as."""
MIN_REQUEST_BYTES = 8
BATCH = 20
"""Requests in one measurement."""
BATCHES_A_PROCESS = 50
"""Requests until the process is replaced, so that every mode gets its share of the time and topics do not accumulate."""
MAX_HOSTILE_BYTES = 4 * 1024 * 1024
MODES = (OPEN, ADMITTED, REFUSED)

TEXTS = ("", "a", "topic-1", "topic-2", "__consumer_offsets", "x" * 249, "User:admin", "1000", "\u00e9", "..", "a\nb")
NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 3, 4, 10, 100, 1_000, 2**15 - 1, 2**31 - 1)
BITS = {"int8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32, "int64": 64}
BOMBS = (
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x00",
    b"\x7f\xff",
)


def fuzz(seed: int, seconds: float, modes: Sequence[str] = MODES, *, stall_ms: float = STALL_MS) -> str | None:
    """Send requests for this time; return the violation, or None."""
    source = random.Random(seed)
    until = time.monotonic() + seconds
    sent, worst_ms, worst_ratio = 0, 0.0, 0.0
    for mode in itertools.cycle(modes):
        with FrontProcess(mode) as front:
            for _ in range(BATCHES_A_PROCESS):
                batch = [request(source) for _ in range(BATCH)]
                front.figures()
                for frame in batch:
                    with front.connection() as connection:
                        send_only(connection, frame)
                figures = front.figures()
                sent += len(batch)
                largest = max(LEAST_BYTES, *map(len, batch))
                worst_ms = max(worst_ms, figures.cpu_ms)
                worst_ratio = max(worst_ratio, figures.memory_bytes / largest)
                broken = [*figures.errors]
                if not front.is_alive or not front.send(codec.encode_request(ApiKey.API_VERSIONS, 0, 1, "fuzz", {})):
                    broken.append("the server does not answer any more")
                if figures.cpu_ms > stall_ms:
                    broken.append(f"the event loop was blocked for {figures.cpu_ms:.0f} ms of CPU time")
                if figures.memory_bytes > MEMORY_RATIO * largest:
                    broken.append(f"memory rose by {figures.memory_bytes:,} bytes; the largest frame has {largest:,}")
                if broken:
                    keys = ", ".join(_describe(frame) for frame in batch)
                    return f"{'; '.join(broken)} ({mode}, after {sent} requests; the last ones: {keys})"
                if time.monotonic() > until:
                    print(
                        f"front: {sent} requests, longest stall {worst_ms:.1f} ms, memory {worst_ratio:.2f} x",
                        flush=True,
                    )
                    return None
    raise AssertionError("modes are cycled")


def request(source: random.Random) -> bytes:
    """Draw a request frame: valid, mutated or hostile."""
    key, version = _draw_version(source)
    if source.random() < 0.2 and (arrays := frames.arrays(key, version)):
        size = int(2 ** source.uniform(6, MAX_HOSTILE_BYTES.bit_length() - 1))
        frame = frames.frame(key, version, source.choice(arrays), size)
    else:
        frame = valid(source, key, version)
    for _ in range(source.choice((0, 0, 1, 1, 2, 5))):
        frame = source.choice(MUTATIONS)(source, frame)
    return frame if len(frame) >= MIN_REQUEST_BYTES else frame + bytes(MIN_REQUEST_BYTES)


def valid(source: random.Random, key: ApiKey, version: int) -> bytes:
    """Draw a well-formed request."""
    name = key.message + "Request"
    body = _struct(source, schema.definition(name, version).fields, version)
    return codec.encode_request(key, version, source.randrange(2**31), source.choice((None, "fuzz")), body)


def _draw_version(source: random.Random) -> tuple[ApiKey, int]:
    while True:
        key = source.choice(list(ApiKey))
        try:
            lowest, highest = schema.known_versions(key.message + "Request")
        except CodecError:
            continue
        return key, source.randint(lowest, highest)


def _struct(source: random.Random, fields: Sequence[Field], version: int) -> codec.Body:
    return {field.key: _value(source, field, version) for field in fields if version in field.versions}


def _value(source: random.Random, field: Field, version: int) -> Any:
    if version in field.nullable and source.random() < 0.2:
        return None
    if field.is_array:
        element = field.elements()
        return [_value(source, element, version) for _ in range(source.choice((0, 1, 1, 2, 3)))]
    if field.kind == "struct":
        return _struct(source, field.fields, version)
    if field.kind in BITS:
        bits, unsigned = BITS[field.kind], field.kind.startswith("u")
        number = source.choice(NUMBERS)
        lowest, highest = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        return max(lowest, min(highest, number))
    draws: dict[str, Callable[[], Any]] = {
        "bool": lambda: source.random() < 0.5,
        "string": lambda: source.choice(TEXTS),
        "uuid": lambda: uuid.UUID(int=source.choice((0, 1, 2, source.getrandbits(128)))),
        "float64": lambda: source.choice((0.0, -1.0, 1e300, float("nan"), float("inf"))),
    }
    return draws.get(field.kind, lambda: source.randbytes(source.choice((0, 1, 20, 1_000))))()


def _flip(source: random.Random, frame: bytes) -> bytes:
    place = source.randrange(4, len(frame)) if len(frame) > 4 else 0
    return frame[:place] + bytes([frame[place] ^ (1 << source.randrange(8))]) + frame[place + 1 :]


def _bomb(source: random.Random, frame: bytes) -> bytes:
    place, bomb = source.randrange(min(4, len(frame)), len(frame) + 1), source.choice(BOMBS)
    return frame[:place] + bomb + frame[place + (len(bomb) if source.random() < 0.5 else 0) :]


def _cut(source: random.Random, frame: bytes) -> bytes:
    return frame[: source.randrange(4, len(frame) + 1)] if len(frame) > 4 else frame


def _repeat(source: random.Random, frame: bytes) -> bytes:
    begin = source.randrange(len(frame))
    return frame[:begin] + frame[begin : begin + 40] * source.choice((2, 10, 1_000)) + frame[begin:]


def _garbage(source: random.Random, frame: bytes) -> bytes:
    return frame + source.randbytes(source.choice((1, 3, 100)))


MUTATIONS: tuple[Callable[[random.Random, bytes], bytes], ...] = (_flip, _bomb, _cut, _repeat, _garbage)


def _describe(frame: bytes) -> str:
    key, version = struct.unpack_from(">hh", frame)
    name = ApiKey(key).name if key in set(ApiKey) else str(key)
    return f"{name} v{version} {len(frame)}"
