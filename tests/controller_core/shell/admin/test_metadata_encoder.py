"""Sharing of encoded Metadata responses: one encoding per version of the state, in steps, with bounded memory."""

import asyncio
from collections.abc import Iterator

import numpy as np
import pytest

from controller_core.model import Origin
from controller_core.model.changes import TopicAdded
from controller_core.model.zookeeper_changes import BrokersObserved, NotificationsProcessed
from controller_core.shell.active import OverloadedError
from controller_core.shell.admin import metadata_encoder, metadata_snapshot
from controller_core.shell.admin.metadata_encoder import MetadataEncoder, Shape
from controller_core.shell.pace import ClientPace
from controller_core.zookeeper_mode.transitions import apply
from kafka_wire import codec
from kafka_wire.columns.metadata_encoder import NOT_REQUESTED
from kafka_wire.encoded_body import EncodedBody
from tests.controller_core.shell.admin.fake_active import FakeActive, active_with, broker

SHAPE = Shape("CLIENT", 12, NOT_REQUESTED, NOT_REQUESTED)
OTHER = Shape("CLIENT", 9, NOT_REQUESTED, NOT_REQUESTED)
TOPICS, PARTITIONS = 20, 5


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use small pieces, and pause at every opportunity regardless of the clock."""
    monkeypatch.setattr(metadata_encoder, "PIECE_PARTITIONS", 7)
    monkeypatch.setattr(ClientPace, "is_due", True)


@pytest.fixture
def snapshots(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """State versions of the snapshots that were taken."""
    taken: list[int] = []
    of_all = metadata_snapshot.Snapshot.of_all

    async def noted(cluster, *others):
        taken.append(cluster.metadata_version)
        return await of_all(cluster, *others)

    monkeypatch.setattr(metadata_snapshot.Snapshot, "of_all", noted)
    return taken


def active_with_topics() -> FakeActive:
    """Return a controller with topics."""
    active = active_with(broker(1), broker(2))
    for number in range(TOPICS):
        add(active, f"topic-{number}")
    return active


def add(active: FakeActive, name: str) -> None:
    """Add a topic."""
    numbers, replicas = np.arange(PARTITIONS, dtype=np.int32), np.full((PARTITIONS, 1), 1, np.int32)
    apply(active.cluster, TopicAdded(name, None, numbers, replicas, Origin.OBSERVED))


def names(body: EncodedBody, version: int = 12) -> set[str]:
    """Return the names of the topics in an answer."""
    answer = codec.decode("MetadataResponse", version, b"".join(body.pieces))
    return {topic["name"] for topic in answer["topics"]}


async def until_snapshot(snapshots: list[int], count: int = 1) -> None:
    """Wait until the encoding has taken its snapshot."""
    for _ in range(100):
        if len(snapshots) >= count:
            return
        await asyncio.sleep(0)
    raise AssertionError(f"{len(snapshots)} snapshots were taken")


async def test_concurrent_requests_share_one_encoding(snapshots: list[int]) -> None:
    """A hundred clients refresh their metadata after a broker failure at the cost of one."""
    active, encoder = active_with_topics(), MetadataEncoder()
    bodies = await asyncio.gather(*(encoder.all_topics(active, SHAPE) for _ in range(100)))
    assert len({id(body) for body in bodies}) == 1
    assert len(snapshots) == 1
    assert len(names(bodies[0])) == TOPICS


async def test_unchanged_state_is_encoded_once(snapshots: list[int]) -> None:
    """Later requests get the same bytes; changes that responses do not show cause no new encoding."""
    active, encoder = active_with_topics(), MetadataEncoder()
    first = await encoder.all_topics(active, SHAPE)
    apply(active.cluster, NotificationsProcessed(()))
    assert await encoder.all_topics(active, SHAPE) is first
    assert len(snapshots) == 1


async def test_request_after_a_change_gets_the_new_state(snapshots: list[int]) -> None:
    """Also during an encoding of the earlier state, which serves the earlier requests."""
    active, encoder = active_with_topics(), MetadataEncoder()
    early = asyncio.create_task(encoder.all_topics(active, SHAPE))
    await until_snapshot(snapshots)
    add(active, "new")
    late = asyncio.create_task(encoder.all_topics(active, SHAPE))
    assert "new" not in names(await early)
    assert "new" in names(await late)
    assert len(snapshots) == 2


async def test_request_waits_for_two_encodings_at_most(snapshots: list[int]) -> None:
    """However often the state changes."""
    active, encoder = active_with_topics(), MetadataEncoder()
    early = asyncio.create_task(encoder.all_topics(active, SHAPE))
    await until_snapshot(snapshots)
    late = asyncio.create_task(encoder.all_topics(active, SHAPE))
    while not late.done():
        apply(active.cluster, BrokersObserved((broker(1), broker(2))))
        await asyncio.sleep(0)
    await early
    assert len(snapshots) <= 2


async def test_one_encoding_runs_at_a_time(snapshots: list[int]) -> None:
    """Encodings for other listeners or versions wait."""
    active, encoder = active_with_topics(), MetadataEncoder()
    tasks = [asyncio.create_task(encoder.all_topics(active, shape)) for shape in (SHAPE, OTHER)]
    await until_snapshot(snapshots)
    assert len(snapshots) == 1
    bodies = await asyncio.gather(*tasks)
    assert [names(bodies[0], 12), names(bodies[1], 9)] == [{f"topic-{number}" for number in range(TOPICS)}] * 2


async def test_cancelled_request_does_not_cancel_the_encoding(snapshots: list[int]) -> None:
    """A handler is cancelled when its client disconnects; the encoding continues for the others."""
    active, encoder = active_with_topics(), MetadataEncoder()
    cancelled, other = (asyncio.create_task(encoder.all_topics(active, SHAPE)) for _ in range(2))
    await until_snapshot(snapshots)
    cancelled.cancel()
    assert len(names(await other)) == TOPICS
    assert len(snapshots) == 1


async def test_event_loop_runs_between_steps(snapshots: list[int]) -> None:
    """Every piece allows a pause; the number of pauses depends only on the clock."""
    active, encoder = active_with_topics(), MetadataEncoder()
    task = asyncio.create_task(encoder.all_topics(active, SHAPE))
    iterations = 0
    while not task.done():
        await asyncio.sleep(0)
        iterations += 1
    assert iterations >= TOPICS * PARTITIONS / 7
    assert len(snapshots) == 1


async def test_responses_of_an_earlier_term_are_dropped() -> None:
    """The next term's cluster counts its versions from zero."""
    encoder, active = MetadataEncoder(), active_with_topics()
    await encoder.all_topics(active, SHAPE)
    after = active_with(broker(1))
    while after.cluster.metadata_version < active.cluster.metadata_version - 1:
        apply(after.cluster, BrokersObserved((broker(1),)))
    assert names(await encoder.all_topics(after, SHAPE)) == set()


