"""Encoding of Metadata responses from columns, in steps, shared by all clients whose answer is the same.

    all topics ──► encoded for this version of the state? ── yes ──► the same bytes for every asker
                        │ no
                        ▼
                   one encoding at a time, in steps, from a snapshot ──► kept for the next askers

An answer shows the state at the moment of the question or a later one. If the state changes while an encoding runs, its result
still goes to the clients that asked before its snapshot was taken.
"""

import asyncio
import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller_core.model.cluster import Cluster, Topic
from controller_core.rules.topic_names import is_internal
from controller_core.shell.active import ActiveController, OverloadedError
from controller_core.shell.admin.cluster_nodes import nodes
from controller_core.shell.admin.computation_steps import Pace
from controller_core.shell.admin.metadata_snapshot import Snapshot
from controller_core.shell.admin.outcomes import NO_TOPIC_ID
from kafka_node.context import RequestContext
from kafka_wire import metadata_encoding
from kafka_wire.codec import Body
from kafka_wire.encoded_body import ArrayPlace, EncodedBody
from kafka_wire.errors import ErrorCode
from kafka_wire.net.outflow import never

log = logging.getLogger(__name__)

PIECE_PARTITIONS = 2_048
"""Partitions that are encoded at once: a millisecond's work, and a piece of 100 KiB."""
MAX_LIVE_BYTES = 128 * 1024 * 1024
"""Encoded answers of more than one piece that exist at a time, kept or still being sent: ten of 200,000 partitions."""
MAX_KEPT_ENCODINGS = 8
"""Answers for all topics that are kept: one per listener and API version in use. The oldest in use makes room."""
ROOM_CHECK_S = 0.05
"""Pause between checks whether connections have released enough memory."""
MAX_ROOM_WAIT_S = 20.0
"""After so long without room a request is refused: clients of Kafka give up after 30 s themselves (request.timeout.ms). A
response that waits here may keep a finished one behind it on its connection from being sent, which holds the room."""


class Entry(NamedTuple):
    """A topic of an answer: one of the snapshot's, or only an error."""

    head: metadata_encoding.TopicHead
    operations: int = metadata_encoding.NOT_REQUESTED


