"""Encoding of Metadata responses from columns, in steps, shared by all clients with the same request.

    all topics ──► encoded for this version of the state? ── yes ──► the same bytes for every client
                        │ no
                        ▼
                   one encoding at a time, in steps, from a snapshot ──► cached for later requests

A response shows the state at the time of the request or a later one. If the state changes during an encoding, its result still goes to
the clients whose requests arrived before its snapshot.
"""

import asyncio
import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller_core.model import Cluster, Topic
from controller_core.shell.active import ActiveController, OverloadedError
from controller_core.shell.admin import cluster_apis, responses
from controller_core.shell.admin.metadata_snapshot import Snapshot
from controller_core.shell.pace import ClientPace
from kafka_node.context import RequestContext
from kafka_node.topic_names import is_internal
from kafka_wire import Body, ErrorCode
from kafka_wire.columns import metadata_encoder
from kafka_wire.encoded_body import ArrayPlace, EncodedBody
from kafka_wire.net.outflow import never

log = logging.getLogger(__name__)

PIECE_PARTITIONS = 2_048
"""Partitions that are encoded in one call: about a millisecond, and a piece of 100 KiB."""
MAX_LIVE_BYTES = 128 * 1024 * 1024
"""Limit for encoded responses of more than one piece that are cached or being sent: ten of 200,000 partitions."""
MAX_KEPT_ENCODINGS = 8
"""Cached responses for all topics: one per listener and API version in use. The least recently used one is evicted."""
MEMORY_CHECK_S = 0.05
"""Pause between checks whether connections have released enough memory."""
MAX_MEMORY_WAIT_S = 20.0
"""A request is refused after this time without free memory; Kafka's clients time out after 30 s (request.timeout.ms). A waiting
response may block finished ones behind it on its connection, which occupy memory."""


class Entry(NamedTuple):
    """A topic of a response: one of the snapshot, or an error."""

    head: metadata_encoder.TopicHead
    operations: int = metadata_encoder.NOT_REQUESTED


class Shape(NamedTuple):
    """Key of responses for all topics: responses with the same key and state are the same bytes."""

    listener: str
    api_version: int
    topic_operations: int
    cluster_operations: int


@dataclass(frozen=True, slots=True)
class _Kept:
    version: int
    body: EncodedBody


class _Encoding:
    """An encoding that was requested; `version` is that of its snapshot once it is taken."""

    def __init__(self) -> None:
        self.version: int | None = None
        self.task: asyncio.Task[EncodedBody] | None = None