async def test_slow_readers_limit_new_encodings() -> None:
    """Slow clients keep old responses in memory: over the limit an earlier response is served until memory is free."""
    active, encoder = active_with_topics(), MetadataEncoder(max_live_bytes=1)
    read_slowly = []
    for number in range(3):
        add(active, f"new-{number}")
        read_slowly.append(await encoder.all_topics(active, SHAPE))
    add(active, "newest")
    assert "newest" not in names(await encoder.all_topics(active, SHAPE))
    assert encoder.live_bytes == sum(body.byte_count for body in read_slowly)
    read_slowly.clear()
    assert "newest" in names(await encoder.all_topics(active, SHAPE))


async def test_request_is_refused_without_memory_and_cached_response(monkeypatch: pytest.MonkeyPatch) -> None:
    """It must not wait forever: the responses that occupy memory may be behind it on its connection."""
    monkeypatch.setattr(metadata_encoder, "MAX_MEMORY_WAIT_S", 0)
    active, encoder = active_with_topics(), MetadataEncoder(max_live_bytes=1)
    read_slowly = []
    for number in range(3):
        add(active, f"new-{number}")
        read_slowly.append(await encoder.all_topics(active, SHAPE))
    with pytest.raises(OverloadedError):
        await encoder.all_topics(active, OTHER)
    assert len(read_slowly) == 3


async def test_busy_controller_gets_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """While events are processed, a step is followed by a pause of many times its length."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr("controller_core.shell.pace.asyncio.sleep", sleep)
    times = iter([0.0, 0.002, 0.002, 0.003, 0.003])
    busy = [True, False]
    pace = ClientPace(lambda: busy.pop(0), lambda: next(times))
    await pace.step()
    await pace.step()
    assert pauses == [pytest.approx(0.002 * 19), 0]