class Shape(NamedTuple):
    """What answers for all topics differ by. Answers of one shape are the same bytes."""

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
        self._is_short_of_room = False

    @property
    def live_bytes(self) -> int:
        """Bytes of the answers of several pieces that exist."""
        return sum(body.byte_count for body in self._live)

    def pace(self) -> Pace:
        """Make a pace for one computation."""
        return Pace(self._is_urgent)

    async def all_topics(self, active: ActiveController, shape: Shape) -> EncodedBody:
        """Describe all topics; all askers of the same shape share the answer."""
        self._follow(active.cluster)
        asked_version = active.cluster.metadata_version
        while True:
            kept = self._kept.get(shape)
            if kept is not None and kept.version >= asked_version:
                self._kept.move_to_end(shape)
                return kept.body
            running = self._encodings.get(shape)
            if running is None:
                running = self._encodings[shape] = _Encoding()
                running.task = asyncio.create_task(self._encode_all(active, shape, running), name="encode Metadata")
                self._tasks.add(running.task)
                running.task.add_done_callback(self._tasks.discard)
            assert running.task is not None
            is_recent = running.version is None or running.version >= asked_version
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
        """Describe the topics that `resolve` finds at the moment of the snapshot, with an entry for each answered topic.

        The entries that have partitions stand for the topics, in their order.
        """
        topics, entries = resolve(active.cluster)
        if sum(len(topic.rows) for topic in topics) + len(entries) <= PIECE_PARTITIONS:
            snapshot = Snapshot.of_some(active.cluster, context.listener, topics)
            head = _head(active, context.listener, cluster_operations)
            pieces = (b"".join(_encoded(context.api_version, head, snapshot, entries, len(entries))),)
            return EncodedBody(pieces, metadata_encoding.array_place(context.api_version, head, len(entries)))
        async with self._lock:
            await self._room()
            topics, entries = resolve(active.cluster)
            head = _head(active, context.listener, cluster_operations)
            snapshot = Snapshot.of_some(active.cluster, context.listener, topics)
            place = metadata_encoding.array_place(context.api_version, head, len(entries))
            return await self._in_steps(_encoded(context.api_version, head, snapshot, entries, len(entries)), place)

    async def listed_topics(
        self,
        active: ActiveController,
        context: RequestContext,
        only: Sequence[Topic],
        operations: Callable[[str], int],
        cluster_operations: int,
    ) -> EncodedBody:
        """Describe those of all topics that a caller may see, with its operations."""
        async with self._lock:
            await self._room()
            head = _head(active, context.listener, cluster_operations)
            snapshot = await Snapshot.of_all(active.cluster, context.listener, self.pace(), only)
            entries = _entries(snapshot, operations)
            return await self._in_steps(_encoded(context.api_version, head, snapshot, entries, len(snapshot.topics)))

    def _follow(self, cluster: Cluster) -> None:
        """Forget the answers of an earlier term: its cluster counted versions of its own."""
        if self._cluster is None or self._cluster() is not cluster:
            self._cluster = weakref.ref(cluster)
            self._kept.clear()
            self._encodings.clear()

    async def _encode_all(self, active: ActiveController, shape: Shape, encoding: _Encoding) -> EncodedBody:
        try:
            async with self._lock:
                if (stale := await self._room(shape)) is not None:
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

    async def _room(self, shape: Shape | None = None) -> EncodedBody | None:
        """Wait until an encoding may be made. Raises OverloadedError when that takes too long.

        Returns the last answer of the shape, from an earlier state, where there is no room and this one is there.
        """
        deadline_s = asyncio.get_running_loop().time() + MAX_ROOM_WAIT_S
        while self._is_full():
            others = [one for one in self._kept if one != shape]
            if others:
                del self._kept[others[0]]
                continue
            if not self._is_short_of_room:  # once, until there is room again
                self._is_short_of_room = True
                log.warning(
                    "Metadata responses wait or are served from an earlier state: clients are slow to read those they have",
                    extra={"bytes": self.live_bytes, "limit_bytes": self._max_live_bytes},
                )
            if shape is not None and (kept := self._kept.get(shape)) is not None:
                return kept.body
            if asyncio.get_running_loop().time() >= deadline_s:
                raise OverloadedError("clients are slow to read the Metadata responses they have")
            await asyncio.sleep(ROOM_CHECK_S)
        self._is_short_of_room = False
        return None

    def _is_full(self) -> bool:
        """Report whether too much memory is in use; two answers, an old and a new one, are always permitted."""
        sizes = [body.byte_count for body in self._live]
        return sum(sizes) > max(self._max_live_bytes, 2 * max(sizes, default=0))

    async def _in_steps(self, pieces: Iterable[bytes], place: ArrayPlace | None = None) -> EncodedBody:
        """Collect the pieces, with pauses between steps. An empty piece is only an occasion for a pause."""
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
        for node in nodes(active, listener)
    ]
    head = {"brokers": brokers, "cluster_id": active.cluster_id, "controller_id": active.cluster.controller_id}
    return (
        head
        if cluster_operations == metadata_encoding.NOT_REQUESTED
        else {**head, "cluster_authorized_operations": cluster_operations}
    )


def _entries(snapshot: Snapshot, operations: Callable[[str], int]) -> Iterator[Entry]:
    for topic, count in zip(snapshot.topics, snapshot.counts, strict=True):
        yield Entry(described_head(topic, count), operations(topic.name))


def described_head(topic: Topic, partitions: int) -> metadata_encoding.TopicHead:
    """Describe a topic that exists."""
    return metadata_encoding.TopicHead(
        ErrorCode.NONE, topic.name, topic.topic_id or NO_TOPIC_ID, is_internal(topic.name), partitions
    )


def _encoded(version: int, head: Body, snapshot: Snapshot, entries: Iterable[Entry], count: int) -> Iterator[bytes]:
    """Encode piece by piece. A topic of many partitions takes several; while one is collected, empty ones are yielded."""
    before, behind = metadata_encoding.prefix_and_suffix(version, head, count)
    waiting: list[tuple[bytes, int]] = [(before, 0)]
    first = end = 0
    tails: dict[int, bytes] = {}
    for topic, operations in entries:
        waiting.append((metadata_encoding.topic_head(version, topic), 0))
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
            tails[operations] = metadata_encoding.topic_tail(version, operations)
        waiting.append((tails[operations], 0))
        if len(waiting) >= 3 * PIECE_PARTITIONS:
            yield _flushed(version, snapshot, waiting, first, end)
            waiting, first = [], end
        else:
            yield b""
    waiting.append((behind, 0))
    yield _flushed(version, snapshot, waiting, first, end)


def _flushed(version: int, snapshot: Snapshot, waiting: Sequence[tuple[bytes, int]], first: int, end: int) -> bytes:
    """Put encoded partitions between what stands before and behind them."""
    if first == end:
        return b"".join(text for text, _ in waiting)
    encoded, offsets = metadata_encoding.encode_partitions(version, snapshot.partitions(first, end, version))
    parts = []
    at = 0
    for text, partitions in waiting:
        if partitions:
            parts.append(encoded[offsets[at] : offsets[at + partitions]])
            at += partitions
        else:
            parts.append(text)
    return b"".join(parts)