class MetadataEncoder:
    """The encoder of one process. `is_urgent` reports whether the controller has events to process."""

    def __init__(self, is_urgent: Callable[[], bool] = never, *, max_live_bytes: int = MAX_LIVE_BYTES) -> None:
        self._is_urgent = is_urgent
        self._max_live_bytes = max_live_bytes
        self._lock = asyncio.Lock()
        self._kept: OrderedDict[Shape, _Kept] = OrderedDict()
        self._encodings: dict[Shape, _Encoding] = {}
        self._live: weakref.WeakSet[EncodedBody] = weakref.WeakSet()
        self._cluster: weakref.ref[Cluster] | None = None
        self._tasks: set[asyncio.Task[EncodedBody]] = set()
        self._is_short_of_memory = False

    @property
    def live_bytes(self) -> int:
        """Total size of the existing responses of more than one piece."""
        return sum(body.byte_count for body in self._live)

    def pace(self) -> ClientPace:
        """Return a pace for one computation."""
        return ClientPace(self._is_urgent)

    async def all_topics(self, active: ActiveController, shape: Shape) -> EncodedBody:
        """Describe all topics; concurrent requests of the same shape share the response."""
        self._reset_if_new_term(active.cluster)
        requested_version = active.cluster.metadata_version
        while True:
            kept = self._kept.get(shape)
            if kept is not None and kept.version >= requested_version:
                self._kept.move_to_end(shape)
                return kept.body
            running = self._encodings.get(shape)
            if running is None:
                running = self._encodings[shape] = _Encoding()
                running.task = asyncio.create_task(self._encode_all(active, shape, running), name="encode Metadata")
                self._tasks.add(running.task)
                running.task.add_done_callback(self._tasks.discard)
            assert running.task is not None
            is_recent = running.version is None or running.version >= requested_version
            body = await asyncio.shield(running.task)
            if is_recent:
                return body

    async def some_topics(
        self,
        active: ActiveController,
        context: RequestContext,
        resolve: Callable[[Cluster], tuple[Sequence[Topic], Sequence[Entry]]],
        cluster_operations: int,
    ) -> EncodedBody:
        """Describe the topics that `resolve` returns at the time of the snapshot.

        `resolve` returns the topics and the entries of the response; the entries with partitions are for the topics, in this order.
        """
        topics, entries = resolve(active.cluster)
        if sum(len(topic.rows) for topic in topics) + len(entries) <= PIECE_PARTITIONS:
            snapshot = Snapshot.of_some(active.cluster, context.listener, topics)
            head = _head(active, context.listener, cluster_operations)
            pieces = (b"".join(_encoded(context.api_version, head, snapshot, entries, len(entries))),)
            return EncodedBody(pieces, metadata_encoder.array_place(context.api_version, head, len(entries)))
        async with self._lock:
            await self._wait_for_memory()
            topics, entries = resolve(active.cluster)
            head = _head(active, context.listener, cluster_operations)
            snapshot = Snapshot.of_some(active.cluster, context.listener, topics)
            place = metadata_encoder.array_place(context.api_version, head, len(entries))
            return await self._in_steps(_encoded(context.api_version, head, snapshot, entries, len(entries)), place)

    async def listed_topics(
        self,
        active: ActiveController,
        context: RequestContext,
        only: Sequence[Topic],
        operations: Callable[[str], int],
        cluster_operations: int,
    ) -> EncodedBody:
        """Describe the topics that a caller may see, with its authorized operations."""
        async with self._lock:
            await self._wait_for_memory()
            head = _head(active, context.listener, cluster_operations)
            snapshot = await Snapshot.of_all(active.cluster, context.listener, self.pace(), only)
            entries = _entries(snapshot, operations)
            return await self._in_steps(_encoded(context.api_version, head, snapshot, entries, len(snapshot.topics)))

    def _reset_if_new_term(self, cluster: Cluster) -> None:
        """Drop the responses of an earlier term, whose cluster counted versions separately."""
        if self._cluster is None or self._cluster() is not cluster:
            self._cluster = weakref.ref(cluster)
            self._kept.clear()
            self._encodings.clear()

    async def _encode_all(self, active: ActiveController, shape: Shape, encoding: _Encoding) -> EncodedBody:
        try:
            async with self._lock:
                if (stale := await self._wait_for_memory(shape)) is not None:
                    return stale
                cluster = active.cluster
                encoding.version = cluster.metadata_version
                head = _head(active, shape.listener, shape.cluster_operations)
                snapshot = await Snapshot.of_all(cluster, shape.listener, self.pace())
                entries = _entries(snapshot, lambda _: shape.topic_operations)
                pieces = _encoded(shape.api_version, head, snapshot, entries, len(snapshot.topics))
                body = await self._in_steps(pieces)
                if self._cluster is not None and self._cluster() is cluster:
                    self._keep(shape, _Kept(encoding.version, body))
                return body
        finally:
            if self._encodings.get(shape) is encoding:
                del self._encodings[shape]

    def _keep(self, shape: Shape, kept: _Kept) -> None:
        self._kept[shape] = kept
        self._kept.move_to_end(shape)
        while len(self._kept) > MAX_KEPT_ENCODINGS:
            self._kept.popitem(last=False)

    async def _wait_for_memory(self, shape: Shape | None = None) -> EncodedBody | None:
        """Wait until there is memory for an encoding. Raises OverloadedError after MAX_MEMORY_WAIT_S.

        If memory is short and a response of the shape from an earlier state is cached, returns that response.
        """
        deadline_s = asyncio.get_running_loop().time() + MAX_MEMORY_WAIT_S
        while self._is_full():
            others = [other for other in self._kept if other != shape]
            if others:
                del self._kept[others[0]]
                continue
            if not self._is_short_of_memory:  # log once, until memory is free again
                self._is_short_of_memory = True
                log.warning(
                    "Metadata responses are delayed or stale: clients read earlier responses too slowly",
                    extra={"bytes": self.live_bytes, "limit_bytes": self._max_live_bytes},
                )
            if shape is not None and (kept := self._kept.get(shape)) is not None:
                return kept.body
            if asyncio.get_running_loop().time() >= deadline_s:
                raise OverloadedError("clients read Metadata responses too slowly")
            await asyncio.sleep(MEMORY_CHECK_S)
        self._is_short_of_memory = False
        return None

    def _is_full(self) -> bool:
        """Return whether too much memory is in use; two responses, an old and a new one, are always permitted."""
        sizes = [body.byte_count for body in self._live]
        return sum(sizes) > max(self._max_live_bytes, 2 * max(sizes, default=0))

    async def _in_steps(self, pieces: Iterable[bytes], place: ArrayPlace | None = None) -> EncodedBody:
        """Collect the pieces, with pauses between steps. An empty piece only allows a pause."""
        pace = self.pace()
        made: list[bytes] = []
        for piece in pieces:
            if piece:
                made.append(piece)
            await pace.step_if_due()
        body = EncodedBody(tuple(made), place)
        if len(made) > 1:
            self._live.add(body)
        return body


