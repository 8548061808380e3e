"""Encoding of LeaderAndIsr 7: Steward, kio 0.6.2, the fastest codec in Python, and kafka-clients in a JVM (P5).

Each side encodes the same request from its own representation (Steward: dicts, and the controller's columns; kio: dataclasses; Java: its
data object), and the bytes are checked to be equal. The network is not measured.
"""

import io
import uuid
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from bench.harness import Effort, Row, alternate, promised, throughput, timed
from bench.jvm import Jvm, compiled_peer
from kafka_wire import codec
from kafka_wire.columns.states import StateColumns, TopicStates, encode_request

NAME = "codec"
ABOUT = "LeaderAndIsr 7 of 50 to 10,000 partitions, from dicts and columns, compared with kio and kafka-clients"

SIZES = (50, 1_000)
COLUMN_SIZES = (1_000, 10_000)
KIO, JAVA = "kio 0.6.2", "kafka-clients, hot"
AT_LEAST = {KIO: 50.0, JAVA: 1.0}
"""For the requests that the controller sends, which are encoded from columns."""
STATES_PER_RUN = 20_000
"""Enough that a run takes tens of milliseconds; the same for every side."""


def body(partitions: int) -> codec.Body:
    """Return the request; the peer's has equal fields."""
    states = []
    for partition in range(partitions):
        replicas = [(partition + step) % 4 + 1 for step in range(3)]
        state = {"partition_index": partition, "controller_epoch": 7, "leader": replicas[0]}
        epochs = {"leader_epoch": partition + 3, "partition_epoch": partition + 5}
        moving: dict[str, list[int]] = {"adding_replicas": [], "removing_replicas": []}
        states.append({**state, **epochs, **moving, "isr": replicas, "replicas": replicas, "is_new": False})
    topic = {"topic_name": "measured", "topic_id": uuid.UUID(int=(1 << 64) + 2), "partition_states": states}
    leaders = [
        {"broker_id": broker, "host_name": f"broker-{broker}.kafka.example", "port": 9092} for broker in range(1, 5)
    ]
    own = {"controller_id": 1000, "controller_epoch": 7, "broker_epoch": 42, "type": 0}
    return {**own, "topic_states": [topic], "live_leaders": leaders}


def measure(effort: Effort) -> Iterator[Row]:
    """Yield each row when it is measured."""
    with compiled_peer() as jvm:
        for partitions in SIZES:
            request = body(partitions)

            def encode(request: codec.Body = request) -> bytes:
                return codec.encode("LeaderAndIsrRequest", 7, request)

            yield from compared_with_peers(f"{NAME}.{partitions}", "", partitions, encode, jvm, effort)
        for partitions in COLUMN_SIZES:
            request = body(partitions)
            (topic,) = request["topic_states"]
            head = {name: value for name, value in request.items() if name != "topic_states"}
            columns = columns_of(topic)

            def encode_columns(head: codec.Body = head, columns: StateColumns = columns) -> bytes:
                return encode_request("LeaderAndIsrRequest", 7, head, columns)

            plain = codec.encode("LeaderAndIsrRequest", 7, request)
            assert plain == encode_columns(), "columns and dicts give the same bytes"
            name = f"{NAME}.columns.{partitions}"
            for row in compared_with_peers(name, " from columns", partitions, encode_columns, jvm, effort):
                yield promised(row, "P5", AT_LEAST[row.peer_is])


def compared_with_peers(
    name: str, source: str, partitions: int, encode: Callable[[], bytes], jvm: Jvm, effort: Effort
) -> Iterator[Row]:
    """Yield two rows: compared with kio's encoder and with Java's, of the same bytes."""
    bytes_of = encode()
    repeat = max(2, STATES_PER_RUN // partitions)
    what = f"LeaderAndIsr 7 of {partitions:,} partitions{source}, RF 3 ({len(bytes_of):,} bytes)"
    ours, theirs = timed(encode, repeat), timed(kio_encoder(bytes_of), repeat)
    ours(), theirs()
    seconds = alternate(ours, theirs, effort.runs())
    yield throughput(f"{name}.kio", what, KIO, "partitions/s", partitions, seconds)
    with jvm.hot("encode", str(partitions), repeat=repeat, quick=effort.quick) as peer:
        assert zlib.crc32(bytes_of) == peer.checksum, "both write the same bytes"
        seconds = alternate(ours, peer.run, effort.runs())
        yield throughput(f"{name}.java", what, JAVA, "partitions/s", partitions, seconds)


def columns_of(topic: codec.Body) -> StateColumns:
    """Convert a topic's states to columns, as the controller stores them."""
    states = topic["partition_states"]
    numbers = ("partition_index", "controller_epoch", "leader", "leader_epoch", "partition_epoch")
    return StateColumns(
        (TopicStates(topic["topic_name"], topic["topic_id"], len(states)),),
        {name: np.array([state[name] for state in states], np.int32) for name in numbers},
        {name: np.array([state[name] for state in states], np.int32) for name in ("isr", "replicas")},
        {"is_new": np.array([state["is_new"] for state in states])},
    )


def kio_encoder(bytes_of: bytes) -> Callable[[], Any]:
    """Create kio's encoder of a request from the request's bytes."""
    from kio.schema.leader_and_isr.v7.request import LeaderAndIsrRequest
    from kio.serial import entity_reader, entity_writer

    request, _ = entity_reader(LeaderAndIsrRequest)(bytes_of, 0)
    write = entity_writer(LeaderAndIsrRequest)

    def encode() -> bytes:
        buffer = io.BytesIO()
        write(buffer, request)
        return buffer.getvalue()

    assert bytes_of == encode(), "both write the same bytes"
    return encode