def _head(active: ActiveController, listener: str, cluster_operations: int) -> Body:
    """Return every field but the topics."""
    brokers = [
        {"node_id": node.id, "host": node.host, "port": node.port, "rack": node.rack}
        for node in cluster_apis.nodes(active, listener)
    ]
    head = {"brokers": brokers, "cluster_id": active.cluster_id, "controller_id": active.cluster.controller_id}
    return (
        head
        if cluster_operations == metadata_encoder.NOT_REQUESTED
        else {**head, "cluster_authorized_operations": cluster_operations}
    )


def _entries(snapshot: Snapshot, operations: Callable[[str], int]) -> Iterator[Entry]:
    for topic, count in zip(snapshot.topics, snapshot.counts, strict=True):
        yield Entry(described_head(topic, count), operations(topic.name))


def described_head(topic: Topic, partitions: int) -> metadata_encoder.TopicHead:
    """Describe a topic that exists."""
    return metadata_encoder.TopicHead(
        ErrorCode.NONE, topic.name, topic.topic_id or responses.NO_TOPIC_ID, is_internal(topic.name), partitions
    )


def _encoded(version: int, head: Body, snapshot: Snapshot, entries: Iterable[Entry], count: int) -> Iterator[bytes]:
    """Encode piece by piece. A topic with many partitions takes several; while a piece is collected, empty ones are yielded."""
    before, after = metadata_encoder.prefix_and_suffix(version, head, count)
    waiting: list[tuple[bytes, int]] = [(before, 0)]
    first = end = 0
    tails: dict[int, bytes] = {}
    for topic, operations in entries:
        waiting.append((metadata_encoder.topic_head(version, topic), 0))
        left = topic.partitions
        while left:
            taken = min(left, first + PIECE_PARTITIONS - end)
            waiting.append((b"", taken))
            left -= taken
            end += taken
            if end - first == PIECE_PARTITIONS:
                yield _flushed(version, snapshot, waiting, first, end)
                waiting, first = [], end
        if operations not in tails:
            tails[operations] = metadata_encoder.topic_tail(version, operations)
        waiting.append((tails[operations], 0))
        if len(waiting) >= 3 * PIECE_PARTITIONS:
            yield _flushed(version, snapshot, waiting, first, end)
            waiting, first = [], end
        else:
            yield b""
    waiting.append((after, 0))
    yield _flushed(version, snapshot, waiting, first, end)


def _flushed(version: int, snapshot: Snapshot, waiting: Sequence[tuple[bytes, int]], first: int, end: int) -> bytes:
    """Encode partitions and insert them between the collected texts."""
    if first == end:
        return b"".join(text for text, _ in waiting)
    encoded, offsets = metadata_encoder.encode_partitions(version, snapshot.partitions(first, end, version))
    parts = []
    at = 0
    for text, partitions in waiting:
        if partitions:
            parts.append(encoded[offsets[at] : offsets[at + partitions]])
            at += partitions
        else:
            parts.append(text)
    return b"".join(parts)
